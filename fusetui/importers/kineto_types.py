"""The fields of a Kineto event that are worth decoding."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec
from msgspec import Raw, field

EMPTY: Final = Raw(b"")


class Args(msgspec.Struct, gc=False, frozen=True):
    """Arguments of an event. Numbers are untyped: some writers quote them, and an odd one must not cost a window."""

    correlation: Any = None
    stream: Any = None
    device: Any = None
    external: Any = field(default=None, name="External id")
    external_2021: Any = field(default=None, name="external id")
    dims: Raw = field(default=EMPTY, name="Input Dims")
    dtypes: Raw = field(default=EMPTY, name="Input type")
    allocated: Any = field(default=None, name="Total Allocated")
    device_id: Any = field(default=None, name="Device Id")


NO_ARGS: Final = Args()


class _Timed(msgspec.Struct, gc=False):
    cat: str = ""
    name: str = ""
    ts: Any = None
    dur: Any = None
    pid: Any = None
    tid: Any = None
    args: Args = NO_ARGS


class Event(_Timed, gc=False):
    """One entry of traceEvents; ts and dur in microseconds."""

    ph: str = ""


class ExactEvent(Event, gc=False):
    """An event with its times as written, for values that float64 cannot hold to the nanosecond."""

    ts: Raw = EMPTY
    dur: Raw = EMPTY


class _Complete(_Timed, gc=False, tag_field="ph", tag="X"):
    ph: ClassVar[str] = "X"


class _Instant(_Timed, gc=False, tag_field="ph", tag="i"):
    ph: ClassVar[str] = "i"


class _Unused(msgspec.Struct, gc=False, tag_field="ph"):
    cat: ClassVar[str] = "-"


class _FlowStart(_Unused, gc=False, tag="s"):
    pass


class _FlowStep(_Unused, gc=False, tag="t"):
    pass


class _FlowEnd(_Unused, gc=False, tag="f"):
    pass


class _Metadata(_Unused, gc=False, tag="M"):
    pass


Usual = _Complete | _Instant | _FlowStart | _FlowStep | _FlowEnd | _Metadata
"""The phases of nearly all events as types: what is not used costs neither its fields nor its texts."""
