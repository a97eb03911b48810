"""From scrapes to counter rows and marks: rates and quantile brackets over an interval, never a negative one.

Rows of a histogram `ttft`, over the trailing window: `ttft p99 lo` and `ttft p99 hi` (the quantile lies in (lo, hi]),
`ttft mean`, `ttft n` (observations). In the last bucket there is no `hi`: all that is known is `≥ lo`, a mark says so,
and `ttft in last bucket` is the share of observations there. p99 needs n ≥ 100. Of a summary: `… p99`, as the engine
says it, over the engine's own window.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fusetui.sources.prometheus_hist import Floats, quantile_bracket
from fusetui.sources.prometheus_layout import Ids, Item, Layout

QUANTILES: Final = (("p50", 0.5, 1), ("p95", 0.95, 1), ("p99", 0.99, 100))
Bools = npt.NDArray[np.bool_]

_EPOCH_S: Final = 1e9
_MAX_KEPT: Final = 4_000_000
"""Values of the trailing window, 32 MB; a page with very many series gets a shorter one."""

_NS: Final = 1e9


class Row(NamedTuple):
    """A counter row; device None: of the whole engine."""

    name: str
    value: float
    unit: str
    device: int | None


class _Page(NamedTuple):
    at_ns: int
    values: Floats


class Interval(NamedTuple):
    """What a histogram took in since a scrape: span_s, observations per bucket, their sum (NaN: not told)."""

    span_s: float
    counts: Floats
    sum: float


class Reckoner:
    """Keeps the scrapes of the trailing window, `window_s` seconds of them."""

    def __init__(self, window_s: float) -> None:
        self._window_ns = int(window_s * _NS)
        self._pages: deque[_Page] = deque()
        self._since: dict[tuple[str, int | None], int] = {}

    def forget(self) -> None:
        """Series numbers changed their meaning."""
        self._pages.clear()
        self._since.clear()

    def read(self, layout: Layout, values: Floats, at_ns: int) -> tuple[list[Row], dict[Item, Interval], list[str]]:
        """Rows, what each histogram took in, and which items began again.

        values  [series], NaN where absent; at_ns: monotonic time of the scrape
        """
        while len(self._pages) > 1 and (
            self._pages[1].at_ns <= at_ns - self._window_ns or len(self._pages) * values.size > _MAX_KEPT
        ):
            self._pages.popleft()
        again = self._restarted(layout, values)
        before = self._pages[-1] if self._pages else None
        rows: list[Row] = []
        intervals: dict[Item, Interval] = {}
        for item in layout.items:
            if item.family.kind in ("counter", "histogram") and _fell(item, before, values):
                self._since[item.row, item.device] = at_ns
                again.append(item.row)
        for item in layout.items:
            if item.family.kind == "histogram":
                interval = self._interval(item, values, at_ns)
                if interval is not None:
                    intervals[item] = interval
                    rows += _histogram(item, interval)
            elif item.family.kind == "counter":
                rows += self._rate(item, before, values, at_ns)
            else:
                rows += _gauge(item, values) if item.family.kind == "gauge" else _summary(item, values)
        self._pages.append(_Page(at_ns, values))
        return rows, intervals, again

    def _restarted(self, layout: Layout, values: Floats) -> list[str]:
        if not self._pages or not layout.starts.size:
            return []
        old, new = _at(self._pages[-1].values, layout.starts), values[layout.starts]
        if not ((old > _EPOCH_S) & (new > _EPOCH_S) & (old != new)).any():
            return []
        self.forget()
        return ["the engine"]

    def _rate(self, item: Item, before: _Page | None, values: Floats, at_ns: int) -> list[Row]:
        if before is None or not self._pages or self._since.get((item.row, item.device)) == at_ns:
            return []
        grown = values[item.ids] - _at(before.values, item.ids)
        span_s = (at_ns - before.at_ns) / _NS
        if span_s <= 0 or not np.isfinite(grown).any():
            return []
        return [Row(item.row, float(np.nansum(grown)) * item.family.scale / span_s, item.family.unit, item.device)]

    def _interval(self, item: Item, values: Floats, at_ns: int) -> Interval | None:
        now = values[item.ids]
        there: Bools = np.asarray(np.isfinite(now).all(axis=1))
        since = self._since.get((item.row, item.device), 0)
        for page in self._pages:
            then = _at(page.values, item.ids)
            if page.at_ns < since or page.at_ns >= at_ns or not np.isfinite(then[there]).all():
                continue
            return difference(item, page.values, values, there, (at_ns - page.at_ns) / _NS)
        return None


def difference(item: Item, before: Floats | None, values: Floats, there: Bools, span_s: float) -> Interval | None:
    """What a histogram took in between two scrapes, in the unit of its row; before None: since the engine began.

    there  which of its label sets are on the page, bool [sets]; None when none is
    """
    if not there.any():
        return None
    grown = values[item.ids[there]] - (0.0 if before is None else _at(before, item.ids[there]))
    cumulative = np.maximum.accumulate(grown.sum(axis=0))
    counts = np.diff(cumulative, prepend=0.0)
    total = np.nan
    if item.sums.size:
        sums = values[item.sums[there]] - (0.0 if before is None else _at(before, item.sums[there]))
        total = float(sums.sum()) * item.family.scale
    return Interval(span_s, counts, total)


def _histogram(item: Item, interval: Interval) -> Iterator[Row]:
    unit, device, n = item.family.unit, item.device, float(interval.counts.sum())
    yield Row(f"{item.row} n", n, "", device)
    bounds = item.levels * item.family.scale
    for label, q, least in QUANTILES:
        bracket = quantile_bracket(bounds, interval.counts, q) if n >= least else None
        if bracket is not None:
            yield Row(f"{item.row} {label} lo", bracket.lo, unit, device)
            if np.isfinite(bracket.hi):
                yield Row(f"{item.row} {label} hi", bracket.hi, unit, device)
    if n > 0:
        if np.isfinite(interval.sum):
            yield Row(f"{item.row} mean", interval.sum / n, unit, device)
        yield Row(f"{item.row} in last bucket", 100.0 * float(interval.counts[-1]) / n, "%", device)


def _gauge(item: Item, values: Floats) -> list[Row]:
    there = values[item.ids]
    there = there[np.isfinite(there)]
    if not there.size:
        return []
    value = float(there.sum() if item.family.combine == "sum" else there.max())
    return [Row(item.row, value * item.family.scale, item.family.unit, item.device)]


def _summary(item: Item, values: Floats) -> Iterator[Row]:
    """Quantiles of one instance; of several nothing: they cannot be put together."""
    if len(item.ids) > 1 or (item.counts.size and not values[item.counts[0]] > 0):
        return
    for level, value in zip(item.levels, values[item.ids[0]], strict=True):
        if np.isfinite(value):
            yield Row(f"{item.row} p{100 * level:g}", float(value) * item.family.scale, item.family.unit, item.device)


def _fell(item: Item, before: _Page | None, values: Floats) -> bool:
    if before is None:
        return False
    return bool((values[item.ids] < _at(before.values, item.ids)).any())


def _at(values: Floats, ids: Ids) -> Floats:
    """values[ids], NaN for series that came later."""
    if ids.size and int(ids.max()) >= values.size:
        values = np.concatenate([values, np.full(int(ids.max()) + 1 - values.size, np.nan)])
    return values[ids]
