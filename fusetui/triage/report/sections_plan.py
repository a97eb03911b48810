"""Excerpts of the worksheet and of the closed loop: what was planned, what ran, what would have helped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fusetui.analysis import fmt
from fusetui.triage.report.blocks import Block, Bullets, Command, Section, Table, Text
from fusetui.triage.report.words import ns, num, pct, whole

Told = Mapping[str, Any]
_PLANS: Final = 8
_ACTIONS: Final = 5


def mapping_section(told: Told) -> Section | None:
    """None where there is neither a plan nor a mapping to tell of."""
    mapping = told["mapping"]
    if mapping is None:
        return None
    blocks = [*_worksheet(mapping["offline"]), *_ran(mapping["telemetry"]), *_actions(mapping)]
    if not blocks:
        return None
    return Section("Plan and mapping", (*blocks, Command(mapping["command"])))


def _worksheet(offline: Told) -> list[Block]:
    plans = offline["plans"]
    if not plans:
        return []
    rows = tuple(
        (plan["model"], plan["policy"], plan["size"], whole(plan["groups"]), ns(plan["predicted_ns"]),
         ns(plan["exposed_launch_ns"]), fmt.size(plan["dram_bytes"]).strip(),
         f"{plan['slowest_group']} ({plan['bottleneck']})")
        for plan in plans[:_PLANS]
    )  # fmt: skip
    head = ("model", "policy", "size", "launches", "predicted", "exposed", "DRAM", "slowest group")
    text = f"Worksheet, from {offline['from']} on {offline['hardware']}; predictions are the model's, uncalibrated."
    left = len(plans) - len(rows)
    more: list[Block] = [Text(f"and {left} more plans, see the JSON form")] if left else []
    return [Text(text), Table(head, rows, (3, 4, 5, 6)), *more, *_residuals(offline.get("groups", ()))]


def _residuals(groups: Any) -> list[Block]:
    lines = tuple(
        f"{group['group']}: predicted {ns(group['predicted_ns'])}, measured {group['residual'] * 100:+.0f} % "
        f"({group['verdict']}, {group['bottleneck']})"
        for group in groups
    )
    return [Text("Measured beside predicted, furthest off first:"), Bullets(lines)] if lines else []


def _ran(seen: Told) -> list[Block]:
    lines = []
    if seen["planned"] is not None:
        shares = ", ".join(f"{way} {pct(seen[way])}" for way in ("planned", "adapted", "fallback"))
        lines.append(f"executions by mapping: {shares}")
    if seen["padding"] is not None:
        lines.append(f"padding factor {seen['padding']:.2f}, {whole(seen['padded'])} executions padded")
    if seen["compiles"]:
        lines.append(f"{whole(seen['compiles'])} recompiles, stalls {ns(seen['stall_ns'])}")
    for name, text in (("accuracy", "mapping accuracy"), ("gain", "adaptation gain")):
        if seen[name] is not None:
            lines.append(f"{text} {pct(seen[name])}")
    if seen["fallback_cost_ns"] is not None:
        lines.append(f"fallback cost {ns(seen['fallback_cost_ns'])}")
    if seen["drift"] is not None:
        lines.append(f"shape drift {num(seen['drift']['index'])} ({seen['drift']['verdict']})")
    stuck = seen["metastable"]
    if stuck is not None:
        of = f" of {stuck['of']}" if stuck["of"] else ""
        lines.append(
            f"fallback{of} that feeds itself: batches grew from {num(stuck['batch_before'])} to "
            f"{num(stuck['batch_during'])}, over the largest planned {stuck['largest_planned']}"
        )
    return [Bullets(tuple(lines))] if lines else []


def _actions(mapping: Told) -> list[Block]:
    actions = mapping["actions"]
    if not actions:
        return []
    rows = tuple(
        (action["title"], action["state"], _tail(action["before"]), _tail(action["after"]), action["rollback"])
        for action in actions[:_ACTIONS]
    )
    left = len(actions) - len(rows)
    more: list[Block] = [Text(f"and {left} more")] if left else []
    return [Text("Bounded changes, tried on the requests that came:"),
            Table(("change", "state", "p99 before", "p99 after", "rollback"), rows, (2, 3)), *more]  # fmt: skip


def _tail(tail: Mapping[str, Any] | None) -> str:
    return fmt.DASH if tail is None else ns(tail["p99_ns"])
