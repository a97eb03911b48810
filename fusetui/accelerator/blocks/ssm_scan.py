"""A selective state-space layer: projections, short convolution, scan, gate."""

from __future__ import annotations

from collections.abc import Mapping

from fusetui.accelerator.blocks.builder import Builder
from fusetui.accelerator.graph import Graph, Operator

TITLE = "selective state-space (SSM) layer: the scan runs along the sequence, parallel over channels"
DEFAULTS: Mapping[str, int] = {"batch": 1, "sequence": 2048, "hidden": 2560, "channels": 5120, "state": 16}


def build(p: Mapping[str, int], dtype: str) -> Graph:
    """The state lives inside the scan and is never written out."""
    b = Builder("ssm-scan", p, dtype)
    tokens = ("batch", "sequence")
    x = b.tensor("x", (*tokens, "hidden"))
    h = b.norm("norm", x, "hidden", rms=True)
    z = b.linear("gate_proj", h, (*tokens, "channels"))
    u = b.linear("in_proj", h, (*tokens, "channels"))
    u = b.elementwise("short_conv", u, b.weight("short_conv.weight", "channels"), flops=8.0)
    u = b.elementwise("conv_silu", u, flops=4.0)
    step = b.elementwise("softplus", u, b.weight("step.bias", "channels"), flops=6.0)
    decay = b.weight("decay", "channels", "state")
    state_in = b.linear("b_proj", u, (*tokens, "state"))
    state_out = b.linear("c_proj", u, (*tokens, "state"))
    scan = Operator("scan", "scan", (u, step, state_in, state_out, decay), "scan", ("sequence", "state"), 9.0, "scan")
    y = b.add(scan, (*tokens, "channels"))
    y = b.elementwise("gate", y, z, flops=4.0, cost_class="gated")
    y = b.linear("out_proj", y, (*tokens, "hidden"))
    b.elementwise("residual", y, x, cost_class="add")
    return b.graph()
