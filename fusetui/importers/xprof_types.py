"""The fields of an event of an XProf trace (Chrome JSON) that are worth decoding."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec

from fusetui.importers.chrome_types import OPENING, SEPARATOR
from fusetui.importers.kineto_stream import Dialect
from fusetui.importers.kineto_tolerant import text_of
from fusetui.importers.kineto_types import EMPTY


class Args(msgspec.Struct, gc=False, frozen=True):
    """Arguments of an event; the values are texts, also of numbers."""

    name: Any = None
    correlation_id: Any = None
    hlo_op: Any = None
    hlo_module: Any = None
    program_id: Any = None
    step_num: Any = None
    device_ordinal: Any = None


NO_ARGS: Final = Args()


class _Named(msgspec.Struct, gc=False):
    name: str = ""
    pid: Any = None
    tid: Any = None
    args: Args = NO_ARGS


class _Complete(_Named, gc=False, tag_field="ph", tag="X"):
    ts: Any = None
    dur: Any = None
    ph: ClassVar[str] = "X"


class _Metadata(_Named, gc=False, tag_field="ph", tag="M"):
    ph: ClassVar[str] = "M"


class Event(_Named, gc=False):
    """Any event; ts and dur in microseconds."""

    ph: str = ""
    ts: Any = None
    dur: Any = None


class ExactEvent(Event, gc=False):
    """An event with its times as written, for values that float64 cannot hold to the nanosecond."""

    ts: msgspec.Raw = EMPTY
    dur: msgspec.Raw = EMPTY


def event_of(found: dict[str, Any]) -> Event:
    """The event from the decoded keys of one that had to be mended."""
    args = found.get("args")
    known = {key: args[key] for key in Args.__struct_fields__ if key in args} if isinstance(args, dict) else {}
    return Event(
        ph=text_of(found.get("ph")),
        name=text_of(found.get("name")),
        ts=found.get("ts"),
        dur=found.get("dur"),
        pid=found.get("pid"),
        tid=found.get("tid"),
        args=Args(**known),
    )


XPROF: Final = Dialect(
    opening=OPENING,
    separator=SEPARATOR,
    usual=msgspec.json.Decoder(list[_Complete | _Metadata]),
    plain=msgspec.json.Decoder(list[Event]),
    exact=msgspec.json.Decoder(list[ExactEvent]),
    build=event_of,
    remedy="is it a JAX or XProf trace?",
)
