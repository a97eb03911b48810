"""PyTorch profiler (Kineto) traces, JSON or JSON.gz, from 2021 to today: CUDA, HIP, MTIA and host-only.

What becomes what
- Device work is an execution; its launch call, joined on the correlation id, gives enqueue_ns (the call's end) and
  launch_ns (its duration). Work whose launch is not in the capture has neither. Several pieces of work of one launch
  are a graph launch: `node` counts them per stream.
- In a capture without any device work the host operators are the executions: only those that lie in no other operator
  of their thread, so that busy time is counted once; the stream is the thread.
- `ProfilerStep#N` annotations are requests; work belongs to the step in which it was launched (else: began).
- Compilations are marks with their stall; what ran in a compiled region is planned (`kineto_compiles`).
- `[memory]` totals are counters. `shape` is that of the operator with the same external id.
- Bytes of copies are transfers, not measured DRAM traffic, and are left out.

Memory: tables are kept, joined and sorted in temporary files beyond their share of the budget, words take at most 3/8
of it; only steps and compiled regions are held.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from fusetui.importers.bytestream import ByteStream, head_of
from fusetui.importers.capture import Capture
from fusetui.importers.kineto_batches import merged_batches
from fusetui.importers.kineto_events import Events
from fusetui.importers.kineto_header import base_time_ns, kineto_header, rank_of
from fusetui.importers.kineto_notes import device_notes, host_note, notes_of
from fusetui.importers.kineto_sections import device_sections, host_sections, words
from fusetui.importers.kineto_stream import EventStream
from fusetui.importers.kineto_work import join_device
from fusetui.telemetry.errors import TelemetryError

NAME: Final = "PyTorch profiler (Kineto) trace"

_EVENTS = re.compile(rb'"traceEvents"\s*:')
_TOP_KEYS = re.compile(
    rb'"(?:schemaVersion|deviceProperties|computeProperties|distributedInfo|baseTimeNanoseconds)"\s*:'
)
_CATEGORIES = re.compile(
    rb'"cat"\s*:\s*"(?:cpu_op|Operator|[Kk]ernel|gpu_mem(?:cpy|set)|Mem(?:cpy|set)|\w+_runtime|Runtime|cuda_driver'
    rb'|python_function|user_annotation|gpu_user_annotation|cpu_instant_event|mtia_ccp_events)"'
)


def sniff(head: bytes) -> bool:
    """Chrome JSON with an event array and a mark of Kineto: a top-level key or a category."""
    if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return False
    return bool(_EVENTS.search(head) and (_TOP_KEYS.search(head) or _CATEGORIES.search(head)))


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a Kineto file. Raises TelemetryError when there is no event array or nothing in it ran."""
    return _read(path, memory_bytes, inner=False)


def read_inner(path: Path, memory_bytes: int) -> Capture:
    """`read`, but without device work with the operators inside compiled regions and backward nodes: `kineto_inner`."""
    return _read(path, memory_bytes, inner=True)


def _read(path: Path, memory_bytes: int, *, inner: bool) -> Capture:
    events, stream = _scan(path, memory_bytes, host_operators=False)
    if not len(events.device):
        events, stream = _scan(path, memory_bytes, host_operators=True)
    base_ns = base_time_ns(stream.top)
    if len(events.device):
        ran = device_notes(events.join, join_device(events, memory_bytes // 8))
        found, clock = device_sections(events, base_ns)
    elif len(events.host_operators):
        found, clock, nested = host_sections(events, memory_bytes // 4, base_ns, inner=inner)
        ran = [host_note(nested)]
    else:
        reason = "; ".join(notes_of(events, stream, [])) or "no device work and no host operators"
        raise TelemetryError(str(path), f"{NAME} in which nothing ran ({reason})", "profile some work")
    notes = notes_of(events, stream, ran)
    return Capture(kineto_header(stream.top, clock), merged_batches(found, words(events)), notes, rank_of(stream.top))


def _scan(path: Path, memory_bytes: int, *, host_operators: bool) -> tuple[Events, EventStream]:
    skip = [b"python_function"]
    head = head_of(path)
    no_shapes = b'"cpu_op"' in head and (b'"Profiler Event Index"' in head or b'"Input Dims"' not in head)
    if no_shapes and not host_operators:
        # These dialects cannot tell the shape of device work, so its operators are not needed.
        skip.insert(0, b"cpu_op")
    events = Events(memory_bytes, host_operators=host_operators)
    with ByteStream(path) as source:
        stream = EventStream(source, skip)
        events.take(stream)
    return events, stream
