"""Device work and the calls that launched it, as any profiler with correlation ids records them, to contract batches.

An importer fills the tables of a `DeviceWork` chunk by chunk and asks for the capture at the end. Work becomes
executions; enqueue_ns is the end of the launch call that has the same correlation key and launch_ns its duration;
several pieces of work of one call are a graph launch. Work without its call has neither and stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.capture import Capture
from fusetui.importers.kineto_batches import ABSENT, Block, Columns, Section, Stream, merged_batches
from fusetui.importers.kineto_join import step_of
from fusetui.importers.kineto_times import MAX_NS
from fusetui.importers.launchjoin import LaunchJoin, absent
from fusetui.importers.nesting import outermost
from fusetui.importers.rows import Rows, Words
from fusetui.importers.sortedrows import SortedRows, Table
from fusetui.importers.worknotes import work_notes
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import COUNTER, EXECUTION, MARK, REQUEST

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.signedinteger[Any]]

_SPAN: Final = [("start", "i8"), ("end", "i8")]
_HOST: Final = np.dtype([*_SPAN, ("thread", "i4"), ("name", "i4")])
_STEPS: Final = np.dtype([*_SPAN, ("number", "i8"), ("name", "i4")])
_READINGS: Final = np.dtype([("time", "i8"), ("value", "f8"), ("name", "i4"), ("unit", "i4"), ("device", "i4")])
_MARKS: Final = np.dtype([("time", "i8"), ("took", "f8"), ("name", "i4"), ("stream", "i4")])


class DeviceWork:
    """The tables of one capture; times are int64 ns on one clock, codes those of `names`, `streams`, `units`.

    correlation  one int64 key per launch within the capture (process and id in one), 0 for none
    left_out     reason -> count of rows that were not taken
    pieces, calls  how many pieces of work and launch calls were added
    """

    def __init__(self, memory_bytes: int, *, every_call: bool = False) -> None:
        """every_call: the calls added are those of all kinds, so that those that launched nothing are no part of it."""
        share = memory_bytes // 8
        self._join = LaunchJoin((), 3 * share)
        self._host, self.steps = Rows(_HOST, share), Rows(_STEPS, share)
        self._readings, self._marks = SortedRows(_READINGS, ("time",), share), SortedRows(_MARKS, ("time",), share)
        self.names, self.streams, self.units = Words(share), Words(share), Words(share // 8)
        self.left_out: Counter[str] = Counter()
        self._every_call = every_call
        self._memory_bytes = memory_bytes
        self._first: dict[str, int] = {}
        self.costs_known = True
        """Whether calls have a duration; without, they are only the moment of the hand-over."""

    @property
    def pieces(self) -> int:
        return self._join.pieces

    @property
    def calls(self) -> int:
        return self._join.calls

    def add_work(
        self, start: Ints, end: Ints, *, correlation: Ints | int, device: Ints | int, stream: Codes, name: Codes
    ) -> None:
        """Pieces of work, shapes (rows,); a negative device is unknown."""
        columns = {"correlation": correlation, "device": device, "stream": stream, "name": name}
        self._add(self._join.add_work, "work", start, end, columns)

    def add_calls(self, start: Ints, end: Ints, *, correlation: Ints) -> None:
        """Launch calls, shapes (rows,)."""
        self._add(self._join.add_calls, "launch calls", start, end, {"correlation": correlation})

    def add_host(self, start: Ints, end: Ints, *, thread: Codes, name: Codes) -> None:
        """Work of the host, which is shown when the capture has none of a device. Shapes (rows,)."""
        self._add(self._host.add, "host calls", start, end, {"thread": thread, "name": name})

    def add_steps(self, start: Ints, end: Ints, *, name: Codes) -> None:
        """Steps or requests in order of appearance, shapes (rows,); they are numbered from 0."""
        number = np.arange(len(self.steps), len(self.steps) + len(start))
        self._add(self.steps.add, "steps", start, end, {"number": number, "name": name})

    def add_readings(self, time: Ints, value: Floats, *, name: Codes, unit: Codes | int, device: Ints | int) -> None:
        """Counter readings, shapes (rows,); those that are no number are left out, a negative unit is none."""
        good = np.isfinite(value) & (time >= -MAX_NS) & (time <= MAX_NS)
        self.left_out["readings without a number or a time"] += int((~good).sum())
        self._append(self._readings.add, "readings", good, time=time, value=value, name=name, unit=unit, device=device)

    def add_marks(self, start: Ints, end: Ints, *, name: Codes, stream: Codes | int) -> None:
        """Moments, or ranges that are shown as their end with their duration. Shapes (rows,)."""
        good = self._good("marks", start, end)
        took = np.where(end > start, (end - start).astype(np.float64), np.nan)
        self._append(self._marks.add, "marks", good, time=end, took=took, name=name, stream=stream)

    def _add(self, add: Callable[..., None], what: str, start: Ints, end: Ints, columns: Mapping[str, Any]) -> None:
        self._append(add, what, self._good(what, start, end), start=start, end=end, **columns)

    def _append(self, add: Callable[..., None], what: str, good: npt.NDArray[np.bool_], **columns: Any) -> None:
        if not good.all():
            columns = {key: value[good] if isinstance(value, np.ndarray) else value for key, value in columns.items()}
        first = next(iter(columns.values()))
        if len(first):
            self._first[what] = min(self._first.get(what, MAX_NS), int(first.min()))
            add(**columns)

    def _good(self, what: str, start: Ints, end: Ints) -> npt.NDArray[np.bool_]:
        good = (start >= -MAX_NS) & (end >= start) & (end <= MAX_NS)
        if not good.all():
            self.left_out[f"{what} without usable times"] += int((~good).sum())
        return good

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
        shown = {"work" if self.pieces else "host calls", "steps", "readings", "marks"}
        if not self._first.keys() & (shown - {"steps"}):
            reason = f" ({'; '.join(lines)})" if lines else ""
            raise TelemetryError(where, f"{what} in which nothing ran{reason}", remedy)
        self._join.join()
        found = self._sections(base_ns if base_ns is not None else -self._earliest(shown), lines)
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

    def _earliest(self, shown: Set[str]) -> int:
        """The first time there is, on the clock of the tables."""
        first = [time for what, time in self._first.items() if what in shown]
        called = self._join.first_call if self._every_call else self._first.get("launch calls")
        return min([*first, called] if self.pieces and called is not None else first)

    def _sections(self, shift: int, notes: list[str]) -> list[Section | Stream]:
        steps = self.steps.table()
        found: list[Section | Stream] = []
        if self.pieces:
            notes += work_notes(self._join)
            found.append(self._join.section(shift, steps, None if self.costs_known else _no_cost))
        elif len(self._host):
            found.append(self._host_section(steps, shift, notes))
        if len(steps):
            found.append(_step_section(steps, shift))
        if len(self._readings):
            found.append(Stream(COUNTER, lambda: _readings(self._readings, shift)))
        if len(self._marks):
            found.append(Stream(MARK, lambda: _marks(self._marks, shift, len(self.units))))
        return found

    def _host_section(self, steps: Table, shift: int, notes: list[str]) -> Stream:
        kept = outermost(self._host, "thread", self._memory_bytes // 4)
        nested = len(self._host) - len(kept)
        notes.append(f"no device work in it: outermost host calls are shown, nested ones left out: {nested:,}")

        def blocks() -> Iterator[Block]:
            for part in kept.blocks():
                end = part["end"] + shift
                yield (
                    end,
                    {
                        "name": part["name"],
                        "start_ns": part["start"] + shift,
                        "end_ns": end,
                        "stream": part["thread"],
                        "request": absent(step_of(part["start"], steps)),
                    },
                )

        return Stream(EXECUTION, blocks)


def codes(words: Words, values: Ints) -> npt.NDArray[np.int32]:
    """Code of each number in `values`, shape (rows,); one look-up per different number."""
    different, index = np.unique(values, return_inverse=True)
    found: npt.NDArray[np.int32] = words.codes(different.tolist())[index]
    return found


def _no_cost(rows: Table) -> Columns:
    return {"launch_ns": np.full(len(rows), ABSENT)}


def _step_section(steps: Table, shift: int) -> Section:
    end = steps["end"] + shift

    def columns(rows: Ints) -> Columns:
        part = steps[rows]
        return {
            "name": part["name"],
            "start_ns": part["start"] + shift,
            "end_ns": end[rows],
            "request": part["number"],
        }

    return Section(REQUEST, end, columns)


def _readings(rows: SortedRows, shift: int) -> Iterator[Block]:
    for part in rows.blocks():
        time = part["time"] + shift
        yield (
            time,
            {
                "name": part["name"],
                "start_ns": time,
                "end_ns": time,
                "device": absent(part["device"]),
                "value": part["value"],
                "unit": part["unit"],
            },
        )


def _marks(rows: SortedRows, shift: int, nanoseconds: int) -> Iterator[Block]:
    for part in rows.blocks():
        time = part["time"] + shift
        yield (
            time,
            {
                "name": part["name"],
                "start_ns": time,
                "end_ns": time,
                "stream": part["stream"],
                "value": part["took"],
                "unit": np.where(np.isnan(part["took"]), -1, nanoseconds),
            },
        )
