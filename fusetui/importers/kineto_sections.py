"""Kineto tables joined and turned into executions, requests and counters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.kineto_batches import ABSENT, Block, Columns, Section, Stream
from fusetui.importers.kineto_compiles import REGION_NAME, Compiled, compiled
from fusetui.importers.kineto_events import Events
from fusetui.importers.kineto_inner import inner_work
from fusetui.importers.kineto_join import step_of
from fusetui.importers.kineto_shapes import shape_keys
from fusetui.importers.kineto_times import MAX_NS
from fusetui.importers.launchjoin import absent
from fusetui.importers.nesting import outermost
from fusetui.importers.sortedrows import SortedRows
from fusetui.telemetry.header import Clock
from fusetui.telemetry.schema import COUNTER, EXECUTION, MAPPINGS, MARK, PLANNED, REQUEST

_EPOCH_SINCE_NS: Final = 10**17
"""March 1973: a later time counts from the epoch, an earlier one from a boot or a profiler start."""

STEP_NAME: Final = "ProfilerStep"
COMPILE_NAME: Final = "compile"
_CALLS: Final = ("launches", "steps")

Ints = npt.NDArray[np.int64]
Table = npt.NDArray[Any]
_ToColumns = Callable[[Ints], Columns]


def words(events: Events) -> dict[str, list[str | None]]:
    """Text of each code per dictionary column."""
    return {
        "name": [*events.names.texts(), STEP_NAME, COMPILE_NAME],
        "plan": [text.removeprefix(REGION_NAME) for text in events.names.texts()] if len(events.regions) else [],
        "mapping": list(MAPPINGS),
        "stream": [text or None for text in events.streams.texts()],
        "shape": shape_keys(events.shapes),
        "unit": ["bytes", "ns"],
    }


def device_sections(events: Events, base_ns: int | None) -> tuple[list[Section | Stream], Clock]:
    """Joined device work, the steps and the counters, with absolute times where `base_ns` or the times allow."""
    shift, clock = _shift(min(events.first.get(what, MAX_NS) for what in ("device", *_CALLS)), base_ns)
    plans = _compiled(events)
    work = events.join.section(shift, events.steps.table(), lambda rows: _launched_columns(rows, plans))
    return [work, *_others(events, plans, shift)], clock


def host_sections(
    events: Events, memory_bytes: int, base_ns: int | None, *, inner: bool
) -> tuple[list[Section | Stream], Clock, int]:
    """Host operators, the steps and the counters; and how many operators lie in others.

    inner  show the operators inside compiled regions and backward nodes too
    """
    kept = outermost(events.host_operators, "thread", memory_bytes)
    first = events.first["host"]
    work = inner_work(events.host_operators.table(), list(map(str, events.names))) if inner else None
    if work is not None:
        first = int(work["start"].min())
    shift, clock = _shift(min(first, *(events.first.get(what, MAX_NS) for what in _CALLS)), base_ns)
    steps, plans = events.steps.table(), _compiled(events)

    def blocks() -> Iterator[Block]:
        for part in kept.blocks():
            columns = _host_columns(part, steps, plans, shift)
            yield columns["end_ns"], columns

    ran: Section | Stream = Stream(EXECUTION, blocks)
    if work is not None:
        ran = Section(EXECUTION, work["end"] + shift, lambda rows: _host_columns(work[rows], steps, plans, shift))
    return [ran, *_others(events, plans, shift)], clock, len(events.host_operators) - len(kept)


def _others(events: Events, plans: Compiled, shift: int) -> Iterator[Section | Stream]:
    steps, words_n = events.steps.table(), len(events.names)
    if len(steps):
        yield Section(REQUEST, steps["end"] + shift, _step_columns(steps, words_n, shift))
    if len(plans.compiles):
        yield Section(MARK, plans.compiles["end"] + shift, _compile_columns(plans, words_n + 1, shift))
    if len(events.counters):
        yield Stream(COUNTER, lambda: _readings(events.counters, shift))


def _shift(earliest: int, base_ns: int | None) -> tuple[int, Clock]:
    """What to add to the times as written, and the clock that makes."""
    if earliest + (base_ns or 0) >= _EPOCH_SINCE_NS:
        return base_ns or 0, "epoch"
    return -earliest, "trace"


def _compiled(events: Events) -> Compiled:
    regions, compiles = events.regions.table(), events.compiles.table()
    keys = shape_keys(events.shapes) if len(regions) and len(events.host_operators) else []
    shaped = np.array([key is not None for key in keys], np.bool_)
    return compiled(regions, compiles, events.host_operators.chunks(), shaped)


def _launched_columns(rows: Table, plans: Compiled) -> Columns:
    region = np.full(len(rows), -1, np.int64)
    called = rows["called"] != ABSENT
    region[called] = plans.region_of(rows["thread"][called], rows["called"][called])
    return {"shape": rows["shape"], **_plan_columns(plans, region)}


def _plan_columns(plans: Compiled, region: Ints) -> Columns:
    """What ran in a compiled region is the plan's."""
    if not len(plans.regions):
        return {}
    name = np.where(region >= 0, plans.regions["name"][np.maximum(region, 0)], -1)
    return {"plan": name, "mapping": np.where(region >= 0, MAPPINGS.index(PLANNED), -1)}


def _host_columns(work: Table, steps: Table, plans: Compiled, shift: int) -> dict[str, Any]:
    region = plans.region_of(work["thread"], work["start"])
    name, shape = work["name"].astype(np.int64), work["shape"].astype(np.int64)
    if len(plans.regions):
        # A region is an operator without operands of its own.
        own = (region >= 0) & np.isin(name, plans.regions["name"])
        name[own] = plans.regions["frame"][region[own]]
        own &= plans.regions["end"][region] == work["end"]
        own &= plans.regions["start"][region] == work["start"]
        shape[own] = plans.shape[region[own]]
    return {
        "name": name,
        "start_ns": work["start"] + shift,
        "end_ns": work["end"] + shift,
        "stream": work["thread"],
        "request": absent(step_of(work["start"], steps)),
        "shape": shape,
        **_plan_columns(plans, region),
    }


def _step_columns(steps: Table, name: int, shift: int) -> _ToColumns:
    def columns(rows: Ints) -> Columns:
        step = steps[rows]
        start = step["start"] + shift
        return {
            "name": np.full(len(rows), name),
            "enqueue_ns": np.full(len(start), ABSENT),  # nobody records when a step was asked for
            "start_ns": start,
            "end_ns": step["end"] + shift,
            "request": step["number"],
        }

    return columns


def _compile_columns(plans: Compiled, name: int, shift: int) -> _ToColumns:
    shapes, regions = plans.compile_shape(), plans.compile_region_name()

    def columns(rows: Ints) -> Columns:
        end = plans.compiles["end"][rows]
        return {
            "name": np.full(len(rows), name),
            "start_ns": end + shift,
            "end_ns": end + shift,
            "stream": plans.compiles["thread"][rows],
            "plan": regions[rows],
            "shape": shapes[rows],
            "value": (end - plans.compiles["start"][rows]).astype(np.float64),
            "unit": np.ones(len(rows), np.int64),
        }

    return columns


def _readings(counters: SortedRows, shift: int) -> Iterator[Block]:
    for part in counters.blocks():
        time = part["time"] + shift
        yield (
            time,
            {
                "name": part["name"],
                "start_ns": time,
                "end_ns": time,
                "device": absent(part["device"]),
                "value": part["value"],
                "unit": np.zeros(len(part), np.int64),
            },
        )
