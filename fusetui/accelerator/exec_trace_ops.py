"""What PyTorch's operators are among those of ONNX, which the model knows how to lower."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from fusetui.accelerator.exec_trace_call import Call
from fusetui.accelerator.onnx_file import Node
from fusetui.accelerator.onnx_ops import words

Shapes = dict[str, tuple[int, ...]]
"""Sizes of every tensor by name; what a call needs between its nodes is added."""
Attributes = Mapping[str, int | tuple[int, ...] | str]

ALLOCATIONS: Final = frozenset(
    f"aten::{name}"
    for name in words(
        "empty empty_like empty_strided new_empty new_empty_strided new_zeros new_ones resize_ result_type size item "
        "_local_scalar_dense set_ zeros ones full zeros_like ones_like full_like arange rand randn randint normal_ "
        "uniform_ fill_ zero_ lift_fresh record_stream is_nonzero scalar_tensor bernoulli_ random_ randperm"
    )
)
"""Calls whose results hold nothing that an operator computed."""

_POINTWISE: Final[Mapping[str, str]] = {
    **dict.fromkeys(words("add sub rsub addcmul lerp"), "Add"),
    **dict.fromkeys(words("mul neg abs square threshold_backward sigmoid_backward tanh_backward logical_and"), "Mul"),
    **dict.fromkeys(words("div reciprocal addcdiv pow sqrt rsqrt"), "Div"),
    **dict.fromkeys(words("relu clamp_min clamp_max clamp hardtanh leaky_relu maximum minimum"), "Relu"),
    **dict.fromkeys(words("where masked_fill eq ne lt le gt ge logical_not bitwise_not tril triu"), "Where"),
    **dict.fromkeys(words("exp log sigmoid sin cos silu hardswish hardsigmoid"), "Sigmoid"),
    **dict.fromkeys(words("tanh erf softplus mish elu"), "Tanh"),
    **dict.fromkeys(words("gelu gelu_backward silu_backward"), "Gelu"),
    "_to_copy": "Cast",
    "to": "Cast",
}
_NORMS: Final = frozenset(
    words("batch_norm native_batch_norm cudnn_batch_norm miopen_batch_norm _native_batch_norm_legit_no_training")
)
_NORM_GRADIENTS: Final = frozenset(
    words("native_batch_norm_backward cudnn_batch_norm_backward miopen_batch_norm_backward")
)
_PRODUCTS: Final[Mapping[str, tuple[str, ...]]] = {
    "mm": ("self", "mat2"),
    "bmm": ("self", "mat2"),
    "matmul": ("self", "other"),
}
_CONVOLUTIONS: Final = frozenset(
    words("conv1d conv2d conv3d convolution _convolution cudnn_convolution miopen_convolution conv_transpose2d")
)
_SOFTMAXES: Final[Mapping[str, str]] = {
    **dict.fromkeys(words("softmax _softmax _safe_softmax"), "Softmax"),
    **dict.fromkeys(words("log_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data"), "LogSoftmax"),
}
_ROWS: Final[Mapping[str, str]] = {
    **dict.fromkeys(words("layer_norm native_layer_norm native_layer_norm_backward"), "LayerNormalization"),
    **dict.fromkeys(words("rms_norm _fused_rms_norm"), "RMSNormalization"),
}
_REDUCTIONS: Final = frozenset(words("mean sum amax amin prod argmax argmin var std norm linalg_vector_norm"))
_POOLS: Final[Mapping[str, str]] = {
    **dict.fromkeys(words("max_pool2d max_pool2d_with_indices"), "MaxPool"),
    "avg_pool2d": "AveragePool",
    "adaptive_avg_pool2d": "AveragePool",
}
_ATTENTIONS: Final = frozenset(
    words(
        "scaled_dot_product_attention _scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention "
        "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_cudnn_attention"
    )
)
_VIEWS: Final = frozenset(
    words(
        "view reshape _unsafe_view _reshape_alias t transpose permute expand expand_as unsqueeze squeeze flatten "
        "detach alias slice select narrow as_strided split chunk unbind view_as unflatten split_with_sizes movedim"
    )
)
_COPIES: Final = frozenset(words("clone copy contiguous repeat"))
_JOINS: Final = frozenset(words("cat stack concat concatenate flatten_dense_tensors"))
_GATHERS: Final[Mapping[str, tuple[str, ...]]] = {
    "embedding": ("weight", "indices"),
    "index_select": ("self", "index"),
    "gather": ("self", "index"),
}
_GRADIENTS: Final = frozenset(words("convolution_backward cudnn_convolution_backward"))


def is_collective(name: str) -> bool:
    """Communication between ranks: no work that the model prices."""
    return name.startswith(("c10d::", "nccl:", "_c10d_functional::", "record_param_comms"))


def is_known(name: str) -> bool:
    """Whether the model has an operator for an `aten` call."""
    if not name.startswith("aten::"):
        return False
    bare = name.removeprefix("aten::")
    return any(bare.removesuffix("_") in table or bare in table for table in _TRANSLATORS)


def translated(call: Call, outputs: Sequence[str], shapes: Shapes) -> list[Node] | None:
    """The nodes of a call; None when there is no operator for it, or its operands are not those it should have."""
    if not call.full_name.startswith("aten::"):
        return None
    for table, translate in _TRANSLATORS.items():
        if call.name in table:
            return translate(call, outputs, shapes)
    return None


def _node(
    call: Call, op: str, inputs: Sequence[str], output: str, about: Attributes | None = None
) -> list[Node] | None:
    if not inputs or not all(inputs):
        return None
    return [Node(f"{call.name} {call.number}", op, "", tuple(inputs), (output,), about or {})]


def _pointwise(call: Call, outputs: Sequence[str], shapes: Shapes) -> list[Node] | None:
    operands = call.all_tensors()
    if not _fits(operands, outputs[0], shapes):
        return None
    return _node(call, _POINTWISE[call.name], operands, outputs[0])


def _norm(call: Call, outputs: Sequence[str], shapes: Shapes) -> list[Node] | None:
    operands = call.all_tensors("input", "grad_output", "grad_out", "weight", "bias")
    channels = shapes[outputs[0]][1:2]
    wide = [name for name in operands if shapes[name] != channels]
    return _node(call, "BatchNormalization", operands, outputs[0]) if _fits(wide, outputs[0], shapes) else None


def _fits(operands: Sequence[str], output: str, shapes: Shapes) -> bool:
    """Whether the operands broadcast to the result."""
    try:
        return np.broadcast_shapes(*(shapes[name] for name in operands)) == shapes[output]
    except ValueError:
        return False


def _product(call: Call, outputs: Sequence[str], shapes: Shapes) -> list[Node] | None:
    return _node(call, "MatMul", [call.first(name) for name in _PRODUCTS[call.name]], outputs[0])


def _linear(call: Call, outputs: Sequence[str], shapes: Shapes) -> list[Node] | None:
    operands = [call.first("input"), call.first("weight"), *call.all_tensors("bias")]
    return _node(call, "Gemm", operands, outputs[0], {"transB": 1})


def _addmm(call: Call, outputs: Sequence[str], shapes: Shapes) -> list[Node] | None:
    operands = [call.first("mat1", "batch1"), call.first("mat2", "batch2"), call.first("self")]
    if not operands[2] or not _fits([operands[2], outputs[0]], outputs[0], shapes):
        operands.pop()
    return _node(call, "Gemm", operands, outputs[0])


def _convolution(call: Call, outputs: Sequence[str], shapes: Shapes) -> list[Node] | None:
    image, weight = call.first("input", "self"), call.first("weight")
    transposed = call.values.get("transposed") is True or call.name.startswith("conv_transpose")
    about = _window(call, image, shapes)
    operands = [image, weight, *call.all_tensors("bias")]
    return _node(call, "ConvTranspose" if transposed else "Conv", operands, outputs[0], about)


def _window(call: Call, image: str, shapes: Shapes) -> dict[str, int | tuple[int, ...] | str]:
    spatial = max(0, len(shapes.get(image, ())) - 2)
    about: dict[str, int | tuple[int, ...] | str] = {"group": (call.integers("groups") or (1,))[0]}
    for name, parameter in (("strides", "stride"), ("dilations", "dilation")):
        sizes = call.integers(parameter)
        if sizes and min(sizes) > 0:
            about[name] = (sizes * spatial)[:spatial]
    return about


def _convolution_gradient(call: Call, outputs: Sequence[str], shapes: Shapes) -> list[Node] | None:
    """For the input a transposed convolution; for the weights (O, N·pixels) (N·pixels, C·window)."""
    grad, image, weight = call.first("grad_output"), call.first("input", "self"), call.first("weight")
    if not grad or not image or not weight or len(shapes[grad]) != len(shapes[image]) or len(shapes[grad]) < 3:
        return None
    label = f"{call.name} {call.number}"
    nodes: list[Node] = []
    by_shape = {shapes[name]: name for name in reversed(outputs)}
    if into := by_shape.get(shapes[image]):
        about = _window(call, image, shapes)
        nodes.append(Node(f"{label}.input", "ConvTranspose", "", (grad, weight), (into,), about))
    if (onto := by_shape.get(shapes[weight])) and onto != into:
        nodes += _weight_gradient(label, grad, image, onto, shapes)
    return nodes or None


def _weight_gradient(label: str, grad: str, image: str, onto: str, shapes: Shapes) -> list[Node]:
    count, out, *pixels = shapes[grad]
    points, window = count * math.prod(pixels), math.prod(shapes[onto][1:])
    shaped = {f"{onto}.left": (out, points), f"{onto}.right": (points, window), f"{onto}.flat": (out, window)}
    shapes.update(shaped)
    left, right, flat = shaped
    return [
        Node(f"{label}.rows", "Reshape", "", (grad,), (left,), {}),
        Node(f"{label}.unfolded", "Reshape", "", (image,), (right,), {}),
        Node(f"{label}.weight", "MatMul", "", (left, right), (flat,), {}),
        Node(f"{label}.shape", "Reshape", "", (flat,), (onto,), {}),
    ]


def _softmax(call: Call, outputs: Sequence[str], shapes: Shapes) -> list[Node] | None:
    axis = (call.integers("dim") or (-1,))[0]
    if not _fits(call.all_tensors(), outputs[0], shapes):
        return None
    return _node(call, _SOFTMAXES[call.name], call.all_tensors(), outputs[0], {"axis": axis})


def _row(call: Call, outputs: Sequence[str], shapes: Shapes) -> list[Node] | None:
    operands = call.all_tensors("input", "grad_out", "weight", "bias")
    axis = -max(1, len(call.integers("normalized_shape")))
    if not _fits(operands, outputs[0], shapes):
        return None
    return _node(call, _ROWS[call.name], operands, outputs[0], {"axis": axis})


def _reduction(call: Call, outputs: Sequence[str], shapes: Shapes) -> list[Node] | None:
    axes = call.integers("dim")
    about: Attributes = {"axes": axes} if axes else {}
    return _node(call, "ReduceMean", [call.first("self")], outputs[0], about)


def _pool(call: Call, outputs: Sequence[str], shapes: Shapes) -> list[Node] | None:
    image = call.first("self", "input")
    kernel = call.integers("kernel_size")
    if not kernel and image:
        pairs = zip(shapes[image][2:], shapes[outputs[0]][2:], strict=False)
        kernel = tuple(max(1, size // max(1, left)) for size, left in pairs)
    return _node(call, _POOLS[call.name], [image], outputs[0], {"kernel_shape": kernel})


def _attention(call: Call, outputs: Sequence[str], shapes: Shapes) -> list[Node] | None:
    return _node(call, "Attention", [call.first(name) for name in ("query", "key", "value")], outputs[0])


def _view(call: Call, outputs: Sequence[str], shapes: Shapes) -> list[Node] | None:
    source = call.first("self", "input")
    parts = [
        Node(f"{call.name} {call.number}.{at}", "Reshape", "", (source,), (out,), {}) for at, out in enumerate(outputs)
    ]
    return parts if source else None


def _copy(call: Call, outputs: Sequence[str], shapes: Shapes) -> list[Node] | None:
    return _node(call, "Tile", [call.first("src", "self")], outputs[0])


def _join(call: Call, outputs: Sequence[str], shapes: Shapes) -> list[Node] | None:
    return _node(call, "Concat", call.all_tensors("tensors"), outputs[0])


def _gather(call: Call, outputs: Sequence[str], shapes: Shapes) -> list[Node] | None:
    return _node(call, "Gather", [call.first(name) for name in _GATHERS[call.name]], outputs[0])


_Translate = Callable[[Call, Sequence[str], Shapes], list[Node] | None]
_TRANSLATORS: Final[dict[frozenset[str], _Translate]] = {
    frozenset(_POINTWISE): _pointwise,
    _NORMS | _NORM_GRADIENTS: _norm,
    frozenset(_PRODUCTS): _product,
    frozenset({"linear"}): _linear,
    frozenset({"addmm", "baddbmm"}): _addmm,
    _CONVOLUTIONS: _convolution,
    _GRADIENTS: _convolution_gradient,
    frozenset(_SOFTMAXES): _softmax,
    frozenset(_ROWS): _row,
    _REDUCTIONS: _reduction,
    frozenset(_POOLS): _pool,
    _ATTENTIONS: _attention,
    _VIEWS: _view,
    _COPIES: _copy,
    _JOINS: _join,
    frozenset(_GATHERS): _gather,
}
