"""What a page of metrics says that cannot all be true, and waits that its histograms cannot show yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from fusetui.sources.prometheus_hist import Floats, mean_bounds, mean_fits, quantile_bracket
from fusetui.sources.prometheus_layout import Item, Layout
from fusetui.sources.prometheus_rows import Bools, Interval, difference

_WAITING: Final = "requests waiting"
_WAITS: Final = ("queue wait", "ttft", "e2e", "router wait")
_OFF: Final = 10.0
"""A summary's quantiles are of its last minutes and its sum is of all time, so only a mean this far off is a fault."""


def contradictions(
    layout: Layout, values: Floats, intervals: Mapping[Item, Interval], window_s: float
) -> dict[str, str]:
    """What is wrong -> one line that says so, with the figures of now.

    values     the page [series]; intervals: what histograms took in during the window of `window_s` seconds
    """
    found: dict[str, str] = {}
    for item in layout.items:
        if item.family.kind == "histogram":
            there: Bools = np.asarray(np.isfinite(values[item.ids]).all(axis=1))
            since_start = difference(item, None, values, there, np.nan)
            found.update(_histogram(item, since_start, intervals.get(item)))
        elif item.family.kind == "summary":
            found.update(_summary(item, values))
    found.update(_first_tokens(layout, values))
    for item in layout.items:
        if item.family.kind == "gauge" and item.family.row == _WAITING:
            found.update(_waiting(item, values, intervals, window_s))
    return found


def _histogram(item: Item, since_start: Interval | None, interval: Interval | None) -> Iterator[tuple[str, str]]:
    bounds = item.levels * item.family.scale
    name = _name(item)
    for told in (since_start, interval):
        within = mean_bounds(bounds, told.counts) if told else None
        if told is None or within is None or not np.isfinite(told.sum):
            continue
        mean = told.sum / float(told.counts.sum())
        if not mean_fits(mean, within):
            said = f"its mean {mean:.4g} is not within its buckets, {within.lo:.4g} to {within.hi:.4g}"
            yield f"{name} mean", f"{name}: {said}: do not trust it"
            break
    if interval is None:
        return
    for label, q, least in (("p95", 0.95, 1), ("p99", 0.99, 100)):
        bracket = quantile_bracket(bounds, interval.counts, q) if interval.counts.sum() >= least else None
        if bracket is not None and not np.isfinite(bracket.hi):
            line = f"{name} {label} ≥ {bracket.lo:g} {item.family.unit}".rstrip()
            yield f"{name} {label} last", f"{line}: it lies in the last bucket, which has no end"


def _summary(item: Item, values: Floats) -> Iterator[tuple[str, str]]:
    for ids, total, count in zip(item.ids, item.sums, item.counts, strict=False):
        n, told = values[count], values[ids]
        if not n > 0 or not np.isfinite(told).all():
            continue
        mean, low, top = float(values[total] / n), float(told[0]), float(told[-1])
        # The mean is at least the share above the lowest quantile times that quantile.
        least = (1.0 - float(item.levels[0])) * low
        if mean > _OFF * top or mean * _OFF < least:
            scale = item.family.scale
            figures = f"its mean is {mean * scale:.4g} {item.family.unit}, its quantiles {low * scale:.4g}"
            name = _name(item)
            yield f"{name} mean", f"{name}: {figures} to {top * scale:.4g}: they disagree, do not trust it"


def _first_tokens(layout: Layout, values: Floats) -> Iterator[tuple[str, str]]:
    totals = {
        (item.row, item.device): float(values[item.ids[:, -1]].sum())
        for item in layout.items
        if item.family.kind == "histogram" and item.row in ("ttft", "e2e")
    }
    for (row, device), first in totals.items():
        ended = totals.get(("e2e", device), 0.0)
        if row == "ttft" and ended > first:
            said = f"{ended:,.0f} requests ended but only {first:,.0f} had a first token"
            yield f"first tokens {device}", f"e2e and ttft disagree: {said}"


def _waiting(
    gauge: Item, values: Floats, intervals: Mapping[Item, Interval], window_s: float
) -> Iterator[tuple[str, str]]:
    """Histograms of a wait count a request when its wait is over; the gauge counts it before.

    Little's law: with `waiting` requests and a rate of completions, waits are at least about waiting ÷ rate long.
    """
    there = values[gauge.ids]
    waiting = float(there[np.isfinite(there)].sum())
    for row in _WAITS:
        found = next(((i, t) for i, t in intervals.items() if i.family.row == row and _of(i) == _of(gauge)), None)
        if found is None or waiting < 1 or found[1].span_s <= 0:
            continue
        item, interval = found
        n = float(interval.counts.sum())
        if n == 0:
            if interval.span_s >= 0.9 * window_s:
                line = (
                    f"{waiting:,.0f} requests wait and none ended in {interval.span_s:.0f} s: stuck, or a stale gauge"
                )
                yield f"stuck {_of(gauge)}", line
            return
        expected_s = waiting * interval.span_s / n
        bracket = quantile_bracket(item.levels * item.family.scale, interval.counts, 0.95)
        if bracket is not None and expected_s > bracket.hi:
            said = f"{waiting:,.0f} wait, about {expected_s:.3g} s each by Little's law"
            yield (
                f"{item.row} hides {gauge.device}",
                f"{_name(item)} p95 ≤ {bracket.hi:g} s is of ended requests only: {said}",
            )
        return


def _name(item: Item) -> str:
    return item.row if item.device is None else f"{item.row} [{item.device}]"


def _of(item: Item) -> tuple[str, int | None]:
    """What an item is about: the label that is part of its row, and the device."""
    return item.row.removeprefix(item.family.row), item.device
