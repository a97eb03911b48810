"""What a capture tells, as text: `fusetui snapshot --coverage`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fusetui.analysis.fmt import DASH, percent
from fusetui.telemetry.text import safe_text

_MOST_NOTES = 40


def coverage_lines(summary: dict[str, Any]) -> Iterator[str]:
    """Facts with the share of rows that tell them, what their absence costs, then the losses by kind."""
    coverage, header = summary["coverage"], summary["header"]
    rows = ", ".join(f"{count:,} {kind}" for kind, count in coverage["rows"].items())
    yield f"source       {header['source']}, clock {header['clock']}"
    yield f"rows         {rows}"
    launch = coverage["launch"]
    yield (
        f"launches     {launch['joined']:,} of {launch['total']:,} joined, {launch['orphans']:,} orphans, "
        f"{launch['nodes']:,} graph nodes, {launch['clipped']:,} clipped, {launch['clock_errors']:,} clock errors"
    )
    yield f"complete     {_complete(coverage)}"
    if coverage["idle_doubtful"]:
        yield "idle         may be false: the profiler can miss work of graph launches"
    yield f"{'tells':13}{'rows':>13}{'of':>13}{'share':>8}"
    for fact in coverage["facts"]:
        share = DASH if fact["share"] is None else percent(fact["share"]).strip()
        yield f"{fact['fact']:13}{fact['rows']:>13,}{fact['total']:>13,}{share:>8}"
    missing = [fact for fact in coverage["facts"] if fact["unknown"] is not None]
    if missing:
        yield "cannot be known"
    for fact in missing:
        part = "for some: " if fact["rows"] else ""
        yield f"  {fact['fact']:15}{part}{fact['unknown']}"
        option = f"recorded by: {fact['record']}" if fact["record"] else "nothing that we know of records it"
        yield f"  {'':15}{option}"
    if coverage["losses"]:
        yield "losses and remarks"
    for loss in coverage["losses"][:_MOST_NOTES]:
        yield f"  {loss['kind']:15}{safe_text(loss['note'], 300)}"
    if (more := len(coverage["losses"]) - _MOST_NOTES) > 0:
        yield f"  and {more:,} more"


def _complete(coverage: dict[str, Any]) -> str:
    ends = ["the end is missing"] if coverage["truncated"] else []
    ends += ["an event limit was reached"] if coverage["capped"] else []
    return ", ".join(ends) or "nothing says that its end is missing"
