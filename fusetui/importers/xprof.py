"""XProf traces (JAX, TensorFlow, PyTorch/XLA) as Chrome JSON: `*.trace.json.gz` and `perfetto_trace.json.gz`.

What becomes what
- Events on the streams of a device, or on the `XLA Ops` line of a TPU core, are executions; the lines XProf derives
  from those (modules, framework operations, source code) are left out. The launch call with the same correlation id
  gives enqueue_ns and launch_ns. Without device planes the operations of compiled modules on the host are executions.
- Step annotations (`step_num`) are requests. The compiled module is the plan.
Picoseconds round to the nearest nanosecond. The file says nothing of when it was made: times count from its start.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.chrome import stream_notes
from fusetui.importers.chrome_tracks import Tracks
from fusetui.importers.kineto_batches import merged_batches
from fusetui.importers.kineto_stream import EventStream
from fusetui.importers.kineto_times import ABSENT, MAX_NS, NeedsTextError, to_ns
from fusetui.importers.xprof_rows import HOST, Line, Profile, plan_name
from fusetui.importers.xprof_sections import clock_of, found_in
from fusetui.importers.xprof_types import NO_ARGS, XPROF
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header

NAME: Final = "JAX or XProf trace (JSON)"

_EVENTS = re.compile(rb'"traceEvents"\s*:')
_PLANE = re.compile(rb'"name"\s*:\s*"/(?:host|device):')

Ints = npt.NDArray[np.int64]


def sniff(head: bytes) -> bool:
    """Chrome JSON in which a process has the name of a plane."""
    body = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return body.startswith((b"{", b"[")) and bool(_EVENTS.search(head) and _PLANE.search(head))


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a trace. Raises TelemetryError when nothing compiled and no kernel ran in it."""
    trace = _Trace(memory_bytes)
    with ByteStream(path) as source:
        stream = EventStream(source, (), XPROF)
        trace.take(stream)
    profile = trace.profile
    profile.lines = [Line(*pair) for pair in zip(trace.tracks.processes(), trace.tracks.threads(), strict=True)]
    found = found_in(profile, None)
    notes = [*stream_notes(stream, trace.seen), *found.notes]
    if profile.left_out:
        notes.append(f"events left out, without usable times: {profile.left_out:,}")
    if not found.sections:
        reason = f" ({'; '.join(notes)})" if notes else ""
        raise TelemetryError(
            str(path), f"{NAME} in which no kernel and no compiled module ran{reason}", "profile some work"
        )
    header = Header(source="xprof", clock=clock_of(None))
    return Capture(header, merged_batches(found.sections, found.words), notes)


class _Trace:
    """Rows of one file, filled window by window."""

    def __init__(self, memory_bytes: int) -> None:
        self.profile = Profile.within(memory_bytes)
        self.tracks = Tracks()
        self.seen = 0
        self._hosts: set[Any] = set()

    def take(self, stream: EventStream) -> None:
        for window in stream.windows():
            try:
                self._take_window(window)
            except NeedsTextError:
                self._take_window(stream.again_exactly())

    def _take_window(self, events: list[Any]) -> None:
        for event in events:
            if event.ph == "M":
                self.tracks.rename(event.name, event.pid, event.tid, event.args.name)
                if event.name == "process_name" and str(event.args.name).startswith(HOST) and _hashable(event.pid):
                    self._hosts.add(event.pid)
        hosts = self._hosts
        # Most host events are Python calls without arguments, of which nothing is kept.
        chosen = [e for e in events if e.ph == "X" and (e.args is not NO_ARGS or not _in(e.pid, hosts))]
        start, took = to_ns([e.ts for e in chosen]), to_ns([e.dur for e in chosen])
        self.seen += len(events)
        good = (start != ABSENT) & (took >= 0) & (start <= MAX_NS - took) & (start >= -MAX_NS)
        self.profile.left_out += int((~good).sum())
        chosen = [e for e, keep in zip(chosen, good.tolist(), strict=True) if keep]
        self._add(chosen, start[good], took[good])

    def _add(self, events: list[Any], start: Ints, took: Ints) -> None:
        profile = self.profile
        args = [event.args for event in events]
        modules = [plan_name(a.hlo_module, a.program_id) if a.hlo_module is not None else "" for a in args]
        plans = [profile.plans[module] if module else -1 for module in modules]
        profile.rows.add(
            start=start,
            end=start + took,
            correlation=_whole([a.correlation_id for a in args], 0),
            step=_whole([a.step_num for a in args], -1),
            name=profile.names.codes([event.name for event in events]),
            stream=self.tracks.codes(events),
            plan=np.array(plans, np.int32),
            device=np.minimum(_whole([a.device_ordinal for a in args], -1), np.iinfo(np.int32).max),
            op=np.array([a.hlo_op is not None for a in args], np.bool_),
        )


def _whole(values: list[Any], absent: int) -> Ints:
    """Whole numbers that may be written as text; `absent` for anything else or beyond 63 bits."""
    return np.fromiter((_one(value, absent) for value in values), np.int64, len(values))


def _one(value: Any, absent: int) -> int:
    if value is None:
        return absent
    if isinstance(value, str) and value.isdecimal() and len(value) < 20:
        value = int(value)
    return value if type(value) is int and 0 <= value < 1 << 63 else absent


def _hashable(value: Any) -> bool:
    return isinstance(value, (int, str, float))


def _in(value: Any, hosts: set[Any]) -> bool:
    return _hashable(value) and value in hosts
