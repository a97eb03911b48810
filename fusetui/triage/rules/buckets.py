"""Numbers from a page of metrics: quantiles that are only buckets, bounds that changed, families that went away.

The rows are those of `sources.prometheus`: of a histogram `x`, `x p99 lo` and `x p99 hi` (none in the last bucket),
`x mean` and `x n`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

import numpy as np

from fusetui.analysis.snapshot import CounterRow, Snapshot
from fusetui.triage.finding import Fact
from fusetui.triage.measures import Measures
from fusetui.triage.rule import Rule, Seen
from fusetui.triage.text import name, pct

COARSE: Final = 4.0
"""Upper end of the first bucket over the mean from which what is read off it says nothing."""
FINER: Final = 2.0
STEADY: Final = 0.25
GONE_SLOTS: Final = 8
_LEVELS: Final = ("p99", "p95")
_VALUE: Final = ("value", "name")
_DERIVED: Final = (" lo", " hi", " mean", " in last bucket")


def _first_bucket(m: Measures) -> Iterator[Seen]:
    """A quantile in the first bucket: a page that interpolates shows a floor that nobody waited for."""
    for of, level, lo, hi in _brackets(m.snapshot):
        mean = _named(m.snapshot).get((f"{of} mean", lo.device))
        if hi is None or mean is None or lo.last > 0.0 or not 0.0 < mean.last * COARSE <= hi.last:
            continue
        yield Seen(
            f"{name(_label(of, lo))} {level} is in the first bucket, up to {_g(hi.last)} {hi.unit}, and the mean is"
            f" {_g(mean.last)} {mean.unit}: a {level} near {_g(hi.last)} on a dashboard is the bucket, not a wait",
            "warn", "sure", "a bucket tells nothing of where in it values lie",
            (Fact(f"upper end of the first bucket, {of}", hi.last, hi.unit, _VALUE),
             Fact(f"mean of {of}", mean.last, mean.unit, _VALUE)),
            subject=_label(of, lo),
        )  # fmt: skip


def _last_bucket(m: Measures) -> Iterator[Seen]:
    """A quantile in the last bucket has no upper end: dashboards show its lower end for ever."""
    for of, level, lo, hi in _brackets(m.snapshot):
        if lo.last <= 0.0 or (hi is not None and _last_known(hi) >= _last_known(lo)):
            continue
        share = _named(m.snapshot).get((f"{of} in last bucket", lo.device))
        more = "" if share is None else f"; {pct(share.last / 100.0)} of all lie there"
        facts: tuple[Fact, ...] = (Fact(f"{of} {level} is at least", lo.last, lo.unit, _VALUE),)
        facts += () if share is None else (Fact(f"{of} in the last bucket", share.last / 100.0, "share", _VALUE),)
        yield Seen(
            f"{name(_label(of, lo))} {level} ≥ {_g(lo.last)} {lo.unit}: it lies past the last bound{more}. A page that"
            f" shows {_g(lo.last)} is pinned there",
            "warn", "sure", "the last bucket has no upper end", facts, subject=_label(of, lo),
        )  # fmt: skip


def _bounds(m: Measures) -> Iterator[Seen]:
    """With the same bounds brackets are equal or apart: one strictly inside another proves other bounds."""
    for of, level, lo, hi in _brackets(m.snapshot):
        mean = _named(m.snapshot).get((f"{of} mean", lo.device))
        if hi is None or mean is None:
            continue
        known = np.flatnonzero(~np.isnan(lo.by_slot) & ~np.isnan(hi.by_slot) & ~np.isnan(mean.by_slot))
        if known.size < 2:
            continue
        first, last = int(known[0]), int(known[-1])
        old, new = ((float(lo.by_slot[at]), float(hi.by_slot[at])) for at in (first, last))
        wide, narrow = sorted((old, new), key=lambda ends: ends[0] - ends[1])
        nested = wide[0] <= narrow[0] and narrow[1] <= wide[1] and wide[1] - wide[0] >= FINER * (narrow[1] - narrow[0])
        steady = abs(mean.by_slot[last] - mean.by_slot[first]) <= STEADY * abs(mean.by_slot[first])
        if not nested or not steady:
            continue
        at_ns = int(m.snapshot.slot_start_ns[int(np.flatnonzero(hi.by_slot != hi.by_slot[first])[0])])
        yield Seen(
            f"{name(_label(of, lo))} {level} went from ({_g(old[0])}, {_g(old[1])}] to ({_g(new[0])},"
            f" {_g(new[1])}] {lo.unit} while the mean stayed at {_g(mean.last)}: other buckets, not other waits",
            "warn", "sure", "with the same bounds no bracket lies inside another",
            (Fact("width before", old[1] - old[0], lo.unit, _VALUE),
             Fact("width after", new[1] - new[0], lo.unit, _VALUE)),
            subject=_label(of, lo), since_ns=at_ns,
        )  # fmt: skip


def _vanished(m: Measures) -> Iterator[Seen]:
    """A family that is no longer on the page, while others are."""
    if m.header.source != "prometheus":
        return
    rows = [row for row in m.snapshot.counter_rows if not row.name.endswith(_DERIVED)]
    if not rows:
        return
    told = np.count_nonzero(~np.isnan(np.stack([row.by_slot for row in rows])), axis=0) > 0
    gone = [(row, _last_known(row)) for row in rows]
    gone = [(row, last) for row, last in gone if last >= 0 and int(told[last + 1 :].sum()) >= GONE_SLOTS]
    for row, last in gone[:GONE_SLOTS]:
        since_ns = int(m.snapshot.slot_start_ns[min(last + 1, len(m.snapshot.slot_start_ns) - 1)])
        yield Seen(
            f"{name(_label(row.name, row))} is no longer on the page, others are: renamed or dropped, which is not 0",
            "warn", "likely", "it was read before, and the page is still read",
            (Fact("last value read", row.last, row.unit, _VALUE),), subject=_label(row.name, row), since_ns=since_ns,
        )  # fmt: skip


def _brackets(snapshot: Snapshot) -> Iterator[tuple[str, str, CounterRow, CounterRow | None]]:
    """(histogram, level, its lower and upper end) of the highest level that is told of each."""
    rows = _named(snapshot)
    seen: set[tuple[str, str]] = set()
    for level in _LEVELS:
        for (label, device), lo in rows.items():
            of = label.removesuffix(f" {level} lo")
            if of != label and (of, device) not in seen:
                seen.add((of, device))
                yield of, level, lo, rows.get((f"{of} {level} hi", device))


def _named(snapshot: Snapshot) -> Mapping[tuple[str, str], CounterRow]:
    return {(row.name, row.device): row for row in snapshot.counter_rows}


def _g(value: float) -> str:
    """Bounds are round numbers: as they stand, not padded to three digits."""
    return f"{value:.3g}"


def _label(of: str, row: CounterRow) -> str:
    return f"{of} {row.device}".strip()


def _last_known(row: CounterRow) -> int:
    known = np.flatnonzero(~np.isnan(row.by_slot))
    return int(known[-1]) if known.size else -1


_rule = partial(Rule, about="counter", inputs=("counter_rows",), topic="source", screen="overview", pane="source")

RULES: Final = (
    _rule(
        id="honesty/first-bucket", look=_first_bucket, threshold=f"the first bucket ends at {COARSE:g} × the mean",
        why="interpolation in a bucket as wide as that is off by as much", does_not_prove=("where in it values lie",),
        next_action="configure finer buckets, or take the mean and the requests' own times",
    ),
    _rule(
        id="honesty/last-bucket", look=_last_bucket, threshold="the quantile is past the last bound",
        why="there is no upper end to interpolate to", does_not_prove=("how long the slowest wait",),
        next_action="configure buckets beyond it, or record the requests",
    ),
    _rule(
        id="honesty/buckets", look=_bounds, threshold=f"{FINER:g} × as fine, the mean within {STEADY:.0%}",
        why="with the same bounds brackets are equal or apart", does_not_prove=("that nothing else changed",),
        next_action="compare only from there on; before it, only means",
    ),
    _rule(
        id="honesty/vanished", look=_vanished, threshold=f"not read in {GONE_SLOTS} slots in which others are",
        why="one missed scrape misses all of a page", does_not_prove=("that it is 0, or that it was renamed",),
        next_action="look at the version and the flags of the engine, and at its page",
    ),
)  # fmt: skip
