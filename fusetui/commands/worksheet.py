"""The worksheet of a plan as text, Markdown or JSON. "uncalibrated" is said beside every prediction that is."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from fusetui.accelerator.pareto import TileChoice
from fusetui.accelerator.plan import GroupPlan, Plan, Plans, Totals
from fusetui.accelerator.price import Tile

Table = Callable[[Sequence[str], Sequence[Sequence[str]]], str]
Options = Mapping[tuple[str, ...], Sequence[TileChoice]]

_WIDTH: Final = 98
_GROUP_HEAD: Final = (
    "tile", "time", "alone", "limited by", "DRAM", "reuse", "ratio", "occ.", "regs", "waves", "spill",
)  # fmt: skip
_POLICY_HEAD: Final = (
    "policy", "time", "launches", "exposed", "(i)", "(ii)", "DRAM", "x bound", "reuse", "peak", "burst",
)  # fmt: skip
_TILE_HEAD: Final = ("tile", "time", "on chip", "DRAM", "")
_LEGEND: Final = (
    "saved (i): share of launches removed; saved (ii): share of exposed launch time removed, the one that is latency. "
    "x bound: DRAM bytes over the least any plan needs. reuse: bytes served on chip per byte filled; ratio: 1 - 1 / "
    "reuse. burst: DRAM traffic in the busiest 100 µs over the plan's mean. regs: of a thread."
)


def as_json(plans: Plans, policy: str, options: Options | None = None) -> str:
    """The plan of `policy` with the totals of all policies. Times in ns, sizes in bytes, absent is null.

    `options` are the tiles to choose between, from `tile_options`: then every group has them as `tiles`.
    """
    plan = plans.plans[policy]
    return json.dumps(
        {
            "block": plans.block,
            "hardware": plans.hardware,
            "dtype": plans.dtype,
            "launch": plans.mode,
            "policy": policy,
            "calibrated": plans.calibrated,
            "groups": [_group_json(g, options) for g in plan.groups],
            "totals": _totals_json(plan.totals),
            "policies": {
                name: _totals_json(p.totals) | {"proved_optimal": p.proved_optimal} for name, p in plans.plans.items()
            },
            "proved_optimal": plan.proved_optimal,
            "search_ms": round(plans.search_ms, 3),
        },
        indent=2,
    )


def as_text(plans: Plans, policy: str, options: Options | None = None) -> str:
    """Aligned columns for a terminal of 100 columns. `options` as for JSON."""
    groups = plans.plans[policy].groups
    first, *rows = _aligned(_GROUP_HEAD, [_group_row(g) for g in groups]).splitlines()
    lines = ["group", f"  {first}"]
    for group, row in zip(groups, rows, strict=True):
        lines += [*_wrapped(" + ".join(group.ops)), f"  {row}"]
        if options and (tiles := options.get(group.ops)):
            table = _aligned(_TILE_HEAD, [_tile_row(t, group) for t in tiles])
            lines += [f"      {line}" for line in table.splitlines()]
    return _document(plans, policy, "\n".join(lines), _aligned, "{}", _wrapped)


def as_markdown(plans: Plans, policy: str, options: Options | None = None) -> str:
    """Markdown tables, for an issue or a design note. `options` as for JSON."""
    groups = plans.plans[policy].groups
    parts = [_piped(("group", *_GROUP_HEAD), [(" + ".join(g.ops), *_group_row(g)) for g in groups])]
    if options:
        rows = [(" + ".join(g.ops), *_tile_row(tile, g)) for g in groups for tile in options.get(g.ops, ())]
        parts.append("## tiles no other beats in time, on-chip and DRAM bytes at once\n")
        parts.append(_piped(("group", *_TILE_HEAD), rows))
    return _document(plans, policy, "\n\n".join(parts), _piped, "## {}\n", lambda text: [text])


def _document(
    plans: Plans, policy: str, groups: str, table: Table, heading: str, wrapped: Callable[[str], list[str]]
) -> str:
    plan = plans.plans[policy]
    state = "calibrated" if plans.calibrated else "uncalibrated: datasheet numbers alone"
    proof = "proved optimal" if plan.proved_optimal else "not proved optimal"
    title = f"{plans.block} on {plans.hardware}, {plans.dtype}, {plans.mode} launches, policy {policy}"
    return "\n".join(
        [
            heading.format(title),
            *wrapped(
                f"predicted {_time(plan.totals.predicted_ns)} ± {plan.totals.predicted_error:.0%} ({state}), "
                f"± {plan.totals.predicted_error_p95:.0%} in 19 cases of 20"
            ),
            f"{proof}; searched in {plans.search_ms:.0f} ms",
            *(line for warning in _warnings(plan.totals) for line in wrapped(warning)),
            "",
            groups,
            "",
            heading.format("policies" + ("" if plans.calibrated else " (uncalibrated)")),
            table(_POLICY_HEAD, [_policy_row(p, name == policy) for name, p in plans.plans.items()]),
            "",
            *wrapped(_LEGEND),
        ]
    )


def _warnings(totals: Totals) -> list[str]:
    found = []
    if not totals.within_unfused:
        found.append(
            f"warning: {_size(totals.peak_bytes)} are live at once, more than with every operator alone: no order of "
            "groups was found that needs less"
        )
    if not totals.within_device:
        found.append(f"warning: {_size(totals.peak_bytes)} are live at once, more than the device's memory holds")
    return found


def _group_row(g: GroupPlan) -> tuple[str, ...]:
    shift = g.bottleneck if g.bottleneck == g.bottleneck_before else f"{g.bottleneck_before}→{g.bottleneck}"
    return (
        _tile(g.tile),
        _time(g.predicted_ns),
        _time(g.unfused_ns),
        shift,
        _size(g.dram_bytes),
        "—" if g.reuse_factor is None else f"{g.reuse_factor:.1f}",
        "—" if g.reuse_ratio is None else f"{g.reuse_ratio:.2f}",
        f"{g.occupancy:.0%}",
        "—" if g.registers is None else f"{g.registers:.0f}",
        str(g.waves) if g.waves else "—",
        _size(g.spill_bytes) if g.spill_bytes else "—",
    )


def _tile_row(choice: TileChoice, group: GroupPlan) -> tuple[str, ...]:
    chosen = choice.tile == group.tile
    return (
        _tile(choice.tile), _time(choice.time_ns), _size(choice.sram_bytes), _size(choice.dram_bytes),
        "chosen" if chosen else "",
    )  # fmt: skip


def _policy_row(plan: Plan, chosen: bool) -> tuple[str, ...]:
    t = plan.totals
    return (
        f"{plan.policy}{' *' if chosen else ''}{'' if plan.proved_optimal else ' ~'}",
        _time(t.predicted_ns),
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


def _group_json(g: GroupPlan, options: Options | None) -> dict[str, Any]:
    table = asdict(g) | {"ops": list(g.ops), "reuse_ratio": g.reuse_ratio}
    return table if options is None else table | {"tiles": [asdict(choice) for choice in options.get(g.ops, ())]}


def _totals_json(t: Totals) -> dict[str, Any]:
    table = asdict(t)
    saved = table.pop("saved")
    return table | {
        "launch_reduction": saved["launches"],
        "exposed_time_reduction": saved["exposed_time"],
        "reuse_ratio": None if t.reuse_factor is None else 1 - 1 / t.reuse_factor,
    }


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH)


def _aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    gap = "  " if sum(widths) + 2 * len(widths) <= _WIDTH else " "
    lines = []
    for row in (head, *rows):
        cells = [
            cell.ljust(w) if name in ("policy", "tile", "limited by") else cell.rjust(w)
            for name, cell, w in zip(head, row, widths, strict=True)
        ]
        lines.append(gap.join(cells).rstrip())
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
