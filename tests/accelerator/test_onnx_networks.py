"""Real networks that ship with the onnx package, without their weights: published arithmetic and launches."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx_models import onnx

from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.onnx_graph import read_onnx
from fusetui.accelerator.presets import load_hardware
from fusetui.accelerator.sections import plan_graph

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def network(name: str) -> Path:
    path = FOLDER / f"light_{name}.onnx"
    if not path.exists():
        pytest.skip(f"this onnx package has no {name}")
    return path


# Multiply-adds of one image as torchvision's table of models gives them for the same layers.
@pytest.mark.parametrize(
    ("name", "products", "multiply_adds"),
    [("resnet50", 54, 4.09e9), ("densenet121", 121, 2.83e9), ("vgg19", 19, 19.63e9), ("squeezenet", 26, 0.35e9)],
)
def test_arithmetic_of_known_networks(name: str, products: int, multiply_adds: float) -> None:
    graph = read_onnx(network(name), {}).graph
    found = [op for op in graph.operators if op.kind in ("matmul", "conv")]
    assert len(found) == products
    assert sum(graph.flops(op) for op in found) / 2 == pytest.approx(multiply_adds, rel=0.01)


def test_a_deep_network_is_one_kernel_per_convolution() -> None:
    """53 convolutions and a classifier with everything else in their kernels, but for two pools and the softmax."""
    read = read_onnx(network("resnet50"), {})
    hw = load_hardware("A100")
    plans, notes = plan_graph(read.graph, hw, default_constants(hw, read.dtype), read.dtype)
    assert plans.plans["none"].totals.launches == 175
    assert 54 <= plans.plans["balanced"].totals.launches <= 57
    assert "not considered" in notes[0]
    assert not plans.plans["balanced"].proved_optimal
    covered = [op for g in plans.plans["balanced"].groups for op in g.ops]
    assert sorted(covered) == sorted(op.name for op in read.graph.operators)
