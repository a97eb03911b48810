"""Kineto tables joined and turned into executions, requests and counters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.kineto_batches import ABSENT, Columns, Section
from fusetui.importers.kineto_compiles import REGION_NAME, Compiled, compiled
from fusetui.importers.kineto_events import Events
from fusetui.importers.kineto_inner import inner_work
from fusetui.importers.kineto_join import graph_nodes, launch_of, outermost, shape_of, step_of
from fusetui.importers.kineto_shapes import shape_keys
from fusetui.telemetry.header import Clock
from fusetui.telemetry.schema import COUNTER, EXECUTION, MAPPINGS, MARK, PLANNED, REQUEST

_EPOCH_SINCE_NS: Final = 10**17
"""March 1973: a later time counts from the epoch, an earlier one from a boot or a profiler start."""

STEP_NAME: Final = "ProfilerStep"
COMPILE_NAME: Final = "compile"

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


def sections(events: Events, base_ns: int | None, *, inner: bool = False) -> tuple[list[Section], Clock]:
    """What ran, the steps and the counters, with absolute times where `base_ns` or the times themselves allow.

    inner  show the operators inside compiled regions and backward nodes where there is no device work

    Empty when neither device work nor host operators were found.
    """
    device, launches, steps = events.device.table(), events.launches.table(), events.steps.table()
    host = events.host_operators.table()
    if len(device):
        work = device
    else:
        work = inner_work(host, list(map(str, events.names))) if inner else host[outermost(host)]
    if not len(work):
        return [], "trace"
    earliest = min(int(table["start"].min()) for table in (work, launches, steps) if len(table))
    shift, clock = _shift(earliest, base_ns)
    plans = _compiled(events, host)
    if len(device):
        columns = _device_columns(device, launches, steps, events.operators.table(), plans, shift)
    else:
        columns = _host_columns(work, steps, plans, shift)
    found = [Section(EXECUTION, np.ascontiguousarray(work["end"]), columns)]
    if len(steps):
        found.append(Section(REQUEST, steps["end"], _step_columns(steps, len(events.names), shift)))
    if len(plans.compiles):
        found.append(Section(MARK, plans.compiles["end"], _compile_columns(plans, len(events.names) + 1, shift)))
    counters = events.counters.table()
    if len(counters):
        found.append(Section(COUNTER, counters["time"], _counter_columns(counters, shift)))
    return found, clock


def _shift(earliest: int, base_ns: int | None) -> tuple[int, Clock]:
    """What to add to the times as written, and the clock that makes."""
    if earliest + (base_ns or 0) >= _EPOCH_SINCE_NS:
        return base_ns or 0, "epoch"
    return -earliest, "trace"


def _compiled(events: Events, host: Table) -> Compiled:
    regions, compiles = events.regions.table(), events.compiles.table()
    keys = shape_keys(events.shapes) if len(regions) and len(host) else []
    return compiled(regions, compiles, host, np.array([key is not None for key in keys], np.bool_))


def _device_columns(
    device: Table, launches: Table, steps: Table, operators: Table, plans: Compiled, shift: int
) -> _ToColumns:
    launch = launch_of(device, launches)
    nodes = graph_nodes(device, launch)
    shapes = shape_of(device["external"], device["correlation"], operators)

    def columns(rows: Ints) -> Columns:
        work, by = device[rows], launch[rows]
        joined = by >= 0
        call = launches[by[joined]]
        enqueue, cost, issued = np.full(len(rows), ABSENT), np.full(len(rows), ABSENT), work["start"].copy()
        enqueue[joined] = call["end"] + shift
        cost[joined] = call["end"] - call["start"]
        issued[joined] = call["start"]
        region = np.full(len(rows), -1, np.int64)
        region[joined] = plans.region_of(call["thread"], call["start"])
        return {
            "name": work["name"],
            "enqueue_ns": enqueue,
            "start_ns": work["start"] + shift,
            "end_ns": work["end"] + shift,
            "launch_ns": cost,
            "node": _absent(nodes[rows]),
            "device": _absent(work["device"]),
            "stream": work["stream"],
            "request": _absent(step_of(issued, steps)),
            "shape": shapes[rows],
            **_plan_columns(plans, region),
        }

    return columns


def _plan_columns(plans: Compiled, region: Ints) -> Columns:
    """What ran in a compiled region is the plan's."""
    if not len(plans.regions):
        return {}
    name = np.where(region >= 0, plans.regions["name"][np.maximum(region, 0)], -1)
    return {"plan": name, "mapping": np.where(region >= 0, MAPPINGS.index(PLANNED), -1)}


def _host_columns(operators: Table, steps: Table, plans: Compiled, shift: int) -> _ToColumns:
    def columns(rows: Ints) -> Columns:
        work = operators[rows]
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
            "request": _absent(step_of(work["start"], steps)),
            "shape": shape,
            **_plan_columns(plans, region),
        }

    return columns


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


def _counter_columns(counters: Table, shift: int) -> _ToColumns:
    def columns(rows: Ints) -> Columns:
        reading = counters[rows]
        time = reading["time"] + shift
        return {
            "name": reading["name"],
            "start_ns": time,
            "end_ns": time,
            "device": _absent(reading["device"]),
            "value": reading["value"],
            "unit": np.zeros(len(rows), np.int64),
        }

    return columns


def _absent(values: npt.NDArray[Any]) -> Ints:
    return np.where(values < 0, ABSENT, values.astype(np.int64))
