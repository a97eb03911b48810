"""An XProf profile turned into executions and requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.kineto_batches import Columns, Section, Stream
from fusetui.importers.kineto_events import STEP
from fusetui.importers.launchjoin import LaunchJoin
from fusetui.importers.worknotes import overlap_note
from fusetui.importers.xprof_rows import DEVICE, HOST, ROW, Line, Profile
from fusetui.importers.xprof_work import Work
from fusetui.telemetry.header import Clock
from fusetui.telemetry.schema import MAPPINGS, PLANNED, REQUEST

STEP_LINE: Final = "Steps"
TPU_WORK: Final = "XLA Ops"
_STREAM: Final = "Stream"
STEP_NAME: Final = "step"

Ints = npt.NDArray[np.int64]
Table = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Found:
    """Sections and words of a profile, and what is to be said of it."""

    sections: Sequence[Section | Stream]
    words: Mapping[str, Sequence[str | None]]
    notes: Sequence[str]


def found_in(profile: Profile, shift: int | None) -> Found:
    """What ran and the steps; no sections when no compiled work and no kernel is in it.

    shift  ns to add to get the time since the epoch (None: it is not known, time 0 is the first piece of work)
    """
    lines, notes = profile.lines, list[str]()
    streamed = streamed_planes(lines)
    on_device = np.array([is_work_line(line, streamed) for line in lines], np.bool_)
    on_host = np.array([line.plane.startswith(HOST) for line in lines], np.bool_)
    work, marked = Work(lines, profile.memory_bytes), list[Table]()
    for rows in profile.rows.chunks():
        host = on_host[rows["stream"]]
        work.add(rows[on_device[rows["stream"]]])
        work.add_calls(rows[host & (rows["correlation"] != 0)])
        marked.append(rows[(host | ~on_device[rows["stream"]]) & (rows["step"] >= 0)])
    steps = _steps(marked, lines)
    if len(np.unique(steps["number"])) < len(steps):
        notes.append(f"step numbers repeat: the {len(steps):,} steps are counted from 0 in order of time")
        steps = np.sort(steps, order=["start", "end"])
        steps["number"] = np.arange(len(steps))
    if not work.seen:
        work = Work(lines, profile.memory_bytes)
        for rows in profile.rows.chunks():
            work.add(rows[on_host[rows["stream"]] & rows["op"] & (rows["correlation"] == 0)])
        if work.seen:
            notes.append("no device planes: operations of compiled modules on the host are shown")
    join = work.joined()
    if work.containers:
        notes.append(f"operations that contain others (while, call) left out: {work.containers:,}")
    if not join.pieces:
        return Found([], {}, notes)
    notes += _notes(join)
    first = [time for time in (work.first, *steps["start"].tolist()) if time is not None]
    zero = shift if shift is not None else -min(first)
    found: list[Section | Stream] = [join.section(zero, steps, _planned)]
    if len(steps):
        found.append(_step_section(steps, len(profile.names), zero))
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


def streamed_planes(lines: Sequence[Line]) -> set[str]:
    """Planes of devices that have streams: what else is on them is derived from those."""
    return {line.plane for line in lines if line.plane.startswith(DEVICE) and line.name.startswith(_STREAM)}


def is_work_line(line: Line, streamed: set[str]) -> bool:
    """Whether the events of a line are work: a stream of a GPU, else what a TPU core ran."""
    begins = _STREAM if line.plane in streamed else TPU_WORK
    return line.plane.startswith(DEVICE) and line.name.startswith(begins)


def _steps(marked: Sequence[Table], lines: Sequence[Line]) -> Table:
    """Step annotations of the host, else the steps of the first device that has some."""
    rows = np.concatenate(marked) if marked else np.empty(0, ROW)
    by_line = {int(code): rows[rows["stream"] == code] for code in np.unique(rows["stream"])}
    on_host = np.isin(rows["stream"], [code for code in by_line if lines[code].plane.startswith(HOST)])
    of_device = (
        part for code, part in by_line.items() if lines[code].plane.startswith(DEVICE) and lines[code].name == STEP_LINE
    )
    found = rows[on_host] if on_host.any() else next(of_device, rows[:0])
    steps = np.empty(len(found), STEP)
    for name, source in (("number", "step"), ("start", "start"), ("end", "end")):
        steps[name] = found[source]
    return steps


def _planned(rows: Table) -> Columns:
    return {"plan": rows["plan"], "mapping": np.where(rows["plan"] >= 0, MAPPINGS.index(PLANNED), -1)}


def _step_section(steps: Table, name: int, shift: int) -> Section:
    end = steps["end"] + shift

    def columns(rows: Ints) -> Columns:
        step = steps[rows]
        return {
            "name": np.full(len(rows), name),
            "start_ns": step["start"] + shift,
            "end_ns": end[rows],
            "request": step["number"],
        }

    return Section(REQUEST, end, columns)


def _notes(join: LaunchJoin) -> list[str]:
    notes = []
    if not join.keyed:
        notes.append("no correlation ids in it: queue wait is not measured")
    elif orphans := join.pieces - join.together:
        notes.append(f"device work without its launch call in the capture: {orphans:,} of {join.pieces:,}")
    if join.overlapping:
        notes.append(overlap_note(join.overlapping))
    return notes
