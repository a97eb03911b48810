"""The residual bottleneck of a convolutional network: 1x1, 3x3, 1x1."""

from __future__ import annotations

from collections.abc import Mapping

from fusetui.accelerator.blocks.builder import Builder
from fusetui.accelerator.graph import Graph, Operator

TITLE = "convolution bottleneck, 1x1 - 3x3 - 1x1 with scale, ReLU and residual"
DEFAULTS: Mapping[str, int] = {"batch": 16, "height": 56, "width": 56, "channels": 256, "middle": 64}


def build(p: Mapping[str, int], dtype: str) -> Graph:
    """Batch normalisation is folded to a scale and a shift."""
    b = Builder("conv-bottleneck", {**p, "kernel_h": 3, "kernel_w": 3, "middle_in": p["middle"]}, dtype)
    plane = ("batch", "height", "width")
    x = b.tensor("x", (*plane, "channels"))

    def activate(name: str, source: str, channel: str, *residual: str) -> str:
        scaled = b.elementwise(f"{name}.scale", source, b.weight(f"{name}.factors", channel), flops=2.0)
        if residual:
            scaled = b.elementwise(f"{name}.residual", scaled, *residual, cost_class="add")
        return b.elementwise(f"{name}.relu", scaled)

    h = b.matmul("reduce", x, b.weight("reduce.weight", "channels", "middle_in"), (*plane, "middle_in"))
    h = activate("reduce", h, "middle_in")
    weight = b.weight("spatial.weight", "kernel_h", "kernel_w", "middle_in", "middle")
    h = b.add(
        Operator("spatial", "conv", (h, weight), "spatial", ("kernel_h", "kernel_w", "middle_in"), 2.0, "conv", 3),
        (*plane, "middle"),
    )
    h = activate("spatial", h, "middle")
    h = b.matmul("expand", h, b.weight("expand.weight", "middle", "channels"), (*plane, "channels"))
    activate("expand", h, "channels", x)
    return b.graph()
