"""Plans with fixed numbers for the screens' tests: how good the model is at the moment is none of their business."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from fusetui.accelerator.blocks import build_block
from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.launch import LaunchReduction
from fusetui.accelerator.plan import GroupPlan, Plan, Plans, Totals
from fusetui.accelerator.policy import POLICIES
from fusetui.accelerator.presets import load_hardware
from fusetui.accelerator.price import Tile
from fusetui.analysis.planned import Captured, GroupRow, Knobs, Measured, Planned, scaled

TILE = Tile(128, 256, 64, 1, 4)
ATTENTION = Tile(128, 128, 128, 2, 2)
# operators, tile, before, after, µs, MB, GFLOP
GROUPS: tuple[tuple[str, Tile | None, str, str, float, float, float], ...] = (
    ("attention_norm", None, "dram", "dram", 16, 16.8, 0.0168),
    ("q_proj q_rope", TILE, "compute", "compute", 54.7, 43.2, 34.4),
    ("v_proj", TILE, "compute", "compute", 54.6, 50.3, 34.4),
    ("k_proj k_rope", TILE, "compute", "compute", 54.8, 50.6, 34.4),
    ("k_heads v_heads scores scale mask softmax values", ATTENTION, "dram", "compute", 35.4, 11.5, 8.82),
    ("o_proj attention_residual", TILE, "compute", "compute", 54.7, 51.3, 34.4),
    ("mlp_norm", None, "dram", "dram", 14.5, 8.4, 0.0168),
    ("gate_proj", TILE, "compute", "compute", 152, 119.8, 92.3),
    ("up_proj silu gate", TILE, "compute", "compute", 153, 140.2, 92.4),
    ("down_proj mlp_residual", TILE, "compute", "compute", 142, 126.1, 92.3),
)
POLICY_US = {"none": 1080.0, "conservative": 952.0, "balanced": 754.0, "aggressive": 855.0}
LAUNCHES = {"none": 22, "conservative": 18, "balanced": 10, "aggressive": 8}
MOVED_MB = {"none": 1340.0, "conservative": 1020.0, "balanced": 618.0, "aggressive": 610.0}


def filled(kind: type[Any], **given: Any) -> Any:
    """A dataclass of the model with 0 in the fields that no test is about."""
    return kind(**{f.name: given.get(f.name, 0.0) for f in fields(kind)})


def group(index: int, knobs: Knobs) -> GroupPlan:
    """One group; what memory limits goes with the bandwidth."""
    ops, tile, before, after, time_us, moved, flops = GROUPS[index]
    time_ns = time_us * 1e3 / (knobs.bandwidth if after == "dram" else 1.0)
    made: GroupPlan = filled(
        GroupPlan,
        ops=tuple(ops.split()),
        pattern="vector" if tile is None else "matmul",
        tile=tile,
        bottleneck_before=before,
        bottleneck=after,
        predicted_ns=time_ns,
        unfused_ns=time_ns * 1.2,
        dram_bytes=moved * 1e6,
        reuse_factor=10.0,
        occupancy=0.5 if tile is None else 0.125,
        waves=1,
        flops=flops * 1e9,
    )
    return made


def plan(name: str, knobs: Knobs) -> Plan:
    """All policies group alike: only their totals differ."""
    groups = tuple(group(i, knobs) for i in range(len(GROUPS)))
    kernel_ns = POLICY_US[name] * 1e3 - sum(g[4] * 1e3 for g in GROUPS) + sum(g.predicted_ns for g in groups)
    totals: Totals = filled(
        Totals,
        predicted_ns=kernel_ns + 2.37e4 * knobs.launch,
        predicted_error=0.3,
        predicted_error_p95=0.6,
        kernel_ns=kernel_ns,
        launches=LAUNCHES[name],
        exposed_launch_ns=2.37e3 * LAUNCHES[name] * knobs.launch,
        dram_bytes=MOVED_MB[name] * 1e6,
        dram_lower_bound_bytes=4.22e8,
        reuse_factor=10.9,
        peak_bytes=4.75e8,
        burst=1.8,
        within_unfused=True,
        within_device=True,
        saved=LaunchReduction(1 - LAUNCHES[name] / 22, 0.5 - LAUNCHES[name] / 44),
    )
    return Plan(name, groups, totals, name != "aggressive")


def fake_planned(
    knobs: Knobs, captured: Captured | None = None, *, policies: Sequence[str] = tuple(POLICIES)
) -> Planned:
    """As `make_planned`, of a transformer block, whatever is asked for; fp64 cannot be planned."""
    if knobs.dtype == "fp64":
        raise AcceleratorError("hardware H100", "no value for 'fp64'", "it has bf16")
    base = load_hardware("h100")
    graph = build_block("transformer-prefill")
    wanted = {name: plan(name, knobs) for name in POLICIES if name in (*policies, knobs.policy, "none")}
    plans = Plans(graph.name, base.name, knobs.dtype, knobs.mode, False, wanted, 1.0)
    rows = tuple(GroupRow(one, None, None, "") for one in wanted[knobs.policy].groups)
    return Planned(knobs, graph, scaled(base, knobs), default_constants(base, knobs.dtype), plans, rows, captured)


def fake_measured(knobs: Knobs | None = None) -> Planned:
    """A plan beside what ran: g2 fits, g5 is slower, g9 unexplained, the others did not run."""
    made = fake_planned(knobs or Knobs())
    ran = {1: (1.05, "fits"), 4: (1.41, "slower"), 8: (12.3, "unexplained")}
    rows = list(made.rows)
    for at, (factor, verdict) in ran.items():
        p50_ns = round(rows[at].plan.predicted_ns * factor)
        measured = Measured(40, p50_ns, p50_ns + 1000, 40 * p50_ns)
        rows[at] = replace(rows[at], measured=measured, residual=factor - 1, verdict=verdict)
    kernels = {op: f"aten::{op}" for one in GROUPS for op in one[0].split()}
    captured = Captured(
        made.graph, {}, kernels, 90_000_000, 81_000_000, (("memcpy", 6_000_000), ("nccl", 3_000_000)), "bf16"
    )
    return replace(made, rows=tuple(rows), captured=captured)
