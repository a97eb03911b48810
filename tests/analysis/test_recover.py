"""Graphs recovered from names and shapes: which operators, what feeds what, and where every nanosecond went."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recoverrows import Run, frame_of, inputs_of, recovered

from fusetui.accelerator.graph import matmul_shape
from fusetui.analysis.planned import Captured
from fusetui.analysis.recover import captured_from
from fusetui.analysis.recover.names import parts_of
from fusetui.analysis.recover.recovery import MAX_OPERATORS
from fusetui.telemetry.header import Header

BLOCK: list[Run] = [
    ("aten::layer_norm", "4x64x256 256 256 f32", 30),
    ("aten::linear", "4x64x256 384x256 384 f32", 600),
    ("aten::chunk", "4x64x384 f32", 5),
    ("aten::view", "4x64x128 f32", 1),
    ("aten::matmul", "4x4x64x32 4x4x32x64 f32", 170),
    ("aten::softmax", "4x4x64x64 f32", 34),
    ("aten::matmul", "4x4x64x64 4x4x64x32 f32", 90),
    ("aten::linear", "4x64x128 256x128 256 f32", 270),
    ("aten::add", "4x64x256 4x64x256 f32", 20),
]
PRODUCTS = ("linear", "matmul", "matmul.2", "linear.2")


def sizes(captured: Captured, name: str) -> tuple[int, int, int, int]:
    op = next(op for op in captured.graph.operators if op.name == name)
    return matmul_shape(captured.graph, op)


def test_block_has_its_operators_sizes_and_times() -> None:
    found = recovered(BLOCK * 5)
    kinds = [(op.name, op.kind) for op in found.graph.operators if not op.is_view]
    assert kinds == [
        ("layernorm", "reduction"),
        ("linear", "matmul"),
        ("matmul", "matmul"),
        ("softmax", "reduction"),
        ("matmul.2", "matmul"),
        ("linear.2", "matmul"),
        ("add", "elementwise"),
    ]
    wanted = [(1, 256, 384, 256), (16, 64, 64, 32), (16, 64, 32, 64), (1, 256, 256, 128)]
    assert [sizes(found, name) for name in PRODUCTS] == wanted
    assert {name: (m.runs, m.p50_ns, m.total_ns) for name, m in found.measured.items()} == {
        "layernorm": (5, 30, 150),
        "linear": (5, 600, 3000),
        "matmul": (5, 170, 850),
        "softmax": (5, 34, 170),
        "matmul.2": (5, 90, 450),
        "linear.2": (5, 270, 1350),
        "add": (5, 20, 100),
    }
    assert (found.window_ns, found.explained_ns) == (6100, 6070)
    assert found.unexplained == (("aten::chunk", 25), ("aten::view", 5))
    assert found.dtype == "fp32"
    assert found.kernels["softmax"] == "aten::softmax"


def test_block_reads_what_it_read() -> None:
    found = recovered(BLOCK * 5)
    assert inputs_of(found, "linear")[0] == "layernorm"
    assert inputs_of(found, "matmul") == ["linear", "linear"]
    assert inputs_of(found, "softmax") == ["matmul"]
    assert inputs_of(found, "matmul.2") == ["softmax", "linear"]
    assert inputs_of(found, "linear.2")[0] == "matmul.2"
    # The residual goes around the block: its source is what the block was given, not the norm.
    assert inputs_of(found, "add") == ["linear.2", "input"]


def test_square_products_in_a_chain_feed_each_other_through_activations() -> None:
    chain: list[Run] = [("aten::mm", "8x16 16x16 bf16", 9), ("aten::relu", "8x16 bf16", 2)]
    found = recovered([*chain, *chain, ("aten::mm", "8x16 16x4 bf16", 5)])
    assert found.dtype == "bf16"
    assert inputs_of(found, "relu") == ["matmul"]
    assert sizes(found, "matmul.2") == (1, 8, 4, 16)
    assert inputs_of(found, "matmul.2")[0] == "relu"
    assert found.measured["matmul"].runs == 2, "two equal layers are one block that ran twice"


def test_queries_keys_and_values_are_siblings() -> None:
    project: Run = ("aten::linear", "8x64 64x64 64 f32", 50)
    found = recovered([("aten::layer_norm", "8x64 64 64 f32", 3), project, project, project])
    assert [inputs_of(found, name)[0] for name in ("linear", "linear.2", "linear.3")] == ["layernorm"] * 3


def test_layers_are_folded_and_the_rest_stays() -> None:
    layer: list[Run] = [("aten::linear", "8x32 32x32 f32", 40), ("aten::gelu", "8x32 f32", 4)]
    head: Run = ("aten::linear", "8x32 100x32 f32", 90)
    found = recovered([*(layer * 12), head])
    assert [op.name for op in found.graph.operators] == ["linear", "gelu", "linear.2"]
    assert found.measured["linear"].runs == 12
    assert found.measured["linear.2"].runs == 1
    assert found.explained_ns == found.window_ns == 12 * 44 + 90
    assert any("ran 1 to 12 times" in note for note in found.notes)


def test_steps_of_other_shapes_are_left_out_and_said() -> None:
    def step(rows: int) -> list[Run]:
        return [("aten::linear", f"{rows}x32 32x32 f32", 10 * rows), ("aten::relu", f"{rows}x32 f32", rows)]

    found = recovered([*step(8), *step(64), *step(64), *step(8)], [0, 0, 1, 1, 2, 2, 3, 3])
    assert sizes(found, "linear") == (1, 64, 32, 32)
    assert found.measured["linear"].runs == 2
    assert found.explained_ns == 2 * 64 * 11
    assert found.unexplained == (("aten::linear", 160), ("aten::relu", 16))
    assert any(note.startswith("2 of 4 steps have these sizes and took 89% of the time") for note in found.notes)


def test_fused_kernels_are_groups_of_their_members() -> None:
    found = recovered(
        [
            ("MatMul_1 (FusedMatMul)", "4x64x32 4x32x64 > 4x64x64 f32", 70),
            ("Gelu (BiasGelu)", "4x64x64 64 > 4x64x64 f32", 20),
            ("triton_poi_fused_add_relu_0", "4x64x64 4x64x64 f32", 9),
        ]
    )
    assert found.together == (("matmul", "mul"), ("add", "gelu"), ("add.2", "relu"))
    assert inputs_of(found, "gelu") == ["add"]
    assert found.measured["matmul"].p50_ns == 70
    assert "mul" not in found.measured
    assert found.explained_ns == 99


def test_attention_kernel_is_three_operators() -> None:
    found = recovered([("aten::scaled_dot_product_attention", "2x8x16x64 2x2x32x64 2x2x32x64 f16", 100)])
    assert found.together == (("attention.scores", "attention.softmax", "attention.values"),)
    assert sizes(found, "attention.scores") == (4, 64, 32, 64)
    assert sizes(found, "attention.values") == (4, 64, 64, 32)
    flash = recovered([("void flash_fwd_kernel", "2x16x8x64 2x32x2x64 2x32x2x64 bf16", 100)])
    assert sizes(flash, "attention.scores") == (4, 64, 32, 64)


def test_weights_packed_ahead_are_told_from_the_result() -> None:
    found = recovered([("MatMul_3 (MatMul)", "4x64x256 > 4x64x1024 f32", 10)])
    assert sizes(found, "matmul") == (1, 256, 1024, 256)


def test_convolution_takes_its_result_from_who_reads_it() -> None:
    found = recovered(
        [("aten::conv2d", "2x64x56x56 128x64x3x3 f32", 50), ("aten::batch_norm", "2x128x28x28 128 128 128 128 f32", 5)]
    )
    conv = found.graph.operators[0]
    assert (conv.kernel, conv.stride) == (3, 2)
    assert found.graph.flops(conv) == 2 * 2 * 128 * 28 * 28 * 64 * 9
    assert inputs_of(found, "batchnorm")[0] == "conv"


def test_patches_of_an_image_are_counted_where_they_are_a_sequence() -> None:
    found = recovered(
        [
            ("aten::conv2d", "4x3x224x224 768x3x16x16 bf16", 50),
            ("aten::copy_", "4x3x224x224 4x3x224x224 bf16", 3),
            ("aten::layer_norm", "4x196x768 768 768 bf16", 3),
        ]
    )
    conv = found.graph.operators[0]
    assert (conv.kernel, conv.stride) == (16, 16)
    assert found.graph.flops(conv) == 2 * 4 * 14 * 14 * 768 * 3 * 16 * 16


def test_backward_nodes_have_the_sizes_of_what_they_undo() -> None:
    node = "autograd::engine::evaluate_function: "
    found = recovered(
        [
            ("aten::linear", "8x32 64x32 f32", 10),
            ("aten::relu", "8x64 f32", 2),
            ("aten::linear", "8x64 16x64 f32", 9),
            (f"{node}AddmmBackward0", None, 20),
            (f"{node}ReluBackward0", None, 3),
            (f"{node}AddmmBackward0", None, 25),
        ]
    )
    assert found.together == (("grad", "grad.2"), ("grad.3", "grad.4"))
    assert [sizes(found, f"grad{n}") for n in ("", ".2", ".3", ".4")] == [
        (1, 8, 64, 16),
        (1, 16, 64, 8),
        (1, 8, 32, 64),
        (1, 64, 32, 8),
    ]
    assert found.measured["relu.grad"].p50_ns == 3
    assert found.explained_ns == found.window_ns == 69


def test_gradients_of_a_convolution_have_its_arithmetic() -> None:
    sizes_of = "2x128x28x28 2x64x56x56 128x64x3x3 f32"
    found = recovered([("aten::convolution_backward", sizes_of, 50), ("sm80_xmma_dgrad_implicit_gemm", sizes_of, 20)])
    assert found.together == (("conv.grad", "conv.grad.2"),)
    forward = 2 * 2 * 128 * 28 * 28 * 64 * 9
    assert [found.graph.flops(op) for op in found.graph.operators if not op.is_view] == [forward] * 3


def test_time_without_shapes_is_said() -> None:
    found = recovered([("aten::mm", "8x8 8x8 f32", 60), ("graph kernel", None, 40)])
    assert any(note.startswith("40% of the time has no input shapes") for note in found.notes)
    assert found.unexplained == (("graph kernel", 40),)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16>", ["matmul"]),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S", ["matmul"]),
        ("void at::native::vectorized_layer_norm_kernel<float>", ["layernorm"]),
        ("triton_per_fused_native_layer_norm_add_3", ["layernorm", "add"]),
        ("conv1 + relu", []),
        ("Conv_2 (FusedConv)", ["conv", "relu"]),
        ("aten::_fused_adamw_", []),
        ("Memcpy DtoD (Device -> Device)", ["copy"]),
        ("ncclDevKernel_AllReduce", []),
    ],
)
def test_names(name: str, labels: list[str]) -> None:
    assert [part.label for part in parts_of(name)] == labels


@pytest.mark.parametrize(
    ("runs", "reason"),
    [
        ([], "no executions in this capture: nothing ran that could be planned"),
        ([("gemm", None, 5)], "no input shapes in this capture: record with record_shapes=True"),
        (
            [("custom_op", "4x4 f32", 5)],
            "no operator in this capture is known to the model: name them as PyTorch or ONNX do",
        ),
        (
            [("decode block", "b=1 t=128 d=192 f32", 5)],
            "the shapes in this capture are not those of operators (b=1 t=128 d=192 f32): plan a block of the model"
            " instead",
        ),
        (
            [("Torch-Compiled Region: 0", "8x8 8x8 f32", 5)],
            "only compiled regions are rows here: `fusetui plan CAPTURE` reads the operators inside of them",
        ),
        (
            [("aten::mm", "4x5 6x7 f32", 5)],
            "no operator in this capture has shapes that fit together: record with record_shapes=True",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_recovered_says_why(runs: list[Run], reason: str) -> None:
    assert captured_from(frame_of(runs), Header()) == reason


NAMES = ["aten::linear", "aten::matmul", "aten::add", "aten::softmax", "aten::view", "aten::embedding", "aten::sum",
         "aten::conv2d", "aten::copy_", "flash_fwd", "triton_poi_fused_add_mul_1", "MmBackward0", "other"]  # fmt: skip
_DIMS = st.lists(st.sampled_from([1, 2, 3, 4, 8]), min_size=1, max_size=4).map(lambda d: "x".join(map(str, d)))
_SHAPE = st.one_of(
    st.none(),
    st.text("0123x>:= f", max_size=12),
    st.lists(_DIMS, min_size=1, max_size=4).map(lambda w: " ".join(w) + " f32"),
)  # fmt: skip
_RUN = st.tuples(st.sampled_from(NAMES), _SHAPE, st.integers(0, 10**9))


@given(st.lists(_RUN, max_size=40), st.integers(1, 3))
def test_any_rows_are_accounted_for(runs: list[Run], times: int) -> None:
    found = captured_from(frame_of(runs * times), Header())
    if isinstance(found, str):
        assert found.partition(": ")[2]
        return
    assert found.window_ns == sum(took for _, _, took in runs) * times
    assert found.explained_ns + sum(took for _, took in found.unexplained) == found.window_ns
    assert sum(m.total_ns for m in found.measured.values()) == found.explained_ns
    assert sum(not op.is_view for op in found.graph.operators) <= MAX_OPERATORS
    names = {op.name for op in found.graph.operators}
    assert set(found.measured) <= names


def test_the_busiest_device_is_shown() -> None:
    frame = frame_of([("aten::mm", "8x8 8x8 f32", 60), ("aten::relu", "8x8 f32", 5), ("aten::mm", "8x8 8x8 f32", 50)])
    found = captured_from(frame.with_columns(device=pl.Series([1, 0, 0], dtype=pl.Int32)), Header())
    assert isinstance(found, Captured)
    assert (found.window_ns, found.measured["matmul"].p50_ns) == (65, 60)
    assert "the busiest of 2 devices is shown" in found.notes


@pytest.mark.parametrize(
    ("hardware", "name"),
    [
        ({"device 0": "NVIDIA H100 80GB HBM3, 132 SMs, 79 GiB"}, "H100"),
        ({"device 0": "AMD Instinct MI300X VF, 304 SMs, 191 GiB"}, "MI300X"),
        ({"device 0": "NVIDIA L40S, 142 SMs"}, "L40S"),
        ({"device 0": "NVIDIA GeForce RTX 2080 Ti"}, None),
        ({"device 0": "x86_64 CPU", "cores": "2"}, "host"),
        ({"providers": "CUDA"}, None),
        ({}, "host"),
    ],
)
def test_hardware_is_told_from_the_header(hardware: dict[str, str], name: str | None) -> None:
    found = captured_from(frame_of([("aten::mm", "8x8 8x8 f32", 60)]), Header(hardware=hardware))
    assert isinstance(found, Captured)
    assert found.hardware == name
