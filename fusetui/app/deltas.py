"""What moved against the baseline, with the verdict of an interval: changed, no change seen, or how many it needs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from fusetui.analysis import fmt
from fusetui.analysis.arrays import Ints
from fusetui.analysis.snapshot import Snapshot

if TYPE_CHECKING:
    from fusetui.analysis.expression.rows import Scope
    from fusetui.analysis.intervals import Ratio

Unit = Literal["ns", "share", "rate", "ratio"]
QUANTILES: Final = (
    ("latency", 0.5), ("latency", 0.95), ("latency", 0.99), ("queue_wait", 0.95), ("queue_wait", 0.99), ("service", 0.5)
)  # fmt: skip
LEVEL: Final = 1.0 - 0.05 / (len(QUANTILES) + 1)
"""For all of them together 95 %."""
CHANGED: Final = "changed"
_NEEDS: Final = re.compile(r"needs (?:about )?n ≥ ([\d,]+)")
UNCHANGED: Final = "no change seen"
NO_INTERVAL: Final = ""


@dataclass(frozen=True, slots=True)
class Delta:
    """One measure before and now; None: not known.

    low, high  interval of now / before - 1; verdict: CHANGED, UNCHANGED, why it cannot be told, or NO_INTERVAL
    worse      it changed for the worse
    """

    label: str
    unit: Unit
    before: float | None
    now: float | None
    change: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: str = NO_INTERVAL
    worse: bool = False


def deltas_of(before: Scope, now: Scope, old: Snapshot, new: Snapshot) -> tuple[Delta, ...]:
    """Quantiles with intervals, then what has none; old and new are the snapshots of the same rows."""
    found = [one for field, q in QUANTILES if (one := _quantile(field, q, before, now)) is not None]
    if old.mapping.planned is not None or new.mapping.planned is not None:
        found.append(_share(old, new))
    found += [
        _plain("λ of cores", "ratio", old.cores.imbalance.lambda_, new.cores.imbalance.lambda_),
        _plain(f"{new.latency_of}s", "rate", _rate(old), _rate(new)),
    ]
    return tuple(one for one in found if one.before is not None or one.now is not None)


def _quantile(field: str, q: float, before: Scope, now: Scope) -> Delta | None:
    from fusetui.analysis.intervals import quantile_ratio

    name = f"p{100 * q:g} {field.removeprefix('queue_')}"
    if field == "latency" and before.latency_of != now.latency_of:
        return Delta(name, "ns", None, None, verdict=f"{before.latency_of}s then, {now.latency_of}s now")
    old, new = _durations(field, before), _durations(field, now)
    if not old.size and not new.size:
        return None
    ratio = quantile_ratio(old, new, q, level=LEVEL, method="hd")
    return Delta(name, "ns", ratio.before, ratio.after, *_change(ratio), _verdict(ratio), ratio.moved > 0)


def _durations(field: str, side: Scope) -> Ints:
    if field == "latency":
        return side.items.latency
    ran = side.executions
    return ran.service if field == "service" else ran.wait[ran.waited]


def _share(old: Snapshot, new: Snapshot) -> Delta:
    from fusetui.analysis.intervals import share_ratio

    shares, n = (old.mapping.planned, new.mapping.planned), (old.mapping.known, new.mapping.known)
    if shares[0] is None or shares[1] is None:
        return Delta("planned", "share", *shares)
    ratio = share_ratio((shares[0] * n[0], shares[1] * n[1]), n, level=LEVEL)
    return Delta("planned", "share", *shares, *_change(ratio), _verdict(ratio), ratio.moved < 0)


def _change(ratio: Ratio) -> tuple[float | None, float | None, float | None]:
    return (
        None if ratio.ratio is None else ratio.ratio - 1.0,
        None if ratio.low is None else ratio.low - 1.0,
        None if ratio.high is None else ratio.high - 1.0,
    )


def _verdict(ratio: Ratio) -> str:
    if ratio.why:
        # `p99 needs n ≥ 300, have 37 and 12`: what it needs is what helps here.
        needs = _NEEDS.search(ratio.why)
        return f"needs n ≥ {fmt.count(int(needs[1].replace(',', ''))).strip()}" if needs else ratio.why
    return CHANGED if ratio.moved else UNCHANGED


def _plain(label: str, unit: Unit, old: float | None, new: float | None) -> Delta:
    change = new / old - 1.0 if old and new is not None else None
    return Delta(label, unit, old, new, change)


def _rate(snapshot: Snapshot) -> float | None:
    return snapshot.latency.n / snapshot.span_ns * 1e9 if snapshot.span_ns else None
