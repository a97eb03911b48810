"""The events of one line of an XPlane profile, a megabyte at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.kineto_times import MAX_NS
from fusetui.importers.protowire import LENGTH, VARINT, Fields, Spans, fields_of, pieces
from fusetui.importers.rows import Words
from fusetui.importers.xplane_meta import Plane
from fusetui.importers.xprof_rows import Profile, plan_name

_WINDOW: Final = 1 << 20
_MAX_EVENT: Final = 16 << 20
_EVENTS: Final = 4
_WANTED: Final = ("correlation_id", "hlo_op", "hlo_module", "program_id", "step_num", "device_ordinal")
_FEW: Final = 1 << 20
_I32_MAX: Final = np.iinfo(np.int32).max
_MAX_PS: Final = MAX_NS  # 46 days: an offset in a line beyond that is no time

Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class Reader:
    """Takes events of planes into a profile.

    broken  events that could not be parsed
    seen    all events
    """

    spans: Spans
    profile: Profile
    broken: int = 0
    seen: int = 0
    _plane: Plane = field(default_factory=Plane)
    _names: dict[int, int] = field(default_factory=dict)
    _plans: dict[tuple[int, int], int] = field(default_factory=dict)

    def enter(self, plane: Plane) -> None:
        """Read the names of that plane from now on."""
        self._plane, self._names, self._plans = plane, {}, {}

    def take(self, start: int, size: int, line: int, base_ns: int, *, marked_only: bool, steps: bool) -> None:
        """Read a line.

        line         its code
        marked_only  keep only events with one of the wanted statistics: most host events are Python calls
        steps        its events are steps, named by their numbers
        """
        for data, starts, sizes in _windows(self.spans, start, size):
            events = fields_of(data, starts, sizes)
            self.seen += len(starts)
            self.broken += int(events.broken.sum())
            found = self._statistics(data, events)
            kept = ~events.broken
            if marked_only:
                kept &= (found["correlation_id"] > 0) | (found["hlo_op"] > 0) | (found["step_num"] >= 0)
            self._add(events, found, np.flatnonzero(kept), line, base_ns, steps=steps)

    def _statistics(self, data: npt.NDArray[np.uint8], events: Fields) -> dict[str, Ints]:
        """Per event each wanted statistic, shape (events,); -1 where it has none. Texts are ids of names."""
        owner, at, size = events.only(4, LENGTH)
        ids = {name: key for key, name in self._plane.stat_names.items() if name in _WANTED}
        found = {name: np.full(len(events.broken), -1, np.int64) for name in _WANTED}
        if not len(owner) or not ids:
            return found
        stats = fields_of(data, at.astype(np.int64), size)
        kind = stats.last(1, VARINT)
        values = np.maximum(stats.last(3, VARINT), stats.last(4, VARINT))
        texts = stats.last(7, VARINT)
        holder, start, length = stats.only(5, LENGTH)
        inline = dict(zip(holder.tolist(), zip(start.tolist(), length.tolist(), strict=True), strict=True))
        for name, key in ids.items():
            rows = np.flatnonzero(kind == key)
            value = texts[rows] if name in ("hlo_op", "hlo_module") else values[rows]
            chosen = np.minimum(value, np.uint64(np.iinfo(np.int64).max)).astype(np.int64)
            for i in np.flatnonzero(np.isin(rows, holder)).tolist():
                chosen[i] = self._inline(data, name, inline[int(rows[i])])
            found[name][owner[rows]] = chosen
        return found

    def _inline(self, data: npt.NDArray[np.uint8], name: str, place: tuple[int, int]) -> int:
        """A text that stands in the event itself: its number, or the id of a name made for it."""
        start, size = place
        text = data[start : start + min(size, 4096)].tobytes().decode("utf-8", "replace")
        if name not in ("hlo_op", "hlo_module"):
            return int(text) if text.isdecimal() and len(text) < 19 else -1
        names = self._plane.stat_names
        if text not in names.values() and len(names) < 1 << 16:
            names[max(names, default=0) + 1] = text
        return next((key for key, known in names.items() if known == text), -1)

    def _add(self, events: Fields, found: dict[str, Ints], rows: Ints, line: int, base_ns: int, *, steps: bool) -> None:
        offset, took = events.last(2, VARINT)[rows], events.last(3, VARINT)[rows]
        good = (offset < _MAX_PS) & (took < _MAX_PS) & (abs(base_ns) < MAX_NS)
        self.profile.left_out += int((~good).sum())
        rows, offset, took = rows[good], offset[good], took[good]
        start = _nearest_ns(offset) + base_ns
        names = self._name_codes(events.last(1, VARINT)[rows])
        step = found["step_num"][rows]
        if steps:
            step = np.where(step < 0, _numbers(self.profile.names, names), step)
        self.profile.rows.add(
            start=start,
            end=start + _nearest_ns(took),
            correlation=np.maximum(found["correlation_id"][rows], 0),
            step=step,
            name=names,
            stream=np.full(len(rows), line),
            plan=self._plan_codes(found["hlo_module"][rows], found["program_id"][rows]),
            device=np.clip(found["device_ordinal"][rows], -1, _I32_MAX),
            op=found["hlo_op"][rows] > 0,
        )

    def _name_codes(self, ids: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
        known, inverse = _distinct(ids)
        return np.array([self._name_code(key) for key in known.tolist()], np.int32)[inverse]

    def _name_code(self, key: int) -> int:
        if key not in self._names:
            self._names[key] = self.profile.names[self._plane.event_names.get(key) or "?"]
        return self._names[key]

    def _plan_codes(self, modules: Ints, programs: Ints) -> npt.NDArray[np.int32]:
        known_modules, of_module = _distinct(modules)
        known_programs, of_program = _distinct(programs)
        pairs, inverse = _distinct(of_module * len(known_programs) + of_program)
        codes = [
            self._plan_code(
                int(known_modules[pair // len(known_programs)]), int(known_programs[pair % len(known_programs)])
            )
            for pair in pairs.tolist()
        ]
        return np.array(codes, np.int32)[inverse]

    def _plan_code(self, module: int, program: int) -> int:
        key = module, program
        if key not in self._plans:
            name = self._plane.stat_names.get(module, "") if module > 0 else ""
            self._plans[key] = self.profile.plans[plan_name(name, program if program >= 0 else None)] if name else -1
        return self._plans[key]


def _distinct(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Ints]:
    """The different values and the position of each among them; without sorting where they are small."""
    if not len(values) or values.max() >= _FEW or values.min() < -1:
        known, inverse = np.unique(values, return_inverse=True)
        return known, inverse.astype(np.int64)
    shifted = values.astype(np.int64) + 1
    used = np.bincount(shifted) > 0
    return np.flatnonzero(used) - 1, (np.cumsum(used) - 1)[shifted]


def _nearest_ns(ps: npt.NDArray[np.uint64]) -> Ints:
    nearest: Ints = ((ps + np.uint64(500)) // np.uint64(1000)).astype(np.int64)
    return nearest


def _numbers(words: Words, codes: npt.NDArray[np.int32]) -> Ints:
    """Names that are numbers, as such; -1 for others."""
    known: dict[int, Any] = {code: text for text, code in words.items() if code in set(codes.tolist())}
    return np.array(
        [int(t) if str(t := known.get(c, "")).isdecimal() and len(str(t)) < 19 else -1 for c in codes.tolist()],
        np.int64,
    )


def _windows(spans: Spans, start: int, size: int) -> Iterator[tuple[npt.NDArray[np.uint8], Ints, Ints]]:
    """Bytes of a line with the places of the events in them."""
    at, end, held = start, start + size, 0
    while at < end:
        wanted = min(max(_WINDOW, 2 * held), end - at)
        data = spans.bytes_at(at, wanted)
        last = at + len(data) >= end or len(data) < wanted
        starts, sizes, used = pieces(data, _EVENTS, last)
        if starts:
            yield np.frombuffer(data, np.uint8), np.array(starts, np.int64), np.array(sizes, np.int64)
        if last or len(data) > _MAX_EVENT:
            return
        at += used
        held = len(data) - used
