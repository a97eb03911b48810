"""When a trace left its baseline: the online flag, calibrated on the whole of another trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fusetui.analysis.arrays import Ints
from fusetui.analysis.changepoint.page_hinkley import LEAST, PageHinkley
from fusetui.analysis.changepoint.series import nearest_rank_of, tail_share

MOST_PER: Final = 200
LEAST_PER: Final = 20


@dataclass(frozen=True, slots=True)
class Left:
    """The tail rose above the baseline's.

    began_ns    first end in the window where it began to add up: the first bad moment, by this flag
    flagged_ns  last end in the window at which it was sure; windows of `per` items
    """

    began_ns: int
    flagged_ns: int
    per: int


def left_baseline(baseline: Ints, ends: Ints, items: Ints, *, seed: int = 0) -> tuple[Left | None, str]:
    """(when items left the baseline upwards, why that cannot be told); durations in the order of their ends (n,)."""
    per = min(MOST_PER, baseline.size // LEAST)
    if per < LEAST_PER or items.size < per:
        return None, f"leaving the baseline needs n ≥ {LEAST * LEAST_PER} before, have {baseline.size:,}"
    cut = nearest_rank_of(baseline, 0.95)
    detector = PageHinkley(tail_share(baseline, per, cut), seed=seed)
    for value in tail_share(items, per, cut).tolist():
        flag = detector.update(value)
        if flag is not None and flag.up:
            return Left(int(ends[flag.began * per]), int(ends[(flag.at + 1) * per - 1]), per), ""
    return None, ""
