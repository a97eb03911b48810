"""Which Kineto events matter, in every dialect since 2021, and their columns.

Categories are compared in lower case: `Kernel`, `Memcpy`, `Runtime` and `Operator` of 2021 are `kernel`, `gpu_memcpy`,
`cuda_runtime` and `cpu_op` of today; any runtime or driver category (CUDA, HIP, MTIA, PrivateUse1) holds launch calls,
so no list of call names is needed. `gpu_user_annotation` spans kernels and is not work. MTIA device events are work,
except `event_wait` and `event_record`, which only order streams.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import compress
from operator import attrgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.kineto_compiles import COMPILE, REGION, frame_of, is_compile, is_region
from fusetui.importers.kineto_stream import EventStream
from fusetui.importers.kineto_times import ABSENT, MAX_NS, NeedsTextError, to_ns
from fusetui.importers.kineto_types import Event
from fusetui.importers.launchjoin import LaunchJoin
from fusetui.importers.rows import Rows, Words
from fusetui.importers.sortedrows import SortedRows

_DEVICE_WORK: Final = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset", "mtia_ccp_events"})
_OPERATORS: Final = frozenset({"cpu_op", "operator"})
_MEMORY: Final = frozenset({"", "cpu_instant_event"})
_STREAM_ORDER: Final = frozenset({"event_wait", "event_record"})
_GRAPH_LAUNCH: Final = "GraphLaunch"
"""Ends the names of calls that replay a graph; only asked whether one left no work, never to join."""
_STEP = re.compile(r"ProfilerStep#(\d{1,18})\Z")
_I32_MAX: Final = (1 << 31) - 1
_NONE: Final = type(None)
_I63: Final = (1 << 63) - 1
NO_WORD: Final = -1

DEVICE: Final = np.dtype(
    [
        ("start", np.int64),
        ("end", np.int64),
        ("correlation", np.int64),
        ("external", np.int64),
        ("name", np.int32),
        ("stream", np.int32),
        ("device", np.int32),
    ]
)
GRAPH_LAUNCH: Final = np.dtype([("correlation", np.int64)])
OPERATOR: Final = np.dtype([("external", np.int64), ("shape", np.int32)])
HOST_OPERATOR: Final = np.dtype(
    [("start", np.int64), ("end", np.int64), ("name", np.int32), ("thread", np.int32), ("shape", np.int32)]
)
STEP: Final = np.dtype([("number", np.int64), ("start", np.int64), ("end", np.int64)])
COUNTER: Final = np.dtype([("time", np.int64), ("value", np.float64), ("name", np.int32), ("device", np.int32)])

Ints = npt.NDArray[np.int64]
_Handler = Callable[[list[Event], Ints, Ints], None]


class Events:
    """Columns of one capture, filled window by window; times in ns as written (no base time added).

    device, host_operators, steps, regions, compiles   tables of the dtypes above; id 0 = none
    operators, counters       the same, in order
    join                      has the launch calls
    graph_launches            those of the launches whose call replays a graph
    first                     what -> earliest start of it
    shapes_known              some external id is no repeated correlation id, so that it may name an operator
    names, streams, shapes    words behind the codes; shapes are (dims JSON, types JSON)
    left_out                  counts by reason
    """

    def __init__(self, memory_bytes: int, *, host_operators: bool) -> None:
        eighth = memory_bytes // 8
        self.device = Rows(DEVICE, eighth)
        self.join = LaunchJoin([("shape", "i4")], 3 * eighth, of_call=[("thread", "i4")])
        self.graph_launches = SortedRows(GRAPH_LAUNCH, ("correlation",), eighth // 8)
        self.operators = SortedRows(OPERATOR, ("external",), eighth)
        self.host_operators = Rows(HOST_OPERATOR, eighth)
        self.steps = Rows(STEP, eighth)
        self.counters = SortedRows(COUNTER, ("time",), eighth)
        self.regions = Rows(REGION, eighth // 8)
        self.compiles = Rows(COMPILE, eighth // 8)
        self.names = Words(eighth)
        self.streams = Words(eighth)
        self.shapes = Words(eighth)
        self.left_out: Counter[str] = Counter()
        self.first: dict[str, int] = {}
        self.shapes_known = False
        self._wants_host = host_operators
        self._handlers = _Handlers(self)

    def take(self, stream: EventStream) -> None:
        """Read all windows of a stream."""
        for window in stream.windows():
            try:
                self._take_window(window)
            except NeedsTextError:
                self._take_window(stream.again_exactly())

    def _take_window(self, events: list[Event]) -> None:
        groups: defaultdict[str, list[Event]] = defaultdict(list)
        for event in events:
            groups[event.cat].append(event)
        wanted: dict[_Handler, list[Event]] = {}
        for category, chosen in groups.items():
            if handler := self._handlers[category]:
                wanted[handler] = wanted[handler] + chosen if handler in wanted else chosen
        # Times first: nothing of a window may be kept when it must be decoded again.
        for handler, chosen, start, duration in [
            (handler, chosen, *_times(chosen)) for handler, chosen in wanted.items()
        ]:
            handler(chosen, start, duration)

    def _timed(self, events: list[Event], start: Ints, duration: Ints) -> tuple[list[Event], Ints, Ints]:
        """Only complete ("X") events with possible times, as events, start and end."""
        good = (start != ABSENT) & (duration >= 0) & (start <= MAX_NS - duration)
        phases = list(map(_ph, events))
        if phases.count("X") == len(events) and good.all():
            return events, start, start + duration
        complete = np.array([phase == "X" for phase in phases], np.bool_)
        self.left_out["without usable times"] += int((complete & ~good).sum())
        good &= complete
        return list(compress(events, good)), start[good], start[good] + duration[good]

    def _starts(self, what: str, start: Ints) -> None:
        if len(start):
            self.first[what] = min(self.first.get(what, MAX_NS), int(start.min()))

    def add_device(self, events: list[Event], start: Ints, duration: Ints) -> None:
        empty = (start == 0) & (duration == 0)
        if empty.any():
            self.left_out["with time 0 and duration 0"] += int(empty.sum())
            events = list(compress(events, ~empty))
            start, duration = start[~empty], duration[~empty]
        events, start, end = self._timed(events, start, duration)
        correlation, external = _ids(list(map(_correlation, events))), _externals(events)
        self.shapes_known |= bool((correlation != external).any())
        self._starts("device", start)
        self.device.add(
            start=start,
            end=end,
            correlation=correlation,
            external=external,
            name=self.names.codes(list(map(_name, events))),
            stream=self.streams.codes(_streams(events)),
            device=_devices(events),
        )

    def add_mtia(self, events: list[Event], start: Ints, duration: Ints) -> None:
        work = np.array([event.name not in _STREAM_ORDER for event in events], np.bool_)
        self.left_out["that only order streams"] += int((~work).sum())
        self.add_device(list(compress(events, work)), start[work], duration[work])

    def add_launches(self, events: list[Event], start: Ints, duration: Ints) -> None:
        events, start, end = self._timed(events, start, duration)
        correlation = _ids(list(map(_correlation, events)))
        real = correlation != 0
        thread = self.streams.codes(_threads(events))
        self._starts("launches", start[real])
        self.join.add_calls(start[real], end[real], correlation[real], thread=thread[real])
        if replays := {name for name in set(map(_name, events)) if name.endswith(_GRAPH_LAUNCH)}:
            replayed = np.array([event.name in replays for event in events], np.bool_)
            self.graph_launches.add(correlation=correlation[replayed & real])

    def add_operators(self, events: list[Event], start: Ints, duration: Ints) -> None:
        shapes = [(bytes(event.args.dims), bytes(event.args.dtypes)) for event in events]
        codes = self.shapes.codes(shapes)
        external = _externals(events)
        known = (external != 0) & np.array([bool(dims) for dims, _ in shapes], np.bool_)
        self.operators.add(external=external[known], shape=codes[known])
        self.add_steps(events, start, duration)
        self._add_compiled(events, start, duration)
        if self._wants_host:
            events, start, end = self._timed(events, start, duration)
            self._starts("host", start)
            self.host_operators.add(
                start=start,
                end=end,
                name=self.names.codes(list(map(_name, events))),
                thread=self.streams.codes(_threads(events)),
                shape=self.shapes.codes([(bytes(e.args.dims), bytes(e.args.dtypes)) for e in events]),
            )

    def _add_compiled(self, events: list[Event], start: Ints, duration: Ints) -> None:
        # Few different names occur in a window: each is looked at once.
        names = set(map(_name, events))
        regions, compiles = set(filter(is_region, names)), set(filter(is_compile, names))
        if not regions and not compiles:
            return
        at = [i for i, event in enumerate(events) if event.name in regions or event.name in compiles]
        found, begin, end = self._timed([events[i] for i in at], start[at], duration[at])
        thread = self.streams.codes(_threads(found))
        entered = np.array([event.name in regions for event in found], np.bool_)
        called = [event.name for event in compress(found, entered)]
        name, frame = self.names.codes(called), self.names.codes(list(map(frame_of, called)))
        self.regions.add(start=begin[entered], end=end[entered], thread=thread[entered], name=name, frame=frame)
        self.compiles.add(start=begin[~entered], end=end[~entered], thread=thread[~entered])

    def add_steps(self, events: list[Event], start: Ints, duration: Ints) -> None:
        at = [i for i, event in enumerate(events) if event.name.startswith("ProfilerStep#")]
        if at:
            steps, begin, end = self._timed([events[i] for i in at], start[at], duration[at])
            numbers = [_STEP.match(event.name) for event in steps]
            good = np.array([m is not None for m in numbers], np.bool_)
            number = np.array([int(m.group(1)) for m in numbers if m], np.int64)
            self._starts("steps", begin[good])
            self.steps.add(number=number, start=begin[good], end=end[good])

    def add_memory(self, events: list[Event], start: Ints, duration: Ints) -> None:
        at = [
            i
            for i, event in enumerate(events)
            if event.name == "[memory]" and type(event.args.allocated) is int and start[i] != ABSENT
        ]
        chosen = [events[i] for i in at]
        host = [event.args.device_id == -1 for event in chosen]
        self.counters.add(
            time=start[at],
            value=np.array([event.args.allocated for event in chosen], np.float64),
            name=self.names.codes(["host memory allocated" if h else "device memory allocated" for h in host]),
            device=_small([event.args.device_id for event in chosen]),
        )


class _Handlers(dict[str, _Handler | None]):
    """What to do with an event, by its category."""

    def __init__(self, events: Events) -> None:
        super().__init__()
        self._events = events

    def __missing__(self, category: str) -> _Handler | None:
        events, lower = self._events, category.lower()
        handler: _Handler | None = None
        if lower == "mtia_ccp_events":
            handler = events.add_mtia
        elif lower in _DEVICE_WORK:
            handler = events.add_device
        elif lower in _OPERATORS:
            handler = events.add_operators
        elif lower == "user_annotation":
            handler = events.add_steps
        elif lower in _MEMORY:
            handler = events.add_memory
        elif "runtime" in lower or "driver" in lower:
            handler = events.add_launches
        if len(self) < 1000:
            self[category] = handler
        return handler


_ph: Final = attrgetter("ph")
_ts: Final = attrgetter("ts")
_dur: Final = attrgetter("dur")
_name: Final = attrgetter("name")
_tid: Final = attrgetter("tid")
_stream_arg: Final = attrgetter("args.stream")
_device_arg: Final = attrgetter("args.device")
_correlation: Final = attrgetter("args.correlation")
_external: Final = attrgetter("args.external")
_external_2021: Final = attrgetter("args.external_2021")


def _times(events: list[Event]) -> tuple[Ints, Ints]:
    return to_ns(list(map(_ts, events))), to_ns(list(map(_dur, events)))


def _word(value: Any) -> str | int:
    return value if isinstance(value, (str, int)) else ""


def _streams(events: list[Event]) -> list[Any]:
    streams = list(map(_stream_arg, events))
    return streams if set(map(type, streams)) == {int} else list(map(_stream, events))


def _threads(events: list[Event]) -> list[Any]:
    threads = list(map(_tid, events))
    return threads if set(map(type, threads)) <= {int, str} else list(map(_word, threads))


def _devices(events: list[Event]) -> npt.NDArray[np.int32]:
    devices = list(map(_device_arg, events))
    if None in devices:
        devices = [event.pid if device is None else device for event, device in zip(events, devices, strict=True)]
    return _small(devices)


def _stream(event: Event) -> str | int:
    """The queue: args.stream, else the thread, which 2021 wrote as "stream 7"."""
    stream = event.args.stream
    if isinstance(stream, (int, str)) and stream != "":
        return stream
    tid = event.tid
    return tid.removeprefix("stream ") if isinstance(tid, str) else _word(tid)


def _externals(events: list[Event]) -> Ints:
    found = _ids(list(map(_external, events)))
    return found if found.any() else _ids(list(map(_external_2021, events)))


def _ids(values: list[Any]) -> Ints:
    """Correlation or external ids; 0 where there is none. Ids of 64 bits keep the lower 63."""
    kinds = set(map(type, values))
    if kinds == {_NONE}:
        return np.zeros(len(values), np.int64)
    if kinds == {int}:
        try:
            return np.fromiter(values, np.int64, len(values)) & _I63
        except OverflowError:
            pass  # an id beyond 63 bits: one by one below
    return np.fromiter(map(_id, values), np.int64, len(values))


def _id(value: Any) -> int:
    if isinstance(value, str) and value.isdecimal() and len(value) < 25:
        value = int(value)
    return value & _I63 if isinstance(value, int) else 0


def _small(values: list[Any]) -> npt.NDArray[np.int32]:
    """Device numbers; -1 where there is none."""
    if set(map(type, values)) == {int} and min(values) >= 0 and max(values) <= _I32_MAX:
        return np.fromiter(values, np.int32, len(values))
    return np.array([v if type(v) is int and 0 <= v <= _I32_MAX else NO_WORD for v in values], np.int32)
