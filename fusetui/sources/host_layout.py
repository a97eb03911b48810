"""From sums per task to rows on CPUs: executions that add up to what the kernel reports, and claim no more.

The kernel tells, per interval, for each task how long it ran, how long it waited runnable and in how many time
slices, and for each CPU how long it was busy. It does not tell when in the interval, nor (after a migration) on
which CPU. The encoding:

- A task's n slices become n executions of run/n each, every one enqueued wait/n before its start: the mean slice.
  Throughput, the means of queue wait and of service time, and the mean queue depth are exact; quantiles compare
  tasks and intervals, and cannot show how slices differ within one. A task that never left its CPU has one row
  and no wait.
- With more than `max_rows` slices in an interval a row stands for several of them (`batch` says how many), and the
  queue depth taken from rows is too small by that factor; the counter "tasks waiting, mean" stays exact.
- Per CPU, rows lie end to end with the idle time spread between them and never overlap, so the union of busy time,
  hence core imbalance, agrees with the kernel's to one clock tick. What no task accounts for (interrupts, tasks that
  came and went between two looks, tasks not looked at) is a row "other" without a stream.
- A task is placed on the CPU it ran on last, as far as that one was busy; the rest goes where busy time is
  unaccounted for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.sources.host_tasks import TaskDelta

MAX_ROWS: Final = 20_000
OTHER: Final = "other"

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Laid:
    """Executions in order of end. All arrays have shape (rows,), times in ns.

    task     index into the deltas, -1 for what no task accounts for
    wait_ns  -1: not known
    slices   time slices a row stands for, 0: it kept a CPU it had
    """

    task: Ints
    cpu: Ints
    start_ns: Ints
    end_ns: Ints
    wait_ns: Ints
    slices: Ints


@dataclass(slots=True)
class _Piece:
    task: int
    cpu: int
    run_ns: int
    slices: int
    wait_ns: int


def lay_out(
    tasks: Sequence[TaskDelta],
    busy_ns: Mapping[int, int],
    from_ns: int,
    to_ns: int,
    *,
    tick_ns: int,
    max_rows: int = MAX_ROWS,
) -> Laid:
    """Executions in [from_ns, to_ns] for what tasks did and CPUs were busy in it (see the module).

    tick_ns  how coarse `busy_ns` is: tasks may exceed it by that much, and less than that needs no "other"
    """
    room = {cpu: min(busy + tick_ns, to_ns - from_ns) for cpu, busy in busy_ns.items()}
    pieces = _place(tasks, room)
    for cpu, busy in busy_ns.items():
        rest = min(busy, to_ns - from_ns) - sum(p.run_ns for p in pieces if p.cpu == cpu)
        if rest > tick_ns:
            pieces.append(_Piece(-1, cpu, rest, 0, -1))
    return _spread(pieces, from_ns, to_ns, max_rows)


def _place(tasks: Sequence[TaskDelta], room: dict[int, int]) -> list[_Piece]:
    pieces: list[_Piece] = []
    moved: list[tuple[int, int]] = []
    for number in sorted(range(len(tasks)), key=lambda i: tasks[i].run_ns):
        task = tasks[number]
        here = min(task.run_ns, room.get(task.cpu, 0))
        if here > 0:
            room[task.cpu] -= here
            pieces.append(_piece(number, task, task.cpu, here))
        if here < task.run_ns:
            moved.append((number, task.run_ns - here))
    for number, rest in moved:
        for cpu in sorted(room, key=lambda c: -room[c]):
            here = min(rest, room[cpu])
            if here > 0:
                room[cpu] -= here
                rest -= here
                pieces.append(_piece(number, tasks[number], cpu, here))
    return pieces


def _piece(number: int, task: TaskDelta, cpu: int, run_ns: int) -> _Piece:
    slices = round(task.slices * run_ns / task.run_ns)
    if slices == 0 and task.slices > 0 and 2 * run_ns >= task.run_ns:
        slices = 1
    return _Piece(number, cpu, run_ns, slices, task.wait_ns // task.slices if slices else -1)


def _spread(pieces: Sequence[_Piece], from_ns: int, to_ns: int, max_rows: int) -> Laid:
    if not pieces:
        none = np.zeros(0, np.int64)
        return Laid(none, none, none, none, none, none)
    task, cpu, run, slices, wait = np.array(
        [(p.task, p.cpu, p.run_ns, p.slices, p.wait_ns) for p in pieces], np.int64
    ).T
    per_row = max(1, -(-int(slices.sum()) // max_rows))
    rows = np.minimum(np.maximum(-(-slices // per_row), 1), run)
    piece = np.repeat(np.arange(len(pieces)), rows)
    nth = np.arange(len(piece)) - np.repeat(np.cumsum(rows) - rows, rows)
    run_row = run[piece] // rows[piece] + (nth < run[piece] % rows[piece])
    slices_row = slices[piece] // rows[piece] + (nth < slices[piece] % rows[piece])
    order = np.lexsort(((nth + 0.5) / rows[piece], cpu[piece]))
    piece, run_row, slices_row = piece[order], run_row[order], slices_row[order]
    start = from_ns + _starts(cpu[piece], run_row, to_ns - from_ns)
    by_end = np.argsort(start + run_row, kind="stable")
    laid = (task[piece], cpu[piece], start, start + run_row, wait[piece], slices_row)
    return Laid(*(column[by_end] for column in laid))


def _starts(cpu: Ints, run: Ints, span_ns: int) -> Ints:
    """Offsets of rows sorted by CPU: end to end on each, idle time in proportion to the work before."""
    first = np.flatnonzero(np.diff(cpu, prepend=-1))
    counts = np.diff(first, append=len(cpu))
    total = np.repeat(np.add.reduceat(run, first), counts)
    before = np.cumsum(run) - run
    before -= np.repeat(before[first], counts)
    gap = np.floor((span_ns - total) * (before / total)).astype(np.int64)
    starts: Ints = before + gap
    return starts
