"""An XProf profile turned into executions and requests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.kineto_batches import ABSENT, Columns, Section
from fusetui.importers.kineto_events import LAUNCH, STEP
from fusetui.importers.kineto_join import graph_nodes, launch_of, overlaps, step_of
from fusetui.importers.xprof_rows import DEVICE, HOST, Line, Profile
from fusetui.telemetry.header import Clock
from fusetui.telemetry.schema import EXECUTION, MAPPINGS, PLANNED, REQUEST

_NUMBER = re.compile(r":(\d{1,6})\b")
STEP_LINE: Final = "Steps"
TPU_WORK: Final = "XLA Ops"
_STREAM: Final = "Stream"
STEP_NAME: Final = "step"

Ints = npt.NDArray[np.int64]
Table = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Found:
    """Sections and words of a profile, and what is to be said of it."""

    sections: Sequence[Section]
    words: Mapping[str, Sequence[str | None]]
    notes: Sequence[str]


def found_in(profile: Profile, shift: int | None) -> Found:
    """What ran and the steps; no sections when no compiled work and no kernel is in it.

    shift  ns to add to get the time since the epoch (None: it is not known, time 0 is the first piece of work)
    """
    rows, lines = profile.rows.table(), profile.lines
    streamed = streamed_planes(lines)
    on_device = np.array([is_work_line(line, streamed) for line in lines], np.bool_)
    work = rows[on_device[rows["stream"]]]
    calls, steps = _host_calls(rows, lines), _steps(rows, lines)
    notes = []
    if len(np.unique(steps["number"])) < len(steps):
        notes.append(f"step numbers repeat: the {len(steps):,} steps are counted from 0 in order of time")
        steps = np.sort(steps, order=["start", "end"])
        steps["number"] = np.arange(len(steps))
    if not len(work):
        work = rows[_on(lines, HOST)[rows["stream"]] & rows["op"] & (rows["correlation"] == 0)]
        if len(work):
            notes.append("no device planes: operations of compiled modules on the host are shown")
            calls = calls[:0]
    whole = ~_containers(work)
    if not whole.all():
        work = work[whole]
        notes.append(f"operations that contain others (while, call) left out: {len(whole) - len(work):,}")
    if not len(work):
        return Found([], {}, notes)
    _number_devices(work, lines)
    zero = shift if shift is not None else -int(min(part["start"].min() for part in (work, calls, steps) if len(part)))
    launch = launch_of(work, calls)
    notes += _notes(work, launch)
    found = [Section(EXECUTION, np.ascontiguousarray(work["end"]), _columns(work, launch, calls, steps, zero))]
    if len(steps):
        name = len(profile.names)
        found.append(Section(REQUEST, np.ascontiguousarray(steps["end"]), _step_columns(steps, name, zero)))
    return Found(found, _words(profile), notes)


def clock_of(shift: int | None) -> Clock:
    """The clock of a profile read with that shift."""
    return "trace" if shift is None else "epoch"


def _words(profile: Profile) -> dict[str, Sequence[str | None]]:
    return {
        "name": [*profile.names.texts(), STEP_NAME],
        "stream": [line.name for line in profile.lines],
        "plan": list(profile.plans.texts()),
        "mapping": list(MAPPINGS),
    }


def _on(lines: Sequence[Line], plane: str) -> npt.NDArray[np.bool_]:
    return np.array([line.plane.startswith(plane) for line in lines], np.bool_)


def streamed_planes(lines: Sequence[Line]) -> set[str]:
    """Planes of devices that have streams: what else is on them is derived from those."""
    return {line.plane for line in lines if line.plane.startswith(DEVICE) and line.name.startswith(_STREAM)}


def is_work_line(line: Line, streamed: set[str]) -> bool:
    """Whether the events of a line are work: a stream of a GPU, else what a TPU core ran."""
    begins = _STREAM if line.plane in streamed else TPU_WORK
    return line.plane.startswith(DEVICE) and line.name.startswith(begins)


def _host_calls(rows: Table, lines: Sequence[Line]) -> Table:
    chosen = rows[_on(lines, HOST)[rows["stream"]] & (rows["correlation"] != 0)]
    calls = np.empty(len(chosen), LAUNCH)
    for name in ("correlation", "start", "end"):
        calls[name] = chosen[name]
    calls["thread"] = chosen["stream"]
    return calls


def _steps(rows: Table, lines: Sequence[Line]) -> Table:
    """Step annotations of the host, else the steps of the first device that has some."""
    found = rows[_on(lines, HOST)[rows["stream"]] & (rows["step"] >= 0)]
    if not len(found):
        marked = [i for i, line in enumerate(lines) if line.plane.startswith(DEVICE) and line.name == STEP_LINE]
        found = next((part for i in marked if len(part := rows[(rows["stream"] == i) & (rows["step"] >= 0)])), found)
    steps = np.empty(len(found), STEP)
    for name, source in (("number", "step"), ("start", "start"), ("end", "end")):
        steps[name] = found[source]
    return steps


def _containers(rows: Table) -> npt.NDArray[np.bool_]:
    """Which rows hold the next row of their line and so are no work of their own. Shape (rows,)."""
    plain = np.flatnonzero(rows["correlation"] == 0)  # kernels do not nest
    result = np.zeros(len(rows), np.bool_)
    if len(plain) < 2:
        return result
    line, start, end = (rows[name][plain] for name in ("stream", "start", "end"))
    order = np.lexsort((-end, start, line))
    line, start, end = line[order], start[order], end[order]
    holds = (line[:-1] == line[1:]) & (start[1:] < end[:-1]) & (end[1:] <= end[:-1])
    # Two operations of one time are a tie of the clock, not a loop and its body.
    holds &= (start[1:] > start[:-1]) | (end[1:] < end[:-1])
    result[plain[order[:-1]]] = holds
    return result


def _number_devices(work: Table, lines: Sequence[Line]) -> None:
    """Put the number of the device into rows whose plane has one."""
    numbers = [int(match[1]) if (match := _NUMBER.search(line.plane)) else -1 for line in lines]
    device = np.array(numbers, np.int32)[work["stream"]]
    work["device"] = np.where(device >= 0, device, work["device"])


def _columns(work: Table, launch: Ints, calls: Table, steps: Table, shift: int) -> Any:
    nodes = graph_nodes(work, launch)

    def columns(rows: Ints) -> Columns:
        row, by = work[rows], launch[rows]
        joined = by >= 0
        call = calls[by[joined]]
        enqueue, cost, issued = np.full(len(rows), ABSENT), np.full(len(rows), ABSENT), row["start"].copy()
        enqueue[joined], cost[joined] = call["end"] + shift, call["end"] - call["start"]
        issued[joined] = call["start"]
        return {
            "name": row["name"],
            "enqueue_ns": enqueue,
            "start_ns": row["start"] + shift,
            "end_ns": row["end"] + shift,
            "launch_ns": cost,
            "node": _absent(nodes[rows]),
            "device": _absent(row["device"]),
            "stream": row["stream"],
            "request": _absent(step_of(issued, steps)),
            "plan": row["plan"],
            "mapping": np.where(row["plan"] >= 0, MAPPINGS.index(PLANNED), -1),
        }

    return columns


def _step_columns(steps: Table, name: int, shift: int) -> Any:
    def columns(rows: Ints) -> Columns:
        step = steps[rows]
        return {
            "name": np.full(len(rows), name),
            "start_ns": step["start"] + shift,
            "end_ns": step["end"] + shift,
            "request": step["number"],
        }

    return columns


def _notes(work: Table, launch: Ints) -> list[str]:
    notes = []
    orphans = int((launch < 0).sum())
    if (work["correlation"] == 0).all():
        notes.append("no correlation ids in it: queue wait is not measured")
    elif orphans:
        notes.append(f"device work without its launch call in the capture: {orphans:,} of {len(work):,}")
    overlapping = overlaps(work)
    if overlapping:
        notes.append(f"device work that overlaps its predecessor on the same stream: {overlapping:,}")
    return notes


def _absent(values: npt.NDArray[Any]) -> Ints:
    return np.where(values < 0, ABSENT, values.astype(np.int64))
