"""ONNX Runtime profiles (`SessionOptions.enable_profiling`): one JSON array of session and node events.

What becomes what
- The kernel time of a node is an execution named `node (Operator)`; the stream is provider and thread.
- `model_run` is a request; a node belongs to the run of its time.
- `shape` has the inputs and, behind `>`, the result: weights packed ahead of time are in no event.
- Kernels of a GPU provider repeat the time of their nodes and are left out.
Times count from the start of the session.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.kineto_batches import ABSENT, Columns, Section, merged_batches
from fusetui.importers.kineto_join import step_of
from fusetui.importers.kineto_times import MAX_NS, to_ns
from fusetui.importers.onnxruntime_events import Event, EventPieces, shape_key
from fusetui.importers.rows import Rows, Words
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import EXECUTION, REQUEST
from fusetui.telemetry.text import safe_text

NAME: Final = "ONNX Runtime profile"

_NODE: Final = "_kernel_time"
_RUN: Final = "model_run"
_LIMIT: Final = 1_000_000
_CATEGORY = re.compile(rb'"cat"\s*:\s*"(?:Session|Node)"')
_MARK = re.compile(rb'"name"\s*:\s*"(?:model_loading\w*|session_initialization|model_run|[^"]*_kernel_time)"')
_NODES: Final = np.dtype(
    [("start", "i8"), ("end", "i8"), ("name", "i4"), ("stream", "i4"), ("shape", "i4"), ("core", "i4")]
)
_RUNS: Final = np.dtype([("start", "i8"), ("end", "i8"), ("number", "i8")])

Ints = npt.NDArray[np.int64]


def sniff(head: bytes) -> bool:
    """A JSON array with the categories and a name that only ONNX Runtime writes."""
    if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        return False
    return bool(_CATEGORY.search(head) and _MARK.search(head))


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a profile. Raises TelemetryError when no node ran in it."""
    found = _Found(memory_bytes)
    with ByteStream(path) as source:
        pieces = EventPieces(source)
        for events in pieces.windows():
            found.take(events)
    notes = found.notes(pieces)
    if not len(found.nodes):
        reason = f" ({'; '.join(notes)})" if notes else ""
        raise TelemetryError(
            str(path), f"{NAME} in which no node ran{reason}", "run the model before ending the profile"
        )
    header = Header(source="onnxruntime", clock="trace", hardware={"providers": ", ".join(sorted(found.providers))})
    return Capture(header, merged_batches(found.sections(), found.words()), notes)


class _Found:
    """Columns of one profile, filled window by window."""

    def __init__(self, memory_bytes: int) -> None:
        eighth = memory_bytes // 8
        self.nodes, self.runs = Rows(_NODES, eighth), Rows(_RUNS, eighth)
        self._names, self._streams, self._shapes = Words(eighth), Words(eighth), Words(eighth)
        self.providers: set[str] = set()
        self._left_out: Counter[str] = Counter()
        self._events = 0

    def take(self, events: list[Event]) -> None:
        self._events += len(events)
        self._left_out["kernels of a device, their nodes are shown"] += sum(e.cat == "Kernel" for e in events)
        nodes, start, end = self._timed([e for e in events if e.cat == "Node" and e.name.endswith(_NODE)])
        self.providers |= {_provider(e) for e in nodes if len(self.providers) < 16}
        self.nodes.add(
            start=start,
            end=end,
            name=self._names.codes([f"{e.name.removesuffix(_NODE)} ({e.args.op_name or '?'})" for e in nodes]),
            stream=self._streams.codes([f"{_provider(e)} {e.tid if isinstance(e.tid, int) else 0}" for e in nodes]),
            shape=self._shapes.codes([shape_key(e.args.inputs, e.args.outputs) or "" for e in nodes]),
            core=np.array([_core(e) for e in nodes], np.int32),
        )
        runs, start, end = self._timed([e for e in events if e.cat == "Session" and e.name == _RUN])
        numbers = np.arange(len(self.runs), len(self.runs) + len(runs))
        self.runs.add(start=start, end=end, number=numbers)

    def _timed(self, events: list[Event]) -> tuple[list[Event], Ints, Ints]:
        start, took = (_ns([getattr(e, key) for e in events]) for key in ("ts", "dur"))
        good = (start != ABSENT) & (start >= 0) & (took >= 0)
        good &= start <= MAX_NS - np.where(good, took, 0)
        self._left_out["without usable times"] += int((~good).sum())
        return [e for e, keep in zip(events, good.tolist(), strict=True) if keep], start[good], (start + took)[good]

    def words(self) -> dict[str, list[str | None]]:
        shapes = [text or None for text in self._shapes.texts()]
        return {"name": [*self._names.texts(), _RUN], "stream": list(self._streams.texts()), "shape": list(shapes)}

    def sections(self) -> list[Section]:
        nodes, runs = self.nodes.table(), self.runs.table()

        def ran(rows: Ints) -> Columns:
            node = nodes[rows]
            request, core = step_of(node["start"], runs), node["core"].astype(np.int64)
            return {
                "name": node["name"],
                "start_ns": node["start"],
                "end_ns": node["end"],
                "stream": node["stream"],
                "shape": node["shape"],
                "core": np.where(core < 0, ABSENT, core),
                "request": np.where(request < 0, ABSENT, request),
            }

        def asked(rows: Ints) -> Columns:
            run = runs[rows]
            return {
                "name": np.full(len(rows), len(self._names)),
                "start_ns": run["start"],
                "end_ns": run["end"],
                "request": run["number"],
            }

        found = [Section(EXECUTION, np.ascontiguousarray(nodes["end"]), ran)]
        return [*found, Section(REQUEST, np.ascontiguousarray(runs["end"]), asked)] if len(runs) else found

    def notes(self, pieces: EventPieces) -> list[str]:
        notes = [f"{ending}; what came before was read" for ending in pieces.endings]
        if pieces.broken:
            notes.append(f"unreadable events skipped: {pieces.broken:,}")
        notes += [f"events left out, {reason}: {count:,}" for reason, count in self._left_out.items() if count]
        if self._events >= _LIMIT:
            notes.append("the profiler stops at 1,000,000 events: what ran later is not in it")
        if len(self.nodes) and not any(self._shapes):
            notes.append("no input shapes: this version of ONNX Runtime does not record them")
        return notes


def _ns(values: list[Any]) -> Ints:
    return to_ns([repr(value) if type(value) is float else value for value in values])


def _provider(event: Event) -> str:
    return safe_text(event.args.provider, 80).removesuffix("ExecutionProvider") or "?"


def _core(event: Event) -> int:
    scheduling = event.args.scheduling
    core = scheduling.main_thread.core if scheduling is not None and scheduling.main_thread is not None else None
    return core if type(core) is int and 0 <= core < 1 << 20 else -1
