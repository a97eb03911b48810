"""Execution traces as graphs: the flow by tensor ids, the arithmetic of each operator, and what is left out."""

from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.exec_trace import looks_like_execution_trace, read_execution_trace
from fusetui.accelerator.exec_trace_call import schema_names
from fusetui.accelerator.graph import Graph
from fusetui.accelerator.onnx_graph import OnnxGraph

SCHEMAS = {
    "aten::linear": "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    "aten::mm": "aten::mm(Tensor self, Tensor mat2) -> Tensor",
    "aten::addmm": "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    "aten::add": "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "aten::mul": "aten::mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    "aten::relu_": "aten::relu_(Tensor(a!) self) -> Tensor(a!)",
    "aten::relu": "aten::relu(Tensor self) -> Tensor",
    "aten::t": "aten::t(Tensor(a) self) -> Tensor(a)",
    "aten::empty": "aten::empty.memory_format(SymInt[] size, *, ScalarType? dtype=None) -> Tensor",
    "aten::conv2d": "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], "
    "SymInt[2] padding=[0, 0], SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
    "aten::convolution_backward": "aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, "
    "SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding) -> (Tensor, Tensor, Tensor)",
    "aten::softmax": "aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    "aten::layer_norm": "aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, "
    "Tensor? bias=None, float eps=1e-05) -> Tensor",
    "aten::mean": "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False) -> Tensor",
    "aten::embedding": "aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1) -> Tensor",
    "aten::cat": "aten::cat(Tensor[] tensors, int dim=0) -> Tensor",
    "aten::scaled_dot_product_attention": "aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, "
    "Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False) -> Tensor",
}


def tensor(number: int, *shape: int, storage: int = 0, kind: str = "float") -> tuple[Any, Any, str]:
    return [number, storage or number + 1000, 0, 0, 4, "cuda:0"], list(shape), f"Tensor({kind})"


def listed(*tensors: tuple[Any, Any, str]) -> tuple[Any, Any, str]:
    values, shapes, kinds = zip(*tensors, strict=True)
    return list(values), list(shapes), f"GenericList[{','.join(kinds)}]"


def integers(*values: int) -> tuple[Any, Any, str]:
    return list(values), [[]] * len(values), "GenericList[Int]"


def _side(arguments: list[Any]) -> dict[str, list[Any]]:
    found = [a if isinstance(a, tuple) else (a, [], "Int") for a in arguments]
    return {"values": [a[0] for a in found], "shapes": [a[1] for a in found], "types": [a[2] for a in found]}


def call(number: int, name: str, inputs: list[Any], outputs: list[Any], parent: int = 1) -> dict[str, Any]:
    attributes = [{"name": "op_schema", "type": "string", "value": SCHEMAS.get(name, "")}]
    return {
        "id": number, "name": name, "ctrl_deps": parent, "inputs": _side(inputs), "outputs": _side(outputs),
        "attrs": attributes,
    }  # fmt: skip


def old(node: dict[str, Any]) -> dict[str, Any]:
    """The same node as schema 1.0.1 has it."""
    inputs, outputs = node["inputs"], node["outputs"]
    return {
        "id": node["id"], "name": node["name"], "parent": node["ctrl_deps"], "inputs": inputs["values"],
        "input_shapes": inputs["shapes"], "input_types": inputs["types"], "outputs": outputs["values"],
        "output_shapes": outputs["shapes"], "output_types": outputs["types"],
        "op_schema": node["attrs"][0]["value"],
    }  # fmt: skip


def text_of(nodes: list[dict[str, Any]], schema: str = "1.1.0-chakra.0.0.4") -> str:
    root = {"id": 1, "name": "[pytorch|profiler|execution_trace|process]", "ctrl_deps": 1, "inputs": {}, "outputs": {}}
    return json.dumps({"schema": schema, "pid": 1, "time": "2024-06-30", "nodes": [root, *nodes]})


def read(folder: Path, *nodes: dict[str, Any], dtype: str | None = None) -> OnnxGraph:
    path = folder / "run_et.json"
    path.write_text(text_of(list(nodes)))
    return read_execution_trace(path, dtype)


def work(graph: Graph) -> dict[str, tuple[str, float]]:
    return {op.name: (op.kind, graph.flops(op)) for op in graph.operators if not op.is_view}


X, W, B, Y, Z = tensor(1, 8, 16), tensor(2, 32, 16), tensor(3, 32), tensor(4, 8, 32), tensor(5, 8, 32)
LAYER = [call(10, "aten::linear", [X, W, B], [Y]), call(20, "aten::relu", [Y], [Z])]


def test_a_layer_is_its_product_and_what_follows(tmp_path: Path) -> None:
    found = read(tmp_path, *LAYER)
    graph = found.graph
    assert work(graph) == {"linear 10": ("matmul", 2.0 * 8 * 16 * 32), "relu 20": ("elementwise", 8.0 * 32)}
    assert graph.predecessors == (0, 1)
    assert sorted(t.role for t in graph.tensors.values()) == ["input", "value", "value", "weight"]
    assert found.dtype == "fp32"
    assert found.notes[0].startswith("an execution trace has no times; 2 of 2 operators (100%) are known to the model")


@pytest.mark.parametrize("packed", [False, True])
def test_the_old_schema_and_gzip_say_the_same(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "old_et.json"
    text = text_of([old(node) for node in LAYER], "1.0.1").encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    assert looks_like_execution_trace(path)
    assert work(read_execution_trace(path).graph) == work(read(tmp_path, *LAYER).graph)


def test_values_of_equal_sizes_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    """Sizes leave a choice here: the sum is of the first and the third value, not of the newest two."""
    first, second, third, total = (tensor(i, 8, 8) for i in range(1, 5))
    graph = read(
        tmp_path, call(10, "aten::relu", [tensor(9, 8, 8)], [first]), call(20, "aten::relu", [first], [second]),
        call(30, "aten::relu", [second], [third]), call(40, "aten::add", [third, first, 1], [total]),
    ).graph  # fmt: skip
    assert graph.predecessors == (0, 0b1, 0b10, 0b101)


def test_an_id_that_is_used_again_is_another_tensor(tmp_path: Path) -> None:
    once, again, other = tensor(1, 8, 8), tensor(1, 8, 8), tensor(2, 8, 8)
    graph = read(
        tmp_path, call(10, "aten::relu", [tensor(9, 8, 8)], [once]), call(15, "aten::empty", [integers(8, 8)], [again]),
        call(20, "aten::add", [again, tensor(9, 8, 8), 1], [other]),
    ).graph  # fmt: skip
    assert graph.predecessors == (0, 0)
    # A tensor of the same number in another storage, or of other sizes, is no result of the first call either.
    for given in (tensor(1, 8, 8, storage=77), tensor(1, 64)):
        out = (other[0], given[1], other[2])
        found = read(
            tmp_path, call(10, "aten::relu", [tensor(9, 8, 8)], [once]), call(20, "aten::relu", [given], [out])
        )
        assert found.graph.predecessors == (0, 0)


def test_a_call_in_place_makes_a_new_version(tmp_path: Path) -> None:
    y = tensor(4, 8, 16)
    graph = read(
        tmp_path, call(10, "aten::relu", [X], [y]), call(20, "aten::relu_", [y], [y]),
        call(30, "aten::add", [y, X, 1], [tensor(6, 8, 16)]),
    ).graph  # fmt: skip
    assert graph.predecessors == (0, 0b1, 0b10)


def test_a_result_given_to_write_into_is_not_read(tmp_path: Path) -> None:
    out = tensor(7, 8, 16)
    graph = read(tmp_path, call(10, "aten::relu", [X], [out]), call(20, "aten::mul", [X, X, out], [out])).graph
    assert graph.predecessors[1] == 0


def test_the_call_stands_for_those_inside_it(tmp_path: Path) -> None:
    turned, inner = tensor(8, 16, 32, storage=1002), call(12, "aten::addmm", [B, X, tensor(8, 16, 32), 1, 1], [Y], 10)
    graph = read(tmp_path, LAYER[0], call(11, "aten::t", [W], [turned], 10), inner).graph
    assert list(work(graph)) == ["linear 10"]


def test_wrappers_and_annotations_are_looked_into(tmp_path: Path) -> None:
    wrapper = call(5, "autograd::engine::evaluate_function: MmBackward0", [], [])
    note = call(6, "## backward ##", [], [], 5)
    product = call(7, "aten::mm", [tensor(1, 4, 8), tensor(2, 8, 2)], [tensor(3, 4, 2)], 6)
    assert work(read(tmp_path, wrapper, note, product).graph) == {"mm 7": ("matmul", 2.0 * 4 * 8 * 2)}


def test_a_strided_convolution_and_its_gradients(tmp_path: Path) -> None:
    image, weight, out = tensor(1, 2, 3, 32, 32), tensor(2, 8, 3, 3, 3), tensor(3, 2, 8, 16, 16)
    grad, into, onto = tensor(4, 2, 8, 16, 16), tensor(5, 2, 3, 32, 32), tensor(6, 8, 3, 3, 3)
    sizes = [integers(2, 2), integers(1, 1), integers(1, 1), 1]
    none: tuple[Any, Any, str] = ("<None>", [], "None")
    backward = [grad, image, weight, none, integers(2, 2), integers(1, 1)]
    graph = read(
        tmp_path, call(10, "aten::conv2d", [image, weight, none, *sizes], [out]),
        call(20, "aten::convolution_backward", backward, [into, onto]),
    ).graph  # fmt: skip
    flops = 2.0 * 2 * 8 * 16 * 16 * 3 * 9
    assert work(graph) == {
        "conv2d 10": ("conv", flops),
        "convolution_backward 20.input": ("conv", flops),
        "convolution_backward 20.weight": ("matmul", flops),
    }
    strides = {op.name: op.stride for op in graph.operators if op.kind == "conv"}
    assert strides == {"conv2d 10": 2, "convolution_backward 20.input": 2}


def test_rows_reductions_gathers_and_joins(tmp_path: Path) -> None:
    x, row = tensor(1, 4, 16), tensor(9, 16)
    graph = read(
        tmp_path,
        call(10, "aten::embedding", [tensor(20, 100, 16), tensor(21, 4, kind="long"), -1], [x]),
        call(20, "aten::layer_norm", [x, integers(16), row, row, 1], [tensor(2, 4, 16)]),
        call(30, "aten::softmax", [tensor(2, 4, 16), -1], [tensor(3, 4, 16)]),
        call(40, "aten::cat", [listed(tensor(3, 4, 16), tensor(2, 4, 16)), 0], [tensor(4, 8, 16)]),
        call(50, "aten::mean", [tensor(4, 8, 16), integers(1), 0], [tensor(5, 8)]),
    ).graph
    kinds = {name: kind for name, (kind, _) in work(graph).items()}
    assert kinds == {
        "embedding 10": "gather", "layer_norm 20": "reduction", "softmax 30": "reduction", "cat 40": "layout",
        "mean 50": "reduction",
    }  # fmt: skip
    assert graph.predecessors == (0, 0b1, 0b10, 0b110, 0b1000)


def test_attention_is_scores_softmax_and_values(tmp_path: Path) -> None:
    q, k, v, out = (tensor(i, 2, 4, 64, 32) for i in range(1, 5))
    graph = read(tmp_path, call(10, "aten::scaled_dot_product_attention", [q, k, v], [out])).graph
    assert [flops for kind, flops in work(graph).values() if kind == "matmul"] == [2.0 * 2 * 4 * 64 * 64 * 32] * 2


def test_what_is_not_known_is_counted_and_moves_data(tmp_path: Path) -> None:
    found = read(
        tmp_path, *LAYER, call(30, "mine::twist", [Z], [tensor(6, 8, 32)]),
        call(31, "aten::empty", [1], [tensor(7, 8)]),
        call(32, "c10d::allreduce_", [listed(Z)], [listed(Z)]),
        call(33, "aten::_foreach_mul_", [listed(W, B), 1], []),
    )  # fmt: skip
    assert work(found.graph)["twist 30"] == ("layout", 0.0)
    assert found.graph.predecessors[-1] == 0b10
    told = "; ".join(found.notes)
    for part in (
        "2 of 3 operators (67%) are known", "1 allocations and fills: left out", "1 collectives: left out",
        "1 operators on lists of tensors (optimizers), or without a result: left out",
        "not known to the model, taken for data movement: mine::twist",
    ):  # fmt: skip
        assert part in told


def test_operands_that_do_not_fit_their_result_are_data_movement(tmp_path: Path) -> None:
    found = read(tmp_path, *LAYER, call(30, "aten::add", [Z, tensor(9, 7, 32), 1], [tensor(6, 8, 32)]))
    assert work(found.graph)["add 30"] == ("layout", 0.0)
    assert "taken for data movement: aten::add" in "; ".join(found.notes)


def test_the_second_of_several_steps_is_shown(tmp_path: Path) -> None:
    steps = [call(100 * i, f"ProfilerStep#{i}", [], []) for i in (1, 2, 3)]
    calls = [call(100 * i + 10, "aten::relu", [tensor(i, 8, i)], [tensor(10 + i, 8, i)], 100 * i) for i in (1, 2, 3)]
    # The backward pass is of another thread, and of the step it ran in.
    behind = call(220, "aten::relu", [tensor(12, 8, 2)], [tensor(30, 8, 2)], 1)
    found = read(tmp_path, *steps, *calls, behind)
    assert list(work(found.graph)) == ["relu 210", "relu 220"]
    assert "one of 3 steps is shown: ProfilerStep#2" in found.notes


def test_another_type_takes_the_place_of_floats(tmp_path: Path) -> None:
    assert {t.dtype for t in read(tmp_path, *LAYER, dtype="bf16").graph.tensors.values()} == {"bf16"}
    half = [tensor(i, 8, 8, kind="c10::Half") for i in (1, 2, 3)]
    assert read(tmp_path, call(10, "aten::mm", half[:2], half[2:])).dtype == "fp16"


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ("aten::f(Tensor(a!)[] self, int[2] k=[1, 1], *, Tensor? out=None) -> ()", ["self", "k", "out"]),
        ("aten::f() -> Tensor", []),
        ("", []),
    ],
)
def test_parameters_are_named_by_the_schema(schema: str, names: list[str]) -> None:
    assert schema_names({"op_schema": schema}) == names


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (text_of([]), "no operator in it that the model knows"),
        (text_of(LAYER)[:-40], "is not a whole execution trace"),
        ('{"schema": "1.0.1", "nodes": [{"id": "x", "name": 3}]}', "no operator"),
        ('{"schema": "1.0.1", "nodes": [1]}', "is not a whole execution trace"),
    ],
)
def test_broken_traces_are_refused_in_a_line(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(AcceleratorError, match=line):
        read_execution_trace(path)


def test_a_profile_is_no_execution_trace(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    for text in ('{"schemaVersion": 1, "traceEvents": []}', "[1]", ""):
        path.write_text(text)
        assert not looks_like_execution_trace(path)
    assert not looks_like_execution_trace(tmp_path / "none")


def test_mutations_are_read_or_refused(tmp_path: Path) -> None:
    text, path, read_well = text_of(LAYER), tmp_path / "m.json", 0
    for case in range(1000 if os.environ.get("FUSETUI_FUZZ") else 200):
        noise = random.Random(case)
        data = bytearray(text.encode())
        for _ in range(noise.randint(1, 4)):
            at = noise.randrange(len(data))
            data[at : at + noise.randint(0, 3)] = str(noise.choice([-1, 0, 7, 1 << 60, "[]", "null"])).encode()
        path.write_bytes(data)
        try:
            read_well += bool(read_execution_trace(path).graph.operators)
        except AcceleratorError as error:
            assert "\n" not in str(error)  # noqa: PT017
    assert read_well > 5


CORPUS = os.environ.get("FUSETUI_CORPUS")


@pytest.mark.skipif(not CORPUS, reason="FUSETUI_CORPUS is not set")
@pytest.mark.parametrize(
    ("name", "gflop", "known", "total"),
    [
        # 32 images: three times a forward pass of 4.09 G multiply-adds, less the gradient of the images.
        ("facebookresearch__param__resnet_et.json.gz", 777.57, 1543, 1544),
        ("facebookresearch__param__1.1.0-chakra.0.0.4_resnet_2gpu_et.json.gz", 777.57, 1543, 1544),
        # 21 layers of 512 x 1024 x 1024 forward, 41 products backward.
        ("facebookresearch__param__linear_et.json.gz", 62 * 2 * 512 * 1024 * 1024 / 1e9, 275, 277),
    ],
)
def test_real_traces_have_the_arithmetic_of_their_models(name: str, gflop: float, known: int, total: int) -> None:
    found = read_execution_trace(Path(CORPUS or "", "traces", "pytorch_et", name))
    graph = found.graph
    heavy = sum(graph.flops(op) for op in graph.operators if op.kind in ("matmul", "conv"))
    assert heavy / 1e9 == pytest.approx(gflop, rel=1e-4)
    assert f"{known:,} of {total:,} operators" in found.notes[0]
