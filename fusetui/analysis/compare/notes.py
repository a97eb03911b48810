"""What speaks against a comparison, and what contradicts itself in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from fusetui.analysis import fmt
from fusetui.analysis.compare.alike import same_inputs
from fusetui.analysis.compare.moves import Move
from fusetui.analysis.compare.totals import Total
from fusetui.analysis.expression.rows import Scope
from fusetui.analysis.mapping_drift import drift_of
from fusetui.telemetry.header import Header

_OTHER: Final = "not the same work, or fused differently"
_FUSED: Final = "of executions only, the requests have the same: fused, split or padded differently"
CLEAR: Final = 0.05
"""A total that moved by less counts as flat."""


def contradictions(moves: Sequence[Move], totals: Mapping[str, Total]) -> list[str]:
    """Measures that moved against each other, one line each."""
    moved = {(move.field, move.q): move.moved for move in moves}
    p95, p99 = moved.get(("latency", 0.95), 0), moved.get(("latency", 0.99), 0)
    slower = p95 > 0 or p99 > 0
    launches, mean = _per_item(totals), _moved(totals, "mean(latency)")
    found = []
    if launches < 0 and slower:
        found.append("fewer launches, yet the tail of the latency rose: fewer launches are not less latency")
    if _moved(totals, "exposed") < 0 and slower:
        found.append("less launch overhead was exposed, yet the tail of the latency rose")
    if mean < 0 and slower:
        found.append("the mean latency fell, yet its tail rose")
    if moved.get(("latency", 0.5), 0) * p99 < 0:
        found.append("the median and p99 of the latency moved opposite ways: who gains is not who loses")
    if _moved(totals, "busy") > 0 and _moved(totals, "rate") == 0:
        found.append("the device was busier at the same throughput")
    if _moved(totals, "padding") < 0 and _moved(totals, "share(fallback)") > 0:
        found.append("less padding, yet more fell back: sizes left the plan's envelope")
    service, wait = moved.get(("service", 0.95), 0), moved.get(("queue_wait", 0.95), 0)
    if service < 0 < wait:
        found.append("service got faster, yet waits got longer: look at arrivals and placement, not at kernels")
    return found


def counted(totals: Mapping[str, Total]) -> list[str]:
    """What moved of what is counted over the whole trace: `recompiles 8 → 1 (-87.5%)`."""
    found = []
    per = _executions_per_request(totals)
    if per is not None and _sign(per[1] / per[0]):
        found.append(f"executions per request {per[0]:.3g} → {per[1]:.3g} ({per[1] / per[0] - 1.0:+.1%})")
    for name, write in _COUNTED.items():
        total = totals.get(name)
        if total is not None and _moved(totals, name) and None not in (total.before.value, total.after.value):
            change = "" if total.ratio is None else f" ({total.ratio - 1.0:+.1%})"
            word = name.removeprefix("count(").removeprefix("share(").rstrip(")")
            found.append(f"{word} {write(total.before.value)} → {write(total.after.value)}{change}")
    return found


def fewer_and_longer(moves: Sequence[Move], totals: Mapping[str, Total]) -> list[str]:
    """Why service per execution is not to be read as it stands."""
    per, service = _executions_per_request(totals), {m.moved for m in moves if m.field == "service"} - {0}
    if per is None or not service or not _sign(per[1] / per[0]):
        return []
    what = "fewer" if per[1] < per[0] else "more"
    return [f"{what} executions per request: service of one is not of the same work; compare the time per request"]


def _executions_per_request(totals: Mapping[str, Total]) -> tuple[float, float] | None:
    counts = [totals.get(f"count({what})") for what in ("executions", "requests")]
    sides = [None if one is None else (one.before.value or 0.0, one.after.value or 0.0) for one in counts]
    if sides[0] is None or sides[1] is None or not all((*sides[0], *sides[1])):
        return None
    return sides[0][0] / sides[1][0], sides[0][1] / sides[1][1]


def _whole(value: float | None) -> str:
    return fmt.DASH if value is None else f"{value:,.0f}"


def _short(write: Callable[[float | None], str]) -> Callable[[float | None], str]:
    return lambda value: write(value).strip()


_COUNTED: Final = {
    "count(recompiles)": _whole, "stall": _short(fmt.duration), "share(fallback)": _short(fmt.percent),
    "share(adapted)": _short(fmt.percent), "padding": _short(fmt.number), "exposed": _short(fmt.duration),
}  # fmt: skip


def unlike(before: Scope, after: Scope, old: Header, new: Header) -> list[str]:
    """Why the two may not be the same work, or not on the same ground; one line each."""
    found = []
    if before.latency_of != after.latency_of:
        was, now = before.latency_of, after.latency_of
        found.append(f"latency is of {was}s before and of {now}s after: do not compare it")
    drift = _shapes(before, after)
    if drift:
        found.append(drift + (_FUSED if same_inputs(before, after) else _OTHER))
    for what in ("build", "hardware"):
        was, now = getattr(old, what), getattr(new, what)
        found += [
            f"{what} {key}: {was.get(key, 'not told')} → {now.get(key, 'not told')}"
            for key in sorted(was.keys() | now.keys())
            if was.get(key) != now.get(key)
        ]
    if old.source != new.source:
        found.append(f"source: {old.source} → {new.source}")
    return found


def _shapes(before: Scope, after: Scope) -> str:
    counts = []
    for scope in (before, after):
        codes = scope.executions.rows.shape
        words = scope.reader.shapes.words
        used, n = np.unique(codes[codes >= 0], return_counts=True)
        counts.append(Counter(dict(zip((words[code] for code in used.tolist()), n.tolist(), strict=True))))
    shapes = [shape for shape, _ in (counts[0] + counts[1]).most_common(64)]
    both = [np.array([side[shape] for shape in shapes], np.int64) for side in counts]
    drift = drift_of(both[0], both[1], shapes, "before", "executions")
    if drift is None or drift.verdict == "stable":
        return ""
    return f"{drift.verdict} drift of shapes (index {drift.index:.2f}): "


def _per_item(totals: Mapping[str, Total]) -> int:
    launches, requests = totals.get("count(executions)"), totals.get("count(requests)")
    if launches is None or launches.ratio is None:
        return 0
    per = requests.ratio if requests is not None and requests.ratio else 1.0
    return _sign(launches.ratio / per)


def _moved(totals: Mapping[str, Total], name: str) -> int:
    total = totals.get(name)
    if total is None:
        return 0
    if total.ratio is None:
        return int(total.before.value == 0.0 and (total.after.value or 0.0) > 0.0)
    return _sign(total.ratio)


def _sign(ratio: float) -> int:
    return (ratio > 1.0 + CLEAR) - (ratio < 1.0 - CLEAR)
