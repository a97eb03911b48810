"""A mixture of experts: routing, the chosen experts' MLPs, weighted sum."""

from __future__ import annotations

from collections.abc import Mapping

from fusetui.accelerator.blocks.builder import Builder
from fusetui.accelerator.graph import Graph, Operator

TITLE = "mixture-of-experts MLP, tokens spread evenly over the experts"
DEFAULTS: Mapping[str, int] = {"tokens": 1024, "hidden": 4096, "inner": 14336, "experts": 8, "chosen": 2}


def build(p: Mapping[str, int], dtype: str) -> Graph:
    """Experts are a batch dimension; each sees tokens x chosen / experts rows."""
    slots = max(1, -(-p["tokens"] * p["chosen"] // p["experts"]))
    sizes = {"tokens": p["tokens"], "hidden": p["hidden"], "inner": p["inner"], "experts": p["experts"]}
    b = Builder("moe-expert", sizes | {"slots": slots, "chosen": p["chosen"]}, dtype)
    x = b.tensor("x", ("tokens", "hidden"))
    logits = b.linear("router", x, ("tokens", "experts"))
    b.reduction("router_softmax", logits, row="experts", flops=5.0, cost_class="softmax")
    indices = b.tensor("routing", ("experts", "slots"), dtype="fp32")
    routed = b.add(Operator("dispatch", "gather", (x, indices), "dispatch", flops_per_point=0.0, cost_class="gather"),
                   ("experts", "slots", "hidden"))  # fmt: skip
    inner = ("experts", "slots", "inner")
    gate = b.matmul("gate_proj", routed, b.weight("gate_proj.weight", "experts", "hidden", "inner"), inner)
    up = b.matmul("up_proj", routed, b.weight("up_proj.weight", "experts", "hidden", "inner"), inner)
    gate = b.elementwise("silu", gate, flops=4.0)
    mixed = b.elementwise("gate", gate, up, cost_class="gated")
    weight = b.weight("down_proj.weight", "experts", "inner", "hidden")
    out = b.matmul("down_proj", mixed, weight, ("experts", "slots", "hidden"))
    back = b.tensor("return", ("tokens", "chosen"), dtype="fp32")
    picked = b.add(Operator("combine", "gather", (out, back), "combine", flops_per_point=0.0, cost_class="gather"),
                   ("tokens", "chosen", "hidden"))  # fmt: skip
    scales = b.tensor("scales", ("tokens", "chosen"))
    weighted = b.elementwise("weigh", picked, scales)
    b.reduction("sum", weighted, row="chosen", flops=1.0, cost_class="reduce", keep=False)
    return b.graph()
