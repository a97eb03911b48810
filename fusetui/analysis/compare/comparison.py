"""A whole comparison of two scopes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fusetui.analysis.changepoint.baseline import Left, left_baseline
from fusetui.analysis.changepoint.changes import Change, changes_of, first_seen
from fusetui.analysis.columns import MARK
from fusetui.analysis.compare.alike import Alike, alike_of
from fusetui.analysis.compare.kernels import KernelMove, kernels_of
from fusetui.analysis.compare.moves import Move, level_name, moves_of
from fusetui.analysis.compare.notes import contradictions, counted, fewer_and_longer, unlike
from fusetui.analysis.compare.parts import PartMove, parts_of
from fusetui.analysis.compare.streams import StreamMove, streams_of
from fusetui.analysis.compare.totals import Total, totals_of
from fusetui.analysis.expression.rows import Scope
from fusetui.analysis.intervals import Ratio, least_n, needed_n, shift_function
from fusetui.analysis.snapshot import Mark

SHORT: Final = "not enough data"
NO_LIKE: Final = "not comparable"
TAIL: Final = (0.95, 0.99)
WORTH_SEEING: Final = 0.1
"""The change whose needed n is told where nothing was seen."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that is told of after against before.

    alike     at the same sizes, all together first; [] where sizes are not known
    judged    quantiles of the latency that the verdict is of; not_judged: which of p95 and p99 are not, and why
    verdict   "slower", "faster", "mixed", "no change seen", "not enough data" or, without requests and with other
              kernels, "not comparable": of the latency's quantiles
    left      when the tail of `after` left that of `before`; left_why: why that cannot be told
    counted   what changed in number, with both numbers: recompiles, launches, fallback
    clock     of times in `after`, as in its header
    changes   within `after`; changes_why: why none can be told
    """

    verdict: str
    why: str
    judged: list[str]
    not_judged: str
    latency_of: str
    clock: str
    moves: list[Move]
    shift: list[tuple[float, Ratio]]
    alike: list[Alike]
    parts: list[PartMove]
    parts_why: str
    totals: dict[str, Total]
    kernels: list[KernelMove]
    streams: list[StreamMove]
    changes: list[Change]
    changes_why: str
    left: Left | None
    left_why: str
    counted: list[str]
    contradictions: list[str]
    notes: list[str]


def compare(before: Scope, after: Scope, *, seed: int = 0, independent: bool = False) -> Comparison:
    """`after` against `before`; independent: the rows were resampled, neighbours are strangers."""
    moves = moves_of(before, after, seed=seed, independent=independent)
    totals = totals_of(before, after)
    parts, parts_why = parts_of(before, after)
    changes, changes_why = changes_within(after)
    old, new = before.items, after.items
    left, left_why = left_baseline(old.latency, new.rows.end, new.latency, seed=seed)
    kernels = kernels_of(before, after)
    of_latency = [move for move in moves if move.field == "latency"]
    verdict, why = _verdict(of_latency)
    if (
        verdict != SHORT
        and after.latency_of == "execution"
        and any(not row.launches.before or not row.launches.after for row in kernels)
    ):
        verdict, why = NO_LIKE, "no requests, and the kernels differ: fewer and larger ones are not slower"
    return Comparison(
        verdict=verdict,
        why=why,
        judged=[level_name(move.q) for move in of_latency if not move.ratio.why],
        not_judged=_not_judged(of_latency),
        latency_of=after.latency_of,
        clock=after.header.clock,
        moves=moves,
        shift=shift_function(old.latency, new.latency, independent=independent),
        alike=alike_of(before, after),
        parts=parts,
        parts_why=parts_why,
        totals=totals,
        kernels=kernels,
        streams=streams_of(before, after),
        changes=changes,
        changes_why=changes_why,
        left=left,
        left_why=left_why,
        counted=counted(totals),
        contradictions=contradictions(moves, totals),
        notes=[*unlike(before, after, before.header, after.header), *fewer_and_longer(moves, totals)],
    )


def changes_within(scope: Scope) -> tuple[list[Change], str]:
    """Changes of the p95 of latency over the time of a trace, with the marks and first plans beside them."""
    items, rows = scope.items, scope.columns
    marks = [
        Mark(int(rows.event[at]), scope.reader.names.words[rows.name[at]])
        for at in np.flatnonzero((rows.kind == MARK) & (rows.name >= 0)).tolist()[:1000]
    ]
    ran = scope.executions.rows
    marks += first_seen(ran.plan, ran.end, scope.reader.plans.words, "plan")
    return changes_of(items.rows.end, items.latency, marks)


def _verdict(moves: list[Move]) -> tuple[str, str]:
    judged = [move for move in moves if not move.ratio.why]
    if not judged:
        return SHORT, "; ".join(move.ratio.why for move in moves[:1]) or "no latency on either side"
    moved = {move.moved for move in judged} - {0}
    if moved == {1, -1}:
        return "mixed", "some quantiles rose and some fell"
    if moved:
        which = ", ".join(level_name(move.q) for move in judged if move.moved)
        return ("slower" if moved == {1} else "faster"), f"{which} moved"
    return "no change seen", _sight(judged)


def _not_judged(moves: list[Move]) -> str:
    """`p95, p99 not judged: needs n ≥ 60, 300, have 12 and 12`."""
    unknown = [move for move in moves if move.q in TAIL and move.ratio.why]
    few = [move for move in unknown if min(move.ratio.n_before, move.ratio.n_after) < least_n(move.q)]
    told = []
    if few:
        names = ", ".join(level_name(move.q) for move in few)
        needed = ", ".join(f"{least_n(move.q):,}" for move in few)
        told.append(
            f"{names} not judged: needs n ≥ {needed}, have {few[0].ratio.n_before:,} and {few[0].ratio.n_after:,}"
        )
    told += [f"{level_name(move.q)} not judged: {move.ratio.why}" for move in unknown if move not in few]
    return "; ".join(told)


def _sight(judged: list[Move]) -> str:
    """What would have been seen, and what it takes to see 10 %."""
    told = []
    for move in judged:
        ratio = move.ratio
        if ratio.low is None or ratio.high is None or ratio.low <= 0.0:
            continue
        n = min(ratio.n_before, ratio.n_after)
        needed = needed_n(n, ratio.low, ratio.high, WORTH_SEEING)
        more = f", +10 % needs n ≥ {needed:,}" if needed is not None and needed > n else ""
        told.append(f"{level_name(move.q)} is within {ratio.low - 1:+.1%} … {ratio.high - 1:+.1%}{more}")
    return "; ".join(told)
