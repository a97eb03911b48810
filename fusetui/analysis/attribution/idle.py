"""When a device that a program drives stood idle between its first execution and its last, and when it only copied."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from fusetui.analysis.arrays import Bools, Floats, Ints
from fusetui.analysis.columns import NULL, Columns, Reader
from fusetui.analysis.mapping_ways import dense
from fusetui.analysis.work import Work, executions, requests

MIN_REQUESTS: Final = 20
"""Below, the few are loops and phases of a program, in progress all the time."""
_COPY: Final = re.compile(r"(hip|cuda)?mem(cpy|set|ory[ _]?(copy|set|fill))|copy(host|device|peer)", re.IGNORECASE)
"""What profilers call a transfer or a fill; a kernel that copies, such as `copy_kernel`, is a kernel."""


@dataclass(frozen=True, slots=True)
class Idle:
    """Of the device that was busy most.

    span_ns     from its first begin to its last end; where there are requests, of that only while one was in progress
    idle_ns     of that nothing ran; gaps: how many times
    longest_ns  the longest gap, which begins at longest_at_ns
    half        how many of the longest gaps make up half of idle_ns, and half_ns the shortest of those
    copied_ns   of span_ns only copies and fills ran
    """

    span_ns: int
    idle_ns: int
    gaps: int
    longest_ns: int
    longest_at_ns: int
    half: int
    half_ns: int
    copied_ns: int = 0


def idle_in(rows: Columns, reader: Reader) -> Idle | None:
    """Of a window's rows; None where they are no profile of a device: a server's may well be idle.

    A profile tells of launch calls, or of nothing but work on devices.
    """
    ran, asked = executions(rows), requests(rows)
    alone = not len(asked) and not ran.joined.any() and bool((ran.rows.device >= 0).all())
    if not len(ran) or not (alone or (ran.rows.launch != NULL).any()):
        return None
    copies = np.array([_COPY.match(word) is not None for word in reader.names.words])[ran.rows.name]
    device = dense(ran.rows.host, ran.rows.device)
    return idle_of(device, ran.rows.start, ran.rows.end, copies, asked if len(asked) >= MIN_REQUESTS else None)


def idle_of(
    device: Ints, start: Ints, end: Ints, copies: Bools | None = None, during: Work | None = None
) -> Idle | None:
    """Of executions (n,) with dense ids of their devices; None of none. copies (n,): those that are no kernels."""
    if not len(start):
        return None
    mine = device == int(np.argmax(np.bincount(device, np.maximum(end - start, 0))))
    first, began, until = _gaps(start[mine], end[mine])
    passed = _Passed(first, during)
    wide = passed(until[:-1]) - passed(began)
    known = wide[wide > 0]
    span, idle = int(passed(until[-1:])[0]), int(known.sum())
    if not known.size:
        return Idle(span, 0, 0, 0, first, 0, 0, span - _busy(start, end, mine, copies, passed))
    gaps, at = np.sort(known)[::-1], int(np.argmax(wide))
    half = int(np.searchsorted(np.cumsum(gaps), idle / 2)) + 1
    return Idle(
        span, idle, len(gaps), int(gaps[0]), int(began[at]), half, int(gaps[half - 1]),
        span - idle - _busy(start, end, mine, copies, passed),
    )  # fmt: skip


def _gaps(start: Ints, end: Ints) -> tuple[int, Ints, Ints]:
    """(first begin, begins of the gaps (g,), their ends and after them the last end of all (g + 1,))."""
    order = np.argsort(start, kind="stable")
    begin, reached = start[order], np.maximum.accumulate(np.maximum(end, start)[order])
    idle = np.flatnonzero(begin[1:] > reached[:-1])
    return int(begin[0]), reached[idle], np.append(begin[idle + 1], reached[-1])


class _Passed:
    """Time since `first` (n,), ns; where there are requests, only that in which one was in progress."""

    def __init__(self, first: int, during: Work | None) -> None:
        self._first = first
        self._at: Floats | None = None
        if during is None:
            return
        came = during.rows.end - during.latency
        begin, began, until = _gaps(came, during.rows.end)
        edges = np.concatenate([[begin], np.stack([began, until[:-1]], axis=1).ravel(), until[-1:]]) - first
        inside = np.diff(edges) * (np.arange(len(edges) - 1) % 2 == 0)
        self._at, self._total = edges.astype(np.float64), np.concatenate([[0.0], np.cumsum(inside)])
        self._before = float(np.interp(0.0, self._at, self._total))

    def __call__(self, at: Ints) -> Ints:
        since = at - self._first
        if self._at is None:
            return since
        inside: Ints = np.rint(np.interp(since.astype(np.float64), self._at, self._total) - self._before).astype(
            np.int64
        )
        return inside


def _busy(start: Ints, end: Ints, mine: Bools, copies: Bools | None, passed: _Passed) -> int:
    """Time in which a kernel ran."""
    kernels = mine if copies is None else mine & ~copies
    if not kernels.any():
        return 0
    first, began, until = _gaps(start[kernels], end[kernels])
    begins = np.concatenate([[first], until[:-1]])
    ends = np.append(began, until[-1])
    return int((passed(ends) - passed(begins)).sum())
