"""Recompiles that a capture tells of: what one plan for all shapes would save, and whether another capture shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fusetui.analysis.fmt import duration
from fusetui.analysis.retune.action import Action, Cost, Slice
from fusetui.analysis.retune.verify import Proposal

_TITLE: Final = "compile once for all shapes (dynamic shapes), or ahead for those that come"
_NOT_TRIED: Final = "nothing here says what one plan for all shapes takes: capture it once and give it as --measured"


@dataclass(frozen=True, slots=True)
class Compiles:
    """Of one capture: how often plans were made, what it took (None unknown), for how many shapes, and when.

    runs  by shape, (executions, ns in all) of what ran under a plan
    """

    n: int
    stall_ns: int | None
    shapes: int
    from_ns: int
    to_ns: int
    runs: Mapping[str, tuple[int, int]]

    @property
    def each_ns(self) -> int | None:
        """Mean of one."""
        return None if self.stall_ns is None or not self.n else self.stall_ns // self.n

    @property
    def stall(self) -> str:
        """In words."""
        return "an unknown time" if self.stall_ns is None else duration(self.stall_ns).strip()


def compiles_of(summary: Mapping[str, Any]) -> Compiles:
    """From the measures of a trace, see `analysis.summary`."""
    mapping, end = summary["mapping"], int(summary["now_ns"])
    n, stall_ns = int(mapping["compiles"]), mapping["stall_ns"]
    at = [int(mark["at_ns"]) for mark in summary["marks_by_time"] if "compile" in str(mark["name"]).lower()]
    first = min(at) - (stall_ns // n if stall_ns and n else 0) if at else end - int(summary["window_ns"])
    runs: dict[str, tuple[int, int]] = {}
    for bucket in mapping["buckets"]:
        if bucket["shape"] is not None and bucket["executions"]["planned"]:
            count, ns = runs.get(bucket["shape"], (0, 0))
            runs[bucket["shape"]] = count + bucket["executions"]["planned"], ns + bucket["time_ns"]["planned"]
    shapes = sum(1 for bucket in mapping["buckets"] if bucket["compiles"])
    return Compiles(n, stall_ns, shapes, first, max(at, default=end), runs)


def fewer_compiles(seen: Compiles, span_ns: int | None, other: Compiles | None) -> Proposal | None:
    """One plan for all shapes; None with fewer than two compiles.

    span_ns  of the capture; other: compiles of a capture of the same work after the change
    """
    if seen.n < 2:
        return None
    reason = _NOT_TRIED
    unproved = "that they recur: a longer run may amortise them"
    if other is not None:
        plural = "" if other.n == 1 else "s"
        reason = f"another capture has {other.n} compile{plural} in {other.stall} instead of {seen.n} in {seen.stall}"
        unproved = "that both captures did the same work"
    of_span = f" of the {duration(span_ns).strip()} looked at" if span_ns else ""
    action = Action(
        knob="compiles",
        title=_TITLE,
        stream="",
        bottleneck="host",
        owner="compiler",
        why=f"{seen.n} compiles for {seen.shapes} shapes took {seen.stall}{of_span}",
        slice=Slice(seen.from_ns, seen.to_ns, 'name ~ "compile"'),
        cost=_cost(seen, other),
        rollback="compile for each shape as before",
        does_not_prove=("that one plan for all shapes is as fast at every shape", unproved),
        change=None,
        why_not=reason,
        detail=() if other is None else _runs(seen, other),
    )
    better = other is not None and other.n < seen.n
    return Proposal(action, "measured" if better else "unverified", reason, (None, None, None), None)


def _cost(seen: Compiles, other: Compiles | None) -> Cost:
    if other is not None:
        return Cost(other.n, other.stall_ns)
    return Cost(1, None, None, "one compile; for one shape it took " + duration(seen.each_ns).strip())


def _runs(seen: Compiles, other: Compiles) -> tuple[str, ...]:
    """Run times of the shapes that ran in both."""
    shared = [shape for shape in seen.runs if shape in other.runs]
    if not shared:
        return ("no shape ran in both captures: their run times cannot be compared",)
    (n, ns), (m, after) = (
        (sum(c.runs[shape][0] for shape in shared), sum(c.runs[shape][1] for shape in shared)) for c in (seen, other)
    )
    return (
        f"runs of the {len(shared)} shapes that are in both: {duration(ns / n).strip()} each before (n = {n}), "
        f"{duration(after / m).strip()} after (n = {m})",
    )
