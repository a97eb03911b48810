"""RPD captures as Chrome JSON (`rpd2tracing.py`): a bare array of events whose numbers are strings.

What becomes what
- Slices on a process named `GPU<n>` are executions of that device; the thread is the queue.
- Flows (`api_op`) lead from an API call to the operation it launched: the call gives enqueue_ns and launch_ns.
- Counters stay counters. Times are whole microseconds of a clock since boot and count from the first row.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.devicework import DeviceWork, Ints
from fusetui.importers.kineto_times import ABSENT, to_ns
from fusetui.importers.onnxruntime_events import EventPieces
from fusetui.importers.rpd_flows import Flows
from fusetui.telemetry.header import Header

NAME: Final = "ROCm RPD trace (JSON)"

_DEVICE = re.compile(r"GPU(\d{1,4})\Z")
_MARKS: Final = (rb'"ph"\s*:\s*"M"', rb'"name"\s*:\s*"GPU\d+"', rb'"(?:api_op|KernelExecution)"|"name"\s*:\s*"Hip \d')
_FLOW: Final = "api_op"


class _Event(msgspec.Struct, gc=False):
    """One event; ts and dur in microseconds, numbers as strings."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: Any = None
    tid: Any = None
    id: Any = None
    ts: Any = None
    dur: Any = None
    args: Any = None


def sniff(head: bytes) -> bool:
    """An array of events with a process GPU<n> and what only RPD calls its flows and slices."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return start.startswith(b"[") and all(re.search(mark, head) for mark in _MARKS)


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a trace. Raises TelemetryError when nothing ran in it."""
    found, flows = DeviceWork(memory_bytes), Flows()
    devices: dict[str, int] = {}
    with ByteStream(path) as stream:
        pieces = EventPieces(stream, _Event)
        for events in pieces.windows():
            _take(events, devices, found, flows)
    work, calls = flows.joined()
    for table, of in ((work, "work"), (calls, "calls")):
        start, end = table["start"], table["end"]
        if of == "calls":
            found.add_calls(start, end, correlation=table["correlation"])
        else:
            columns = {name: table[name].astype(np.int64) for name in ("correlation", "device", "stream", "name")}
            found.add_work(start, end, **columns)
    notes = [f"{ending}; what came before was read" for ending in pieces.endings]
    if pieces.broken:
        notes.append(f"unreadable events skipped: {pieces.broken:,}")
    notes.append("times are whole microseconds: the .rpd file that it was made of has nanoseconds")
    header = Header(source="rpd", clock="trace", build={"format": "rpd2tracing"})
    return found.capture(str(path), NAME, header, notes, base_ns=None, remedy="open the .rpd file")


def _take(events: list[_Event], devices: dict[str, int], found: DeviceWork, flows: Flows) -> None:
    devices |= _devices(events)
    slices = [event for event in events if event.ph == "X"]
    ran = [event for event in slices if str(event.pid) in devices]
    start, end = _span(ran)
    flows.add_work(
        start,
        end,
        device=np.array([devices[str(event.pid)] for event in ran], np.int64),
        stream=found.streams.codes([_label(event.tid) for event in ran]),
        name=found.names.codes([event.name for event in ran]),
    )
    called = [event for event in slices if str(event.pid) not in devices]
    start, end = _span(called)
    flows.add_calls(start, end, flows.tracks.codes([_track(event) for event in called]))
    arrows = [event for event in events if event.cat == _FLOW and event.ph in "sf"]
    out = [event for event in arrows if event.ph == "s"]
    flows.add_out(_times(out), flows.ids.codes([_label(e.id) for e in out]), flows.tracks.codes(list(map(_track, out))))
    into = [event for event in arrows if event.ph == "f" and str(event.pid) in devices]
    flows.add_into(
        _times(into),
        flows.ids.codes([_label(event.id) for event in into]),
        np.array([devices[str(event.pid)] for event in into], np.int64),
        found.streams.codes([_label(event.tid) for event in into]),
    )
    _take_counters([event for event in events if event.ph == "C"], devices, found)


def _devices(events: list[_Event]) -> dict[str, int]:
    """Number of the device behind each process id that is one."""
    named = [e for e in events if e.ph == "M" and e.name == "process_name" and isinstance(e.args, dict)][:4096]
    matches = [(event.pid, _DEVICE.match(str(event.args.get("name", "")))) for event in named]
    return {str(pid): int(match[1]) for pid, match in matches if match}


def _take_counters(events: list[_Event], devices: dict[str, int], found: DeviceWork) -> None:
    values = [next(iter(e.args.values()), None) if isinstance(e.args, dict) else None for e in events]
    found.add_readings(
        _times(events),
        np.array([_number(value) for value in values], np.float64),
        name=found.names.codes([event.name for event in events]),
        unit=-1,
        device=np.array([devices.get(str(event.pid), -1) for event in events], np.int64),
    )


def _number(value: Any) -> float:
    try:
        return float(value) if isinstance(value, (int, float, str)) else float("nan")
    except (ValueError, OverflowError):
        return float("nan")


def _span(events: list[_Event]) -> tuple[Ints, Ints]:
    start, took = _times(events), _ns([event.dur for event in events])
    good = (start != ABSENT) & (took >= 0)
    return np.where(good, start, 0), np.where(good, start + np.where(good, took, 0), -1)


def _times(events: list[_Event]) -> Ints:
    return _ns([event.ts for event in events])


def _ns(values: list[Any]) -> Ints:
    return to_ns([repr(value) if type(value) is float else value for value in values])


def _label(value: Any) -> str:
    return str(value)[:40]


def _track(event: _Event) -> str:
    return f"{_label(event.pid)}/{_label(event.tid)}"
