"""Quality before and after: scores and failures, from a file or from counters of the captures, against a guardrail.

A reading is worse where its mean moved the wrong way by more than `limit` of what it was before. From five readings a
side its 95 % interval has to say so: where that holds both answers, more readings are needed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from fusetui.analysis.arrays import Floats
from fusetui.analysis.columns import COUNTER
from fusetui.analysis.expression.rows import Scope
from fusetui.analysis.intervals import mean_ratio_of

Better = Literal["higher", "lower"]
Verdict = Literal["holds", "worse", "unclear", "missing"]
LIMIT: Final = 0.01
"""Share of the value before by which quality may get worse."""
_LESS: Final = re.compile(
    r"error|fail|reject|loss|perplexity|time-?outs?\b|abort|drop|refus|mismatch|\bwer\b|hallucinat|invalid|violat"
)
_ANSWERS: Final = re.compile(r"accuracy|quality|perplexity|exact match|pass rate|\bf1\b|bleu|rouge|\bauc\b|eval loss")
_SERVICE: Final = re.compile(
    r"error rate|rejections|(requests?|responses?|answers?|queries) (\w+ )?(fail|reject|abort|error|timed out|dropped)"
    r"|(failed|rejected|aborted|dropped) (\w+ )?(requests?|responses?|answers?|queries)"
)
_DEVICE: Final = re.compile(r"\b(ecc|xid|pcie|nvlink|crc|link|signal|bus)\b")


@dataclass(frozen=True, slots=True)
class Series:
    """Readings of one name in the order of time, (n,); told_from: "file" or "capture"."""

    before: Floats
    after: Floats
    better: Better
    told_from: str


@dataclass(frozen=True, slots=True)
class Reading:
    """One name judged.

    before, after  means, None: not read there; n_before, n_after: of how many readings
    worse_by       share of `before` by which it got worse (negative: better), None where that is not known
    low, high      its 95 % interval, None below five readings a side
    of_answers     whether it judges answers; else it counts requests that got none
    """

    name: str
    better: Better
    told_from: str
    before: float | None
    after: float | None
    n_before: int
    n_after: int
    worse_by: float | None
    low: float | None
    high: float | None
    limit: float
    verdict: Verdict
    of_answers: bool


def better_of(name: str) -> Better:
    """Whether more or less of it is better, by its name."""
    return "lower" if _LESS.search(_plain(name)) else "higher"


def is_quality(name: str) -> bool:
    """Whether a counter of that name tells of answers, or of requests that got none."""
    plain = _plain(name)
    return not _DEVICE.search(plain) and bool(_ANSWERS.search(plain) or _SERVICE.search(plain))


def series_of(before: Scope, after: Scope) -> dict[str, Series]:
    """The quality counters of two captures, by name; all devices and hosts together."""
    sides = [_counters(scope) for scope in (before, after)]
    none = np.zeros(0)
    return {
        name: Series(sides[0].get(name, none), sides[1].get(name, none), better_of(name), "capture")
        for name in sorted(sides[0].keys() | sides[1].keys())
    }


def readings_of(series: Mapping[str, Series], limit: float = LIMIT) -> tuple[Reading, ...]:
    """Each judged, the worst first."""
    found = [_judged(name, one, limit) for name, one in series.items()]
    order: Sequence[Verdict] = ("worse", "missing", "unclear", "holds")
    return tuple(sorted(found, key=lambda one: (order.index(one.verdict), one.name)))


def _judged(name: str, series: Series, limit: float) -> Reading:
    sides = (series.before, series.after)
    before, after = (float(side.mean()) if side.size else None for side in sides)
    worse_by = low = high = None
    verdict: Verdict = "missing"
    if before is not None and after is not None:
        sign = -1.0 if series.better == "higher" else 1.0
        moved = mean_ratio_of(*sides)
        shifts = [sign * (after - before)]
        if moved.shift_low is not None and moved.shift_high is not None:
            shifts += sorted((sign * moved.shift_low, sign * moved.shift_high))
        most = limit * abs(before)
        least, greatest = min(shifts), max(shifts)
        verdict = "worse" if least > most else "holds" if greatest <= most else "unclear"
        if before != 0.0:
            worse_by, *ends = (shift / abs(before) for shift in shifts)
            low, high = ends or (None, None)
    return Reading(
        name, series.better, series.told_from, before, after, series.before.size, series.after.size, worse_by,
        low, high, limit, verdict, not _SERVICE.search(_plain(name)),
    )  # fmt: skip


def _counters(scope: Scope) -> dict[str, Floats]:
    columns, words = scope.columns, scope.reader.names.words
    chosen = np.array([*(is_quality(word) for word in words), False], np.bool_)
    rows = np.flatnonzero((columns.kind == COUNTER) & chosen[columns.name] & ~np.isnan(columns.value))
    rows = rows[np.argsort(columns.event[rows], kind="stable")]
    ids = columns.name[rows]
    return {words[code]: columns.value[rows[ids == code]] for code in np.unique(ids).tolist()}


def _plain(name: str) -> str:
    return name.lower().replace("_", " ")
