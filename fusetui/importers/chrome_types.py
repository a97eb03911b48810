"""The fields of Chrome trace events that are worth decoding, and how a stream of them is found."""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

import msgspec

from fusetui.importers.kineto_stream import Dialect
from fusetui.importers.kineto_tolerant import text_of
from fusetui.importers.kineto_types import EMPTY


class _Timed(msgspec.Struct, gc=False):
    name: Any = ""
    ts: Any = None
    pid: Any = None
    tid: Any = None


class _Complete(_Timed, gc=False, tag_field="ph", tag="X"):
    dur: Any = None
    ph: ClassVar[str] = "X"


class _Begin(_Timed, gc=False, tag_field="ph", tag="B"):
    ph: ClassVar[str] = "B"


class _End(_Timed, gc=False, tag_field="ph", tag="E"):
    ph: ClassVar[str] = "E"


class _Instant(_Timed, gc=False, tag_field="ph", tag="i"):
    ph: ClassVar[str] = "i"


class _Counter(_Timed, gc=False, tag_field="ph", tag="C"):
    args: Any = None
    ph: ClassVar[str] = "C"


class _Metadata(_Timed, gc=False, tag_field="ph", tag="M"):
    args: Any = None
    ph: ClassVar[str] = "M"


class _AsyncBegin(_Timed, gc=False, tag_field="ph", tag="b"):
    id: Any = None
    args: Any = None
    ph: ClassVar[str] = "b"


class _AsyncEnd(_Timed, gc=False, tag_field="ph", tag="e"):
    id: Any = None
    ph: ClassVar[str] = "e"


class _FlowStart(msgspec.Struct, gc=False, tag_field="ph", tag="s"):
    ph: ClassVar[str] = "s"


class _FlowStep(msgspec.Struct, gc=False, tag_field="ph", tag="t"):
    ph: ClassVar[str] = "t"


class _FlowEnd(msgspec.Struct, gc=False, tag_field="ph", tag="f"):
    ph: ClassVar[str] = "f"


Usual = (
    _Complete | _Begin | _End | _Instant | _Counter | _Metadata
    | _AsyncBegin | _AsyncEnd | _FlowStart | _FlowStep | _FlowEnd
)  # fmt: skip
"""The phases of nearly all events as types: what a phase does not need is not decoded for it."""


class Event(_Timed, gc=False):
    """Any event; ts and dur in microseconds."""

    ph: Any = ""
    dur: Any = None
    id: Any = None
    args: Any = None


class ExactEvent(Event, gc=False):
    """An event with its times as written, for values that float64 cannot hold to the nanosecond."""

    ts: msgspec.Raw = EMPTY
    dur: msgspec.Raw = EMPTY


def event_of(found: dict[str, Any]) -> Event:
    """The event from the decoded keys of one that had to be mended."""
    return Event(
        ph=text_of(found.get("ph")),
        name=text_of(found.get("name")),
        ts=found.get("ts"),
        dur=found.get("dur"),
        pid=found.get("pid"),
        tid=found.get("tid"),
        id=found.get("id"),
        args=found.get("args"),
    )


OPENING: Final = re.compile(rb'\A(?:\xef\xbb\xbf)?\s*\[\s*|"traceEvents"\s*:\s*\[\s*')
SEPARATOR: Final = re.compile(rb'\}(\s*,\s*\{(\s*)"(?:ph|name|cat|pid|tid|ts|dur|args|id|s|attr)")')

CHROME: Final = Dialect(
    opening=OPENING,
    separator=SEPARATOR,
    usual=msgspec.json.Decoder(list[Usual]),
    plain=msgspec.json.Decoder(list[Event]),
    exact=msgspec.json.Decoder(list[ExactEvent]),
    build=event_of,
    remedy="is it a Chrome trace?",
)
