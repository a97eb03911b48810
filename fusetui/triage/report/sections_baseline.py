"""Before and after: what moved beyond chance, what did not, and what cannot be told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fusetui.analysis.fmt import DASH
from fusetui.triage.report.blocks import Block, Bullets, Command, Section, Table, Text
from fusetui.triage.report.words import change, ns, of_kind

Told = Mapping[str, Any]


def baseline_section(told: Told) -> Section | None:
    """None without a baseline."""
    made = told["comparison"]
    if made is None:
        return None
    moves = [move for move in made["moves"] if move["ratio"] is not None]
    blocks: list[Block] = [Text(f"Against {made['before']}: {_verdict(made)}.{_alike(made)}{_not_judged(moves)}")]
    if moves:
        head = ("", "before", "after", "change", "95 % interval", "moved")
        blocks.append(Table(head, tuple(_row(move) for move in moves), (1, 2, 3, 4)))
    totals = tuple(
        f"{total['measure']}: {of_kind(total['before']['value'], total['kind'])} before, "
        f"{of_kind(total['after']['value'], total['kind'])} after"
        for total in made["totals"]
    )
    unsaid = tuple(dict.fromkeys(move["why"] for move in moves if move["why"]))
    blocks += [Bullets(tuple(items)) for items in (totals, (*unsaid, *made["notes"])) if items]
    return Section("Before and after", (*blocks, Command(made["command"], "compared.0")))


def _verdict(made: Told) -> str:
    """`p50 no change seen; p95, p99 not judged: needs n ≥ 60, 300, have 24 and 24 (p50 is within …)`."""
    why = f" ({made['why']})" if made["why"] else ""
    if not made["judged"] or not made["not_judged"]:
        return f"{made['verdict']}{why}"
    return f"{', '.join(made['judged'])} {made['verdict']}; {made['not_judged']}{why}"


def _alike(made: Told) -> str:
    """A mix of sizes drowns what each of them shows."""
    if not made["alike"]:
        return ""
    one = made["alike"][0]
    interval = f"{change(one['low'])} … {change(one['high'])}"
    moved = "moved" if one["low"] > 1.0 or one["high"] < 1.0 else "shows no change"
    return f" At the same sizes the typical latency {moved}: {change(one['ratio'])} ({interval})."


def _not_judged(moves: list[Told]) -> str:
    """A large change without an interval must not read as none."""
    unknown = [f"{m['quantile']} {change(m['ratio'])}" for m in moves if m["of"] == "latency" and m["why"]]
    return f" Not judged, for want of independent samples: {', '.join(unknown)}." if unknown else ""


def _row(move: Told) -> tuple[str, ...]:
    known = move["low"] is not None and move["high"] is not None
    interval = f"{change(move['low'])} … {change(move['high'])}" if known else DASH
    moved = "not known" if move["why"] else "yes" if move["moved"] else "not seen"
    name = f"{move['of'].replace('_', ' ')} {move['quantile']}"
    return name, ns(move["before"]), ns(move["after"]), change(move["ratio"]), interval, moved
