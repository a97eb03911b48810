"""Launch counts of our policies beside ONNX Runtime and IREE for the same blocks, and every difference explained.

    FUSETUI_CORPUS=... python tests/bench/bench_launches.py [--hardware host]

The runtimes' counts and what each of their kernels computes come from their own profiles in the reference folder; the
models are built here and checked node by node against the profile without optimisation. Needs `onnx`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "accelerator"))

from launch_accounts import Kernel, differences, kernels_per_run, plan_kernels, profile_kernels, runtime_kernels
from onnx_models import Model, residual_block, transformer
from stablehlo_graph import iree_roots, plan_roots, read_stablehlo

from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.graph import Graph
from fusetui.accelerator.hardware import Hardware
from fusetui.accelerator.plan import Plan, make_plans
from fusetui.accelerator.presets import load_hardware

LEVELS = ("off", "basic", "ext", "all")
ROOTS = ("product", "softmax", "reduction", "slice", "transpose", "elementwise")


def plans_of(graph: Graph, hw: Hardware) -> Mapping[str, Plan]:
    """Every policy, in fp32 as the profiles were taken."""
    return make_plans(graph, hw, default_constants(hw, "fp32"), "fp32").plans


def onnx_runtime(folder: Path, hw: Hardware, name: str, model: Model, shapes: dict[str, int], tag: str) -> None:
    """One block: the table of counts, what each level joined, and each of our policies against level `ext`."""
    with tempfile.TemporaryDirectory() as where:
        graph = model.read(Path(where), shapes).graph
    paths = {level: folder / f"ort_{name}_{level}_{tag}.json" for level in LEVELS}
    off = profile_kernels(paths["off"])
    for event in off:
        own = graph.operators[int(event["args"]["node_index"])].name
        assert own.rstrip("0123456789") == event["args"]["op_name"], own
    kernels = {level: runtime_kernels(graph, off, profile_kernels(path)) for level, path in paths.items()}
    plans = plans_of(graph, hw)
    print(f"## {name} {tag}, {len(graph.operators)} nodes")
    counts = [f"{level} {kernels_per_run(path):g}" for level, path in paths.items()]
    print("ONNX Runtime kernels per run:  " + ", ".join(counts))
    print("ours, launches:                " + ", ".join(f"{p} {plan.totals.launches}" for p, plan in plans.items()))
    _levels(graph, kernels)
    for policy, level in (("none", "off"), ("conservative", "ext"), ("balanced", "ext"), ("aggressive", "ext")):
        _against(graph, level, kernels[level], policy, plan_kernels(graph, plans[policy]))
    print()


def _levels(graph: Graph, kernels: Mapping[str, Sequence[Kernel]]) -> None:
    """What each level joins that the one before does not."""
    before: Sequence[Kernel] = kernels["off"]
    for level in LEVELS[1:]:
        print(f"off -> {level}" if level == "basic" else f"-> {level}")
        old = {k.nodes for k in before}
        for kernel in kernels[level]:
            if kernel.nodes not in old or not kernel.nodes:
                into = "  (folded into its weights or its order)" if _kept(graph, kernel) else ""
                print(f"   {kernel.name:20} = {_names(graph, kernel)}{into}")
        lost = set().union(*old) - set().union(*(k.nodes for k in kernels[level]))
        if lost:
            print(f"   removed              = {' + '.join(graph.operators[i].name for i in sorted(lost))}")
        before = kernels[level]


def _kept(graph: Graph, kernel: Kernel) -> bool:
    """Whether the kernel is a node of the model that has taken others in."""
    return len(kernel.nodes) > 1 and any(graph.operators[i].name.startswith(kernel.name) for i in kernel.nodes)


def _names(graph: Graph, kernel: Kernel) -> str:
    return " + ".join(graph.operators[i].name for i in sorted(kernel.nodes)) or "(added by the runtime)"


def _against(graph: Graph, level: str, theirs: Sequence[Kernel], policy: str, ours: Sequence[Kernel]) -> None:
    found = differences(graph, theirs, ours)
    total = sum(len(d.theirs) - len(d.ours) for d in found)
    assert total == len(theirs) - len(ours), "the differences do not add up to the counts"
    print(f"ONNX Runtime {level} {len(theirs)}, our {policy} {len(ours)}: {total:+d} in {len(found)} places")
    for d in found:
        print(f"   {len(d.theirs):2} : {len(d.ours)}  " + " | ".join(_names(graph, k) for k in d.theirs))
        if d.ours:
            print("       we:  " + " | ".join(_names(graph, k) for k in d.ours))
        print(f"       why: {d.why}")


def iree(folder: Path, hw: Hardware, tag: str) -> None:
    """The same block from StableHLO: dispatches by what they are rooted in, beside our launches by the same roots."""
    graph = read_stablehlo(folder / f"block_{tag}.stablehlo.mlir")
    levels = {level: iree_roots(folder / f"block_{tag}.{level}.stats.csv") for level in ("O0", "O1", "O2", "O3")}
    plans = {name: plan_roots(graph, plan) for name, plan in plans_of(graph, hw).items()}
    views = sum(op.is_view for op in graph.operators)
    print(f"## IREE, block {tag}: {len(graph.operators)} operations, {views} of them views, softmax as one")
    columns = {f"IREE {level}": counts for level, counts in levels.items()} | plans
    print("root         " + "".join(f"{name:>14}" for name in columns))
    for root in ROOTS:
        print(f"{root:13}" + "".join(f"{counts[root]:14}" for counts in columns.values()))
    print("launches     " + "".join(f"{counts.total():14}" for counts in columns.values()))
    _explain("our none -> IREE O0", plans["none"], levels["O0"], _FUSED)
    _explain("IREE O0 -> O2", levels["O0"], levels["O2"], _FUSED)
    _explain("IREE O3 -> our conservative", levels["O3"], plans["conservative"], _OURS)
    _explain("IREE O3 -> our balanced", levels["O3"], plans["balanced"], _OURS)
    print()


_FUSED = {
    "elementwise": "inside a dispatch rooted in something else: no dispatch is named after one",
    "transpose": "read or written in the order of the product next to it, or composed with another transpose",
    "reduction": "the two reductions of a norm are over one row and share a dispatch",
}
_OURS = {
    "product": "both products of attention are one kernel",
    "softmax": "inside that kernel",
    "slice": "a slice of the packed projection is read where it is needed instead of copied",
    "transpose": "conservative keeps products alone, so a transpose behind one is a kernel",
    "elementwise": "conservative keeps products alone, and no group has more than ten operators",
    "reduction": "a norm goes into the product that reads it",
}


def _explain(title: str, before: Counter[str], after: Counter[str], why: Mapping[str, str]) -> None:
    print(f"{title}: {before.total()} -> {after.total()}")
    for root in ROOTS:
        if after[root] != before[root]:
            print(f"   {after[root] - before[root]:+3d} {root}: {why[root]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hardware", default="host")
    hw = load_hardware(parser.parse_args().hardware)
    corpus = os.environ.get("FUSETUI_CORPUS")
    if not corpus:
        sys.exit("set FUSETUI_CORPUS to the reference folder")
    local = Path(corpus) / "traces" / "local"
    onnx_runtime(local / "ort", hw, "block", transformer(), {"batch": 1, "sequence": 128}, "1x128x256")
    shapes = {"batch": 1, "height": 32, "width": 32}
    onnx_runtime(local / "ort", hw, "conv", residual_block(), shapes, "1x64x32x32")
    iree(local / "iree", hw, "1x128")


if __name__ == "__main__":
    main()
