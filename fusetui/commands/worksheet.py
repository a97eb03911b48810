"""The worksheet of a plan as text, Markdown or JSON. "uncalibrated" is said beside every prediction that is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from fusetui.accelerator.plan import GroupPlan, Plan, Plans, Totals
from fusetui.accelerator.price import Tile

_GROUP_HEAD = (
    "group", "tile", "time", "alone", "limited by", "DRAM", "reuse", "occ.", "waves", "spill",
)  # fmt: skip
_POLICY_HEAD = (
    "policy", "time", "launches", "exposed", "saved (i)", "saved (ii)", "DRAM", "x bound", "reuse", "peak", "burst",
)  # fmt: skip


def as_json(plans: Plans, policy: str) -> str:
    """The plan of `policy` with the totals of all policies. Times in ns, sizes in bytes, absent is null."""
    plan = plans.plans[policy]
    return json.dumps(
        {
            "block": plans.block,
            "hardware": plans.hardware,
            "dtype": plans.dtype,
            "launch": plans.mode,
            "policy": policy,
            "calibrated": plans.calibrated,
            "groups": [_group_json(g) for g in plan.groups],
            "totals": _totals_json(plan.totals),
            "policies": {
                name: _totals_json(p.totals) | {"proved_optimal": p.proved_optimal} for name, p in plans.plans.items()
            },
            "proved_optimal": plan.proved_optimal,
            "search_ms": round(plans.search_ms, 3),
        },
        indent=2,
    )


def as_text(plans: Plans, policy: str) -> str:
    """Aligned columns for a terminal."""
    return _document(plans, policy, _aligned, "{}")


def as_markdown(plans: Plans, policy: str) -> str:
    """Markdown tables, for an issue or a design note."""
    return _document(plans, policy, _piped, "## {}\n")


def _document(plans: Plans, policy: str, table: Any, heading: str) -> str:
    plan = plans.plans[policy]
    state = "calibrated" if plans.calibrated else "uncalibrated: datasheet numbers alone"
    proof = "proved optimal" if plan.proved_optimal else "not proved optimal"
    title = f"{plans.block} on {plans.hardware}, {plans.dtype}, {plans.mode} launches, policy {policy}"
    return "\n".join(
        [
            heading.format(title),
            f"predicted {_time(plan.totals.predicted_ns)} ± {plan.totals.predicted_error:.0%} ({state}); "
            f"{proof}; searched in {plans.search_ms:.0f} ms",
            "",
            table(_GROUP_HEAD, [_group_row(g) for g in plan.groups]),
            "",
            heading.format("policies" + ("" if plans.calibrated else " (uncalibrated)")),
            table(_POLICY_HEAD, [_policy_row(p, name == policy) for name, p in plans.plans.items()]),
            "",
            "saved (i): share of launches removed; saved (ii): share of exposed launch time removed, the one that is "
            "latency. x bound: DRAM bytes over the least any plan needs. reuse: bytes served on chip per byte filled.",
        ]
    )


def _group_row(g: GroupPlan) -> tuple[str, ...]:
    shift = g.bottleneck if g.bottleneck == g.bottleneck_before else f"{g.bottleneck_before} -> {g.bottleneck}"
    return (
        " + ".join(g.ops),
        _tile(g.tile),
        _time(g.predicted_ns),
        _time(g.unfused_ns),
        shift,
        _size(g.dram_bytes),
        "—" if g.reuse_factor is None else f"{g.reuse_factor:.1f}",
        f"{g.occupancy:.0%}",
        str(g.waves) if g.waves else "—",
        _size(g.spill_bytes) if g.spill_bytes else "—",
    )


def _policy_row(plan: Plan, chosen: bool) -> tuple[str, ...]:
    t = plan.totals
    return (
        f"{plan.policy}{' *' if chosen else ''}{'' if plan.proved_optimal else ' (not proved)'}",
        f"{_time(t.predicted_ns)} ± {t.predicted_error:.0%}",
        str(t.launches),
        _time(t.exposed_launch_ns),
        _share(t.saved.launches),
        _share(t.saved.exposed_time),
        _size(t.dram_bytes),
        f"{t.dram_bytes / t.dram_lower_bound_bytes:.2f}",
        "—" if t.reuse_factor is None else f"{t.reuse_factor:.1f}",
        _size(t.peak_bytes),
        f"{t.burst:.1f}x",
    )


def _group_json(g: GroupPlan) -> dict[str, Any]:
    return asdict(g) | {"ops": list(g.ops), "reuse_ratio": g.reuse_ratio}


def _totals_json(t: Totals) -> dict[str, Any]:
    table = asdict(t)
    saved = table.pop("saved")
    return table | {
        "launch_reduction": saved["launches"],
        "exposed_time_reduction": saved["exposed_time"],
        "reuse_ratio": None if t.reuse_factor is None else 1 - 1 / t.reuse_factor,
    }


def _aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = []
    for row in (head, *rows):
        cells = [row[0].ljust(widths[0])] + [
            cell.ljust(w) if name in ("tile", "limited by") else cell.rjust(w)
            for name, cell, w in zip(head[1:], row[1:], widths[1:], strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _piped(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _tile(tile: Tile | None) -> str:
    if tile is None:
        return "—"
    split = f" /{tile.split}" if tile.split > 1 else ""
    return f"{tile.m}x{tile.n}x{tile.k}{split}"


def _time(ns: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}" if ns < 1000 * size else f"{ns / size:.0f} {unit}"
    return f"{ns:.0f} ns"


def _size(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}" if count < 1000 * size else f"{count / size:.0f} {unit}"
    return f"{count:.0f} B"


def _share(value: float | None) -> str:
    return "—" if value is None else f"{value:.0%}"
