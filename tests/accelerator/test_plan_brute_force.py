"""Plans of random small blocks against every partition into legal groups, with real rules and prices."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_fusion_search import convex_connected_by_force, every_partition, reached, search

from fusetui.accelerator.blocks.builder import Builder
from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.fusion import Partition, bits
from fusetui.accelerator.graph import Graph
from fusetui.accelerator.group import Group, Rules
from fusetui.accelerator.lattice import Queue
from fusetui.accelerator.launch import Mode, launch_constants, submitted
from fusetui.accelerator.memory import Residency
from fusetui.accelerator.plan import make_plans, price_graph
from fusetui.accelerator.policy import POLICIES
from fusetui.accelerator.presets import load_hardware

HW = load_hardware("A100")
MODES: tuple[Mode, ...] = ("eager", "graph")
CONSTANTS = default_constants(HW, "fp16")


@st.composite
def random_blocks(draw: st.DrawFn) -> Graph:
    """Up to 8 operators over one square shape: products, point by point, softmax, norm, row sums and broadcasts."""
    b = Builder("random", {"m": 512, "n": 512, "k": 512}, "fp16")
    full = [b.tensor("x", ("m", "n"))]
    rows: list[str] = []
    for i in range(draw(st.integers(1, 8))):
        source = draw(st.sampled_from(full))
        kind = draw(st.sampled_from(["product", "point", "join", "softmax", "norm", "sum", "spread"]))
        if kind == "product":
            # A square weight keeps the shape: n is contracted under a name of its own.
            turned = b.layout(f"turn{i}", source, ("m", "k"), view=True)
            full.append(b.matmul(f"op{i}", turned, b.weight(f"w{i}", "k", "n"), ("m", "n")))
        elif kind == "join":
            full.append(b.elementwise(f"op{i}", source, draw(st.sampled_from(full)), cost_class="add"))
        elif kind == "softmax":
            full.append(b.reduction(f"op{i}", source, row="n", flops=5.0, cost_class="softmax", online=True))
        elif kind == "norm":
            full.append(b.norm(f"op{i}", source, "n", rms=False))
        elif kind == "sum":
            rows.append(b.reduction(f"op{i}", source, row="n", flops=1.0, cost_class="reduce", keep=False))
        elif kind == "spread" and rows:
            full.append(b.elementwise(f"op{i}", source, draw(st.sampled_from(rows))))
        else:
            full.append(b.elementwise(f"op{i}", source, flops=4.0))
    return b.graph()


@settings(max_examples=60, deadline=None)
@given(random_blocks())
def test_every_policy_is_as_good_as_the_best_of_all_partitions(graph: Graph) -> None:
    if len(graph.operators) > 8:
        return
    preds = list(graph.predecessors)
    rules = Rules(graph)
    every = {m for m in convex_connected_by_force(preds, 10) if isinstance(rules.group(m), Group)}
    priced = price_graph(graph, HW, CONSTANTS, "fp16")
    assert {g.mask for g in priced.groups} == every
    plans = {mode: make_plans(graph, HW, CONSTANTS, "fp16", mode=mode).plans for mode in MODES}
    by_mask = {g.mask: (g, p) for g, p in zip(priced.groups, priced.prices, strict=True)}
    for name in ("conservative", "balanced", "aggressive"):
        policy = POLICIES[name]
        legal: dict[int, float] = {}
        for mask, (group, price) in by_mask.items():
            own = max(price.flops - price.repeated_flops, 1.0)
            fits = math.isfinite(price.time_ns) and (policy.may_spill or not price.spill_bytes)
            if not policy.time_first:
                apart = sum(by_mask[1 << i][1].dram_bytes for i in bits(mask))
                fits = fits and price.dram_bytes <= apart
            fits = fits and price.occupancy >= policy.least_occupancy
            fits = fits and price.repeated_flops <= policy.repeat_limit * own
            if group.reach and not (group.reach <= policy.reach and fits):
                continue
            legal[mask] = 0.0 if group.pattern == "view" else price.time_ns
            if not policy.time_first:
                legal[mask] += price.dram_bytes / HW.dram_bytes_per_s * 1e9
        launched = {mask: by_mask[mask][0].pattern != "view" for mask in legal}
        for mode in MODES:
            plan = plans[mode][name]
            most = submitted(len(preds), HW.launch, mode)
            queue = Queue(most, launch_constants(HW.launch, mode)[1])
            every = every_partition(preds, legal, queue, launched)
            best = min(every, key=lambda way: way if policy.time_first else way[::-1])
            free = search(preds, legal, queue, launched, fewest_first=not policy.time_first)
            assert free is not None
            assert reached(free, legal, queue, launched) == pytest.approx(best)
            assert plan.proved_optimal
            # The limit on live memory may forbid the fastest partition; nothing else may.
            index = {op.name: i for i, op in enumerate(graph.operators)}
            masks = tuple(sum(1 << index[name] for name in g.ops) for g in plan.groups)
            got = reached(Partition(masks, True, 0), legal, queue, launched)
            if policy.time_first:
                assert got == pytest.approx((plan.totals.predicted_ns, plan.totals.launches))
            assert plan.totals.peak_bytes <= plans[mode]["none"].totals.peak_bytes
            assert plan.totals.within_unfused
            if got == pytest.approx(best):
                continue
            assert (got if policy.time_first else got[::-1]) > (best if policy.time_first else best[::-1])
            chosen = [by_mask[mask][0] for mask in free.groups]
            workspace = [by_mask[mask][1].workspace_bytes for mask in free.groups]
            assert Residency.of(graph).peak(graph, chosen, workspace) > plan.totals.peak_bytes
