"""Device work and the calls that launched it, as any profiler with correlation ids records them, to contract batches.

An importer fills the tables of a `DeviceWork` chunk by chunk and asks for the capture at the end. Work becomes
executions; enqueue_ns is the end of the launch call that has the same correlation key and launch_ns its duration;
several pieces of work of one call are a graph launch. Work without its call has neither and stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.capture import Capture
from fusetui.importers.kineto_batches import ABSENT, Columns, Section, merged_batches
from fusetui.importers.kineto_join import graph_nodes, launch_of, outermost, step_of
from fusetui.importers.kineto_times import MAX_NS
from fusetui.importers.rows import Rows, Words
from fusetui.importers.worknotes import work_notes
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import COUNTER, EXECUTION, MARK, REQUEST

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.signedinteger[Any]]

_SPAN: Final = [("start", "i8"), ("end", "i8")]
_WORK: Final = np.dtype([*_SPAN, ("correlation", "i8"), ("device", "i4"), ("stream", "i4"), ("name", "i4")])
_CALLS: Final = np.dtype([*_SPAN, ("correlation", "i8")])
_HOST: Final = np.dtype([*_SPAN, ("thread", "i4"), ("name", "i4")])
_STEPS: Final = np.dtype([*_SPAN, ("number", "i8"), ("name", "i4")])
_READINGS: Final = np.dtype([("time", "i8"), ("value", "f8"), ("name", "i4"), ("unit", "i4"), ("device", "i4")])
_MARKS: Final = np.dtype([("time", "i8"), ("took", "f8"), ("name", "i4"), ("stream", "i4")])


class DeviceWork:
    """The tables of one capture; times are int64 ns on one clock, codes those of `names`, `streams`, `units`.

    correlation  one int64 key per launch within the capture (process and id in one), 0 for none
    left_out     reason -> count of rows that were not taken
    """

    def __init__(self, memory_bytes: int) -> None:
        share = memory_bytes // 8
        self.work, self.calls, self.host = Rows(_WORK, 2 * share), Rows(_CALLS, share), Rows(_HOST, share)
        self.steps, self.readings, self.marks = Rows(_STEPS, share), Rows(_READINGS, share), Rows(_MARKS, share)
        self.names, self.streams, self.units = Words(share), Words(share), Words(share // 8)
        self.left_out: Counter[str] = Counter()
        self._wanted: Ints | None = None
        self.costs_known = True
        """Whether calls have a duration; without, they are only the moment of the hand-over."""

    def add_work(
        self, start: Ints, end: Ints, *, correlation: Ints | int, device: Ints | int, stream: Codes, name: Codes
    ) -> None:
        """Pieces of work, shapes (rows,); a negative device is unknown."""
        self._add(self.work, "work", start, end, correlation=correlation, device=device, stream=stream, name=name)

    def add_calls(self, start: Ints, end: Ints, *, correlation: Ints) -> None:
        """Launch calls, shapes (rows,)."""
        self._add(self.calls, "launch calls", start, end, correlation=correlation)

    def add_host(self, start: Ints, end: Ints, *, thread: Codes, name: Codes) -> None:
        """Work of the host, which is shown when the capture has none of a device. Shapes (rows,)."""
        self._add(self.host, "host calls", start, end, thread=thread, name=name)

    def add_steps(self, start: Ints, end: Ints, *, name: Codes) -> None:
        """Steps or requests in order of appearance, shapes (rows,); they are numbered from 0."""
        number = np.arange(len(self.steps), len(self.steps) + len(start))
        self._add(self.steps, "steps", start, end, number=number, name=name)

    def add_readings(self, time: Ints, value: Floats, *, name: Codes, unit: Codes | int, device: Ints | int) -> None:
        """Counter readings, shapes (rows,); those that are no number are left out, a negative unit is none."""
        good = np.isfinite(value) & (time >= -MAX_NS) & (time <= MAX_NS)
        self.left_out["readings without a number or a time"] += int((~good).sum())
        _append(self.readings, good, time=time, value=value, name=name, unit=unit, device=device)

    def add_marks(self, start: Ints, end: Ints, *, name: Codes, stream: Codes | int) -> None:
        """Moments, or ranges that are shown as their end with their duration. Shapes (rows,)."""
        good = self._good("marks", start, end)
        took = np.where(end > start, (end - start).astype(np.float64), np.nan)
        _append(self.marks, good, time=end, took=took, name=name, stream=stream)

    def _add(self, rows: Rows, what: str, start: Ints, end: Ints, **columns: Any) -> None:
        _append(rows, self._good(what, start, end), start=start, end=end, **columns)

    def _good(self, what: str, start: Ints, end: Ints) -> npt.NDArray[np.bool_]:
        good = (start >= -MAX_NS) & (end >= start) & (end <= MAX_NS)
        if not good.all():
            self.left_out[f"{what} without usable times"] += int((~good).sum())
        return good

    def launched(self, keys: Ints) -> npt.NDArray[np.bool_]:
        """Whether a piece of work has each of the correlation keys, shape (rows,); all work must have been added."""
        if self._wanted is None:
            # Sorting once is several times as fast as np.unique, whose hash suffers from keys that are all different.
            self._wanted = np.sort(self.work.table()["correlation"])
        if not len(self._wanted):
            return np.zeros(len(keys), np.bool_)
        at = np.minimum(np.searchsorted(self._wanted, keys), len(self._wanted) - 1)
        found: npt.NDArray[np.bool_] = (keys != 0) & (self._wanted[at] == keys)
        return found

    def capture(
        self, where: str, what: str, header: Header, notes: Sequence[str], *, base_ns: int | None, remedy: str,
        texts: Mapping[str, Sequence[str]] | None = None,
    ) -> Capture:  # fmt: skip
        """What was gathered, in order of end time.

        base_ns  the time 0 of the tables since the epoch; None: not known, the capture then counts from its first row
        texts    words behind the codes where they are not those in `names`, `streams` and `units` themselves
        Raises TelemetryError, with `remedy`, when there is nothing in it that could be shown.
        """
        lines = [*notes, *(f"{reason} left out: {count:,}" for reason, count in self.left_out.items() if count)]
        self._wanted = None
        work, calls, steps = self.work.table(), self.calls.table(), self.steps.table()
        host = self.host.table() if not len(work) else np.empty(0, _HOST)
        readings, marks = self.readings.table(), self.marks.table()
        if not (len(work) or len(host) or len(readings) or len(marks)):
            reason = f" ({'; '.join(lines)})" if lines else ""
            raise TelemetryError(where, f"{what} in which nothing ran{reason}", remedy)
        starts = [int(t["start"].min()) for t in (work, host, steps) if len(t)]
        starts += [int(t["time"].min()) for t in (readings, marks) if len(t)]
        starts += [int(calls["start"].min())] if len(work) and len(calls) else []
        shift = base_ns if base_ns is not None else -min(starts)
        found: list[Section] = []
        if len(work):
            found.append(self._executions(work, calls, steps, shift, lines))
        elif len(host):
            found.append(_host_section(host, steps, shift, lines))
        if len(steps):
            found.append(_step_section(steps, shift))
        if len(readings):
            found.append(_reading_section(readings, shift))
        if len(marks):
            found.append(_mark_section(marks, shift, len(self.units)))
        words: dict[str, list[str | None]] = {
            "name": list(self.names.texts()),
            "stream": [text or None for text in self.streams.texts()],
            "unit": [*self.units.texts(), "ns"],
        }
        for column, own in (texts or {}).items():
            words[column] = list(own)
        if self.names.full or self.streams.full:
            lines.append("too many different texts for the memory budget: the rest of them read …")
        return Capture(header, merged_batches(found, words), lines)

    def _executions(self, work: Any, calls: Any, steps: Any, shift: int, notes: list[str]) -> Section:
        launch = launch_of(work, calls)
        nodes = graph_nodes(work, launch)
        notes += work_notes(work, calls, launch, nodes)
        known = self.costs_known

        def columns(rows: Ints) -> Columns:
            part, by = work[rows], launch[rows]
            joined = by >= 0
            enqueue, cost, issued = np.full(len(rows), ABSENT), np.full(len(rows), ABSENT), part["start"].copy()
            call = calls[by[joined]]
            enqueue[joined] = call["end"] + shift
            if known:
                cost[joined] = call["end"] - call["start"]
            issued[joined] = call["start"]
            return {
                "name": part["name"],
                "enqueue_ns": enqueue,
                "start_ns": part["start"] + shift,
                "end_ns": part["end"] + shift,
                "launch_ns": cost,
                "node": _absent(nodes[rows]),
                "device": _absent(part["device"]),
                "stream": part["stream"],
                "request": _absent(step_of(issued, steps)),
            }

        return Section(EXECUTION, np.ascontiguousarray(work["end"]), columns)


def codes(words: Words, values: Ints) -> npt.NDArray[np.int32]:
    """Code of each number in `values`, shape (rows,); one look-up per different number."""
    different, index = np.unique(values, return_inverse=True)
    found: npt.NDArray[np.int32] = words.codes(different.tolist())[index]
    return found


def _append(rows: Rows, good: npt.NDArray[np.bool_], **columns: Any) -> None:
    if good.all():
        rows.add(**columns)
    elif good.any():
        rows.add(**{key: value[good] if isinstance(value, np.ndarray) else value for key, value in columns.items()})


def _host_section(host: Any, steps: Any, shift: int, notes: list[str]) -> Section:
    keep = outermost(host)
    shown = host[keep]
    notes.append(f"no device work in it: outermost host calls are shown, nested ones left out: {int((~keep).sum()):,}")

    def columns(rows: Ints) -> Columns:
        part = shown[rows]
        return {
            "name": part["name"],
            "start_ns": part["start"] + shift,
            "end_ns": part["end"] + shift,
            "stream": part["thread"],
            "request": _absent(step_of(part["start"], steps)),
        }

    return Section(EXECUTION, np.ascontiguousarray(shown["end"]), columns)


def _step_section(steps: Any, shift: int) -> Section:
    def columns(rows: Ints) -> Columns:
        part = steps[rows]
        return {
            "name": part["name"],
            "start_ns": part["start"] + shift,
            "end_ns": part["end"] + shift,
            "request": part["number"],
        }

    return Section(REQUEST, np.ascontiguousarray(steps["end"]), columns)


def _reading_section(readings: Any, shift: int) -> Section:
    def columns(rows: Ints) -> Columns:
        part = readings[rows]
        time = part["time"] + shift
        return {
            "name": part["name"],
            "start_ns": time,
            "end_ns": time,
            "device": _absent(part["device"]),
            "value": part["value"],
            "unit": part["unit"],
        }

    return Section(COUNTER, np.ascontiguousarray(readings["time"]), columns)


def _mark_section(marks: Any, shift: int, nanoseconds: int) -> Section:
    def columns(rows: Ints) -> Columns:
        part = marks[rows]
        time = part["time"] + shift
        return {
            "name": part["name"],
            "start_ns": time,
            "end_ns": time,
            "stream": part["stream"],
            "value": part["took"],
            "unit": np.where(np.isnan(part["took"]), -1, nanoseconds),
        }

    return Section(MARK, np.ascontiguousarray(marks["time"]), columns)


def _absent(values: npt.NDArray[Any]) -> Ints:
    return np.where(values < 0, ABSENT, values.astype(np.int64))
