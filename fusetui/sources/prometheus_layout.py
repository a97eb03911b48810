"""From the series of a page to the rows fusetui shows: worked out once, then kept while the series stay the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.sources.prometheus_hist import Floats
from fusetui.sources.prometheus_names import FAMILIES, Family, Kind, engine_of
from fusetui.sources.prometheus_text import Series

Ids = npt.NDArray[np.int64]

MAX_ITEMS: Final = 200
"""Items of one page: a histogram is up to eight rows, and a view keeps 512 series."""

_DEVICE_LABELS: Final = ("gpu", "dp_rank", "engine")
_FIRST_RANK: Final = ("tp_rank", "pp_rank")
_SECONDS: Final = {"_seconds": ("s", 1.0), "_milliseconds": ("s", 1e-3), "_ms": ("s", 1e-3), "_us": ("s", 1e-6)}


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One thing on the page, its series put together.

    ids     series numbers: [n] of gauges and counters, [sets, buckets] of histograms, [sets, levels] of summaries
    levels  histograms: upper bounds [buckets], ascending, the last infinite; summaries: quantiles [levels]
    sums, counts  of histograms and summaries, [sets]; empty when the page has none
    """

    family: Family
    row: str
    device: int | None
    ids: Ids
    levels: Floats = field(default_factory=lambda: np.zeros(0))
    sums: Ids = field(default_factory=lambda: np.zeros(0, np.int64))
    counts: Ids = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True)
class Layout:
    """items; engine: who answers, None when unknown; starts: series that tell when a process or a metric began."""

    items: tuple[Item, ...] = ()
    engine: str | None = None
    starts: Ids = field(default_factory=lambda: np.zeros(0, np.int64))
    missing: tuple[str, ...] = ()


@dataclass(slots=True)
class _Parts:
    """The series of one item while they are collected: label set -> what -> series number."""

    family: Family
    sets: dict[tuple[tuple[str, str], ...], dict[str | float, int]] = field(default_factory=dict)


def lay_out(series: Sequence[Series], types: Mapping[str, str], there: Sequence[bool] | None = None) -> Layout:
    """The rows of a page. Of a known engine those in the table; of an unknown one everything, up to MAX_ITEMS.

    there  whether each series is on the page now: an engine that was restarted with other buckets has left the old ones
    """
    engine = next((name for name in map(engine_of, (s.name for s in series)) if name), None)
    found: dict[tuple[str, int | None], _Parts] = {}
    starts = []
    for at, one in enumerate(series):
        if there is not None and not there[at] and "le" in one.labels:
            continue
        if one.name == "process_start_time_seconds" or one.name.endswith("_created"):
            starts.append(at)
            continue
        place = _place(one, types, known_only=engine is not None)
        if place is None or any(one.labels.get(rank, "0") != "0" for rank in _FIRST_RANK):
            continue
        family, what = place
        key = (_row(family, one.labels), _device(one.labels))
        parts = found.setdefault(key, _Parts(family))
        if parts.family == family:  # an old and a new name of the same thing: the first one only
            rest = tuple(sorted((k, v) for k, v in one.labels.items() if k not in ("le", "quantile")))
            parts.sets.setdefault(rest if family.kind != "counter" else (*rest, ("", one.name)), {})[what] = at
    return _finish(found, engine, np.array(starts, np.int64))


def _finish(found: Mapping[tuple[str, int | None], _Parts], engine: str | None, starts: Ids) -> Layout:
    items, missing = [], []
    for (row, device), parts in found.items():
        item = _item(parts, row, device)
        if isinstance(item, str):
            missing.append(item)
        else:
            items.append(item)
    if len(items) > MAX_ITEMS:
        missing.append(f"{len(items) - MAX_ITEMS} of {len(items)} metrics: more than one view keeps")
    if engine is None:
        missing.append("engine: none that is known; metrics under their own names")
    return Layout(tuple(items[:MAX_ITEMS]), engine, starts, tuple(missing))


def _item(parts: _Parts, row: str, device: int | None) -> Item | str:
    family = parts.family
    if family.kind in ("gauge", "counter"):
        return Item(family, row, device, np.array([s["value"] for s in parts.sets.values()], np.int64))
    levels: dict[tuple[float, ...], list[dict[str | float, int]]] = {}
    for one in parts.sets.values():
        levels.setdefault(tuple(sorted(k for k in one if isinstance(k, float))), []).append(one)
    marks = max(levels, key=lambda marks: len(levels[marks]))
    sets = levels[marks]
    if family.kind == "histogram" and (len(marks) < 2 or marks[-1] != np.inf):
        return f"{row}: no classic buckets up to +Inf (a native histogram?), so no quantiles"
    if not marks:
        return f"{row}: a summary without quantiles"
    ids = np.array([[one[mark] for mark in marks] for one in sets], np.int64)
    sums, counts = (np.array([one[k] for one in sets if k in one], np.int64) for k in ("sum", "count"))
    if len(sums) != len(sets) or len(counts) != len(sets):
        sums = counts = np.zeros(0, np.int64)
    return Item(family, row, device, ids, np.array(marks), sums, counts)


def _place(one: Series, types: Mapping[str, str], *, known_only: bool) -> tuple[Family, str | float] | None:
    """The family of a sample and which part of it this is."""
    plain = one.name.replace(":", "_")
    for suffix, what in (("", "value"), ("_total", "value"), ("_bucket", "le"), ("_sum", "sum"), ("_count", "count")):
        if not plain.endswith(suffix):
            continue
        base = plain.removesuffix(suffix)
        family = FAMILIES.get(base)
        if family is None and not known_only:
            family = _unknown(one.name.removesuffix(suffix), one, types, what)
        part = _part(family.kind, what, one.labels) if family else None
        if family is not None and part is not None:
            return family, part
    return None


def _part(kind: Kind, what: str, labels: Mapping[str, str]) -> str | float | None:
    if kind in ("gauge", "counter"):
        return what if what == "value" else None
    if what in ("sum", "count"):
        return what
    label = labels.get("le" if kind == "histogram" else "quantile")
    if label is None or (what == "le") != (kind == "histogram"):
        return None
    try:
        level = float(label)
    except ValueError:
        return None
    return None if level != level else level


def _unknown(name: str, one: Series, types: Mapping[str, str], what: str) -> Family | None:
    """A family nobody knows, as the page describes it."""
    kind = types.get(name) or types.get(one.name)
    if kind is None and what == "le" and "le" in one.labels:
        kind = "histogram"
    if kind is None and what == "value" and not _is_part(one, types):
        kind = "counter" if one.name.endswith("_total") else "gauge"
    if kind not in ("gauge", "counter", "histogram", "summary") or name.endswith("_info"):
        return None
    ending, (unit, scale) = next(((e, u) for e, u in _SECONDS.items() if name.endswith(e)), ("", ("", 1.0)))
    row = name.removesuffix(ending).removesuffix("_total")
    if kind == "counter":
        return Family(name, "counter", row, "/s", 1.0)
    family = Family(name, "gauge", row, unit, scale, combine="max")
    return family if kind == "gauge" else replace(family, kind="histogram" if kind == "histogram" else "summary")


def _is_part(one: Series, types: Mapping[str, str]) -> bool:
    """Whether a sample belongs to a histogram or a summary."""
    bases = (one.name.removesuffix(suffix) for suffix in ("_bucket", "_sum", "_count") if one.name.endswith(suffix))
    return "le" in one.labels or any(types.get(base) in ("histogram", "summary") for base in bases)


def _row(family: Family, labels: Mapping[str, str]) -> str:
    value = labels.get(family.split, "") if family.split else ""
    if family.split == "GPU_I_ID" and value:
        value = f"mig {value}"
    return f"{family.row} {value}".rstrip()


def _device(labels: Mapping[str, str]) -> int | None:
    for label in _DEVICE_LABELS:
        value = labels.get(label, "")
        if value.isascii() and value.isdigit() and len(value) < 6:
            return int(value)
    return None
