"""Records of a rocprofv3 JSON file, with only what is needed of them."""

from __future__ import annotations

from typing import Any, Final

import msgspec


class Handle(msgspec.Struct, gc=False):
    """A number in an object."""

    handle: int = 0


class Correlation(msgspec.Struct, gc=False):
    """The id that a call and what it launched have in common; 0 is none."""

    internal: int = 0


class Dispatch(msgspec.Struct, gc=False):
    """What was launched, and where."""

    agent_id: Handle = msgspec.field(default_factory=Handle)
    queue_id: Handle = msgspec.field(default_factory=Handle)
    kernel_id: int = -1


class Record(msgspec.Struct, gc=False):
    """A dispatch, copy, call or marker; times in ns since boot."""

    kind: Any = -1
    operation: Any = -1
    thread_id: int = 0
    correlation_id: Correlation = msgspec.field(default_factory=Correlation)
    start_timestamp: int = -1
    end_timestamp: int = -2
    dispatch_info: Dispatch | None = None
    stream_id: Handle | None = None
    src_agent_id: Handle | None = None
    dst_agent_id: Handle | None = None
    key: int = -1
    value: Any = None


class Symbol(msgspec.Struct, gc=False):
    """Name of a kernel."""

    kernel_id: int = -1
    kernel_name: str = ""
    formatted_kernel_name: str = ""


WHOLE: Final = ("metadata", "agents", "buffer_records")
"""Keys whose value is small and nested: decoded at once. `buffer_records` has a list of names, later the records."""

_RECORDS: Final = msgspec.json.Decoder(list[Record]), msgspec.json.Decoder(Record)
KINDS: Final = {
    "kernel_symbols": (msgspec.json.Decoder(list[Symbol]), msgspec.json.Decoder(Symbol)),
    **dict.fromkeys(("kernel_dispatch", "memory_copy", "hip_api", "hsa_api", "rccl_api", "marker_api"), _RECORDS),
}
"""Arrays of records by key: decoders of many and of one."""
