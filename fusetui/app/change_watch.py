"""The online flag of a stream of durations: learn what is usual, flag when the tail leaves it, then date the change.

The first seconds are the reference. Then Page-Hinkley looks at the share of each window above the reference's p95; what
it flags is looked for in the p95 of the windows by E-divisive, which says when it began, or that there is nothing.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from fusetui.analysis.arrays import Ints

if TYPE_CHECKING:
    from fusetui.analysis.changepoint.page_hinkley import PageHinkley

LEARN_NS: Final = 20_000_000_000
WINDOWS: Final = 40
"""Windows of the reference: two a second."""
LEAST_PER: Final = 20
KEPT: Final = 360
"""Windows a change is dated over: three minutes at the pace of the reference."""
RATE: Final = 1e-4
"""False alarms per quiet window: one in about an hour and a half."""
TRY_WINDOWS: Final = 30
"""Windows after a flag in which it is confirmed, or was none."""
EVERY: Final = 5
"""Windows between two tries."""
BACK: Final = 12
"""Newest windows that are as before when a change is over."""
MOST_CHANGES: Final = 100
MOST_PENDING: Final = 200_000


@dataclass(frozen=True, slots=True)
class TailChange:
    """The tail left what is usual for it.

    at_ns      the first bad moment: by E-divisive where confirmed, else by the flag
    before_ns, after_ns  median p95 of the windows before and after it
    confirmed  E-divisive found it too
    """

    at_ns: int
    before_ns: float
    after_ns: float
    confirmed: bool

    @property
    def rose(self) -> bool:
        """Worse than before."""
        return self.after_ns > self.before_ns


@dataclass(frozen=True, slots=True)
class _Window:
    first_ns: int
    p95_ns: float


class ChangeWatch:
    """Durations in the order of their ends come in with `add`; one thread.

    now      the rise the tail is in, None: it is as usual (or what is usual is not known yet)
    changes  confirmed rises, and when they were over, in order of time
    """

    def __init__(self, seed: int = 0) -> None:
        self.now: TailChange | None = None
        self.changes: list[TailChange] = []
        self._seed = seed
        self._ends: Ints = np.zeros(0, np.int64)
        self._items: Ints = np.zeros(0, np.int64)
        self._detector: PageHinkley | None = None
        self._per = 0
        self._cut = 0.0
        self._windows: deque[_Window] = deque(maxlen=KEPT)
        self._seen = 0
        self._flagged_at = 0

    @property
    def learning(self) -> bool:
        """What is usual is not known yet."""
        return self._detector is None

    def add(self, ends: Ints, items: Ints) -> None:
        """Take in durations (n,) ns with their ends (n,)."""
        if not items.size:
            return
        self._ends = np.concatenate([self._ends, ends])[-MOST_PENDING:]
        self._items = np.concatenate([self._items, items])[-MOST_PENDING:]
        if self._detector is None:
            self._learn()
        if self._detector is None:
            return
        whole = self._items.size // self._per * self._per
        for at in range(0, whole, self._per):
            self._look(self._detector, slice(at, at + self._per))
        self._ends, self._items = self._ends[whole:], self._items[whole:]

    def _learn(self) -> None:
        from fusetui.analysis.changepoint.page_hinkley import PageHinkley
        from fusetui.analysis.changepoint.series import nearest_rank_of, tail_share

        n, full = self._items.size, self._items.size >= MOST_PENDING
        if n < WINDOWS * LEAST_PER or (int(self._ends[-1] - self._ends[0]) < LEARN_NS and not full):
            return
        self._per = n // WINDOWS
        whole = self._per * WINDOWS
        self._cut = nearest_rank_of(self._items[:whole], 0.95)
        shares = tail_share(self._items[:whole], self._per, self._cut)
        for at in range(0, whole, self._per):
            self._keep(slice(at, at + self._per))
        self._ends, self._items = self._ends[whole:], self._items[whole:]
        self._detector = PageHinkley(shares, rate=RATE, seed=self._seed)

    def _keep(self, part: slice) -> None:
        from fusetui.analysis.changepoint.series import nearest_rank_of

        p95 = max(nearest_rank_of(self._items[part], 0.95), 1.0)
        self._windows.append(_Window(int(self._ends[part.start]), p95))
        self._seen += 1

    def _look(self, detector: PageHinkley, part: slice) -> None:
        self._keep(part)
        flag = detector.update(float((self._items[part] > self._cut).mean()))
        if flag is not None and flag.up and self.now is None:
            self._flagged_at = self._seen
            self.now = self._change(self._place(WINDOWS + flag.began), confirmed=False)
        elif self.now is not None and self.now.confirmed:
            self._look_if_over(self.now)
        elif self.now is not None and (self._seen - self._flagged_at) % EVERY == 0:
            self._confirm()

    def _place(self, number: int) -> int:
        """The place among the windows kept of the window with that number."""
        return max(0, min(number - (self._seen - len(self._windows)), len(self._windows) - 1))

    def _change(self, at: int, *, confirmed: bool) -> TailChange:
        p95 = np.array([window.p95_ns for window in self._windows])
        before = float(np.median(p95[:at])) if at else float(p95[0])
        return TailChange(self._windows[at].first_ns, before, float(np.median(p95[at:])), confirmed)

    def _confirm(self) -> None:
        from fusetui.analysis.changepoint.e_divisive import change_points

        series = np.log([window.p95_ns for window in self._windows])
        block = max(1, round(series.size ** (1 / 3) / 2))
        found = [self._change(at, confirmed=True) for at, _ in change_points(series, block=block, seed=self._seed)]
        # What has changed before is known already; the last rise is the one that was flagged.
        known_ns = self.changes[-1].at_ns if self.changes else self._windows[0].first_ns
        rises = [change for change in found if change.rose and change.at_ns > known_ns]
        if rises:
            self.now = rises[-1]
            self.changes = [*self.changes[-MOST_CHANGES:], rises[-1]]
        elif self._seen - self._flagged_at >= TRY_WINDOWS:
            self.now = None

    def _look_if_over(self, now: TailChange) -> None:
        newest = [window.p95_ns for window in self._windows][-BACK:]
        if float(np.median(newest)) <= math.sqrt(now.before_ns * now.after_ns):
            back = TailChange(self._windows[-BACK].first_ns, now.after_ns, float(np.median(newest)), confirmed=True)
            self.now = None
            self.changes = [*self.changes[-MOST_CHANGES:], back]
