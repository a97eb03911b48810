"""What an operator or kernel does, by the name it has in a capture: PyTorch, ONNX Runtime and GPU library kernels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

Form = Literal[
    "product", "conv", "attention", "pointwise", "row", "reduce", "gather", "copy", "view", "for input", "for weight"
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Part:
    """One operator of the model.

    flops       arithmetic per point
    cost_class  which measured efficiency of vector operators applies
    transposed  a product whose right operand is stored n x k
    channel     point by point with parameters per channel (axis 1)
    """

    label: str
    form: Form
    flops: float = 1.0
    cost_class: str = "elementwise"
    transposed: bool = False
    channel: bool = False


def _pointwise(label: str, flops: float = 1.0, cost_class: str = "elementwise") -> Part:
    return Part(label, "pointwise", flops, cost_class)


_ADD: Final = _pointwise("add", 1.0, "add")
_MUL: Final = _pointwise("mul")
_GELU: Final = _pointwise("gelu", 12.0)
_SILU: Final = _pointwise("silu", 4.0)
_RELU: Final = _pointwise("relu")
_SOFTMAX: Final = Part("softmax", "row", 5.0, "softmax")
_LAYERNORM: Final = Part("layernorm", "row", 7.0, "layernorm")
_RMSNORM: Final = Part("rmsnorm", "row", 4.0, "norm")
_BATCHNORM: Final = Part("batchnorm", "pointwise", 2.0, channel=True)
_REDUCE: Final = Part("reduce", "reduce", 1.0, "reduce")
_COPY: Final = Part("copy", "copy", 0.0, "copy")
_VIEW: Final = Part("view", "view", 0.0)
_MATMUL: Final = Part("matmul", "product", 2.0)
_LINEAR: Final = Part("linear", "product", 2.0, transposed=True)
_CONV: Final = Part("conv", "conv", 2.0)
_ATTENTION: Final = Part("attention", "attention")
_RELU_GRAD: Final = _pointwise("relu.grad")
_LAYERNORM_GRAD: Final = Part("layernorm.grad", "row", 14.0, "layernorm")
_SOFTMAX_GRAD: Final = Part("softmax.grad", "row", 5.0, "softmax")
_BATCHNORM_GRAD: Final = Part("batchnorm.grad", "pointwise", 4.0, channel=True)
_FOR_INPUT: Final = Part("conv.grad", "for input", 2.0)
_FOR_WEIGHT: Final = Part("conv.grad", "for weight", 2.0)
_GATHER: Final = Part("gather", "gather", 0.0, "gather")

# Exact names of operators, in lower case and without `aten::`; several parts are one fused operator.
_OPERATORS: Final[Mapping[str, tuple[Part, ...]]] = MappingProxyType(
    {
        **dict.fromkeys(("linear", "mkldnn_linear", "_linear_pointwise"), (_LINEAR,)),
        **dict.fromkeys(("mm", "bmm", "addmm", "baddbmm", "matmul", "gemm", "addmm_", "_addmm_activation"), (_MATMUL,)),
        **dict.fromkeys(("conv1d", "conv2d", "convolution", "_convolution", "cudnn_convolution", "conv"), (_CONV,)),
        **dict.fromkeys(("miopen_convolution", "mkldnn_convolution", "_convolution_pointwise"), (_CONV,)),
        **dict.fromkeys(("softmax", "_softmax", "_safe_softmax", "log_softmax", "_log_softmax"), (_SOFTMAX,)),
        **dict.fromkeys(("layer_norm", "native_layer_norm", "layernormalization"), (_LAYERNORM,)),
        **dict.fromkeys(("rms_norm", "_fused_rms_norm", "simplifiedlayernormalization"), (_RMSNORM,)),
        **dict.fromkeys(("batch_norm", "_native_batch_norm_legit_no_training", "batchnormalization"), (_BATCHNORM,)),
        **dict.fromkeys(("cudnn_batch_norm", "native_batch_norm", "miopen_batch_norm"), (_BATCHNORM,)),
        **dict.fromkeys(("gelu", "fastgelu", "quickgelu"), (_GELU,)),
        **dict.fromkeys(("silu", "silu_", "swish"), (_SILU,)),
        **dict.fromkeys(("relu", "relu_", "clamp_min", "leaky_relu", "clip", "hardtanh", "clamp"), (_RELU,)),
        **dict.fromkeys(("add", "add_", "sub", "sub_", "rsub", "where", "residual"), (_ADD,)),
        **dict.fromkeys(("mul", "mul_", "div", "div_", "neg", "abs", "square", "reciprocal"), (_MUL,)),
        **dict.fromkeys(("pow", "sqrt", "rsqrt", "exp", "log", "sin", "cos"), (_pointwise("pow", 4.0),)),
        **dict.fromkeys(("sigmoid", "tanh", "erf", "sigmoid_", "tanh_"), (_pointwise("erf", 8.0),)),
        **dict.fromkeys(("maximum", "minimum", "max", "min", "masked_fill", "masked_fill_"), (_RELU,)),
        **dict.fromkeys(("mean", "sum", "amax", "amin", "argmax", "var", "std", "reducemean"), (_REDUCE,)),
        **dict.fromkeys(("reducesum", "reducemax", "globalaveragepool", "adaptive_avg_pool2d"), (_REDUCE,)),
        **dict.fromkeys(("embedding", "index_select", "gather", "embeddinglayernormalization"), (_GATHER,)),
        **dict.fromkeys(("copy_", "clone", "contiguous", "_to_copy", "to", "cast", "identity"), (_COPY,)),
        **dict.fromkeys(("reshape", "reorderinput", "reorderoutput"), (_COPY,)),
        **dict.fromkeys(("scaled_dot_product_attention", "_scaled_dot_product_flash_attention"), (_ATTENTION,)),
        **dict.fromkeys(("_scaled_dot_product_flash_attention_for_cpu",), (_ATTENTION,)),
        **dict.fromkeys(("_scaled_dot_product_efficient_attention",), (_ATTENTION,)),
        **dict.fromkeys(("_scaled_dot_product_cudnn_attention",), (_ATTENTION,)),
        **dict.fromkeys(("threshold_backward", "relu_backward", "sigmoid_backward", "tanh_backward"), (_RELU_GRAD,)),
        **dict.fromkeys(("gelu_backward", "silu_backward"), (_pointwise("gelu.grad", 24.0),)),
        **dict.fromkeys(("native_batch_norm_backward", "cudnn_batch_norm_backward"), (_BATCHNORM_GRAD,)),
        "miopen_batch_norm_backward": (_BATCHNORM_GRAD,),
        "native_layer_norm_backward": (_LAYERNORM_GRAD,),
        "_softmax_backward_data": (_SOFTMAX_GRAD,),
        "convolution_backward": (_FOR_INPUT, _FOR_WEIGHT),
        # ONNX Runtime's fused operators
        "fusedmatmul": (_MATMUL, _MUL),
        "fusedgemm": (_MATMUL, _RELU),
        "fusedconv": (_CONV, _RELU),
        "biasgelu": (_ADD, _GELU),
        "biassoftmax": (_ADD, _SOFTMAX),
        "skiplayernormalization": (_ADD, _LAYERNORM),
        "skipsimplifiedlayernormalization": (_ADD, _RMSNORM),
    }
)  # fmt: skip
_VIEWS: Final = frozenset(
    {
        "view", "_unsafe_view", "transpose", "permute", "t", "expand", "chunk", "split", "slice", "select",
        "unsqueeze", "squeeze", "unflatten", "flatten", "as_strided", "detach", "alias", "narrow", "unbind",
        "split_with_sizes", "dropout", "expand_as", "view_as", "numpy_t",
    }
)  # fmt: skip
# ONNX operators that do other than PyTorch's of the same name.
_ONNX: Final = MappingProxyType({"transpose": "clone", "reshape": "view", "concat": "", "split": "clone"})
# Words in the names of kernels, in the order they are looked for.
_KERNELS: Final = tuple(
    (re.compile(pattern), parts)
    for pattern, parts in (
        (r"dgrad|bwd_?data|igemm_bwd", (_FOR_INPUT,)),
        (r"wgrad|bwd_?weight|igemm_wrw", (_FOR_WEIGHT,)),
        (r"batch_?norm\w*backward|bn_bw", (_BATCHNORM_GRAD,)),
        (r"layer_?norm_grad|layer_?norm_backward", (_LAYERNORM_GRAD,)),
        (r"softmax_?backward", (_SOFTMAX_GRAD,)),
        (r"threshold_?backward|relu_?backward", (_RELU_GRAD,)),
        (r"backward|_bwd", ()),
        (r"memcpy dtod", (_COPY,)),
        (r"^mem(cpy|set)|nccl|all_?reduce|all_?gather|reduce_?scatter|splitk_?reduce", ()),
        (r"flash|fmha|attn_fwd|attention_kernel|unified_attention", (_ATTENTION,)),
        (r"winograd|implicit_gemm|fprop|conv2d|conv_fwd|igemm_fwd", (_CONV,)),
        (r"nchwtonhwc|nhwctonchw|transpose|batched_?copy|copy_kernel|direct_copy", (_COPY,)),
        (r"rms_?norm", (_RMSNORM,)),
        (r"layer_?norm", (_LAYERNORM,)),
        (r"batch_?norm|bn_fw", (_BATCHNORM,)),
        (r"softmax", (_SOFTMAX,)),
        (r"gemm|cijk_|nvjet|cutlass|ampere_.*(nn|nt|tn)|gemv|matmul|xmma", (_MATMUL,)),
        (r"index_?select|gather_kernel|embedding|indexing_kernel", (_GATHER,)),
        (r"gelu", (_GELU,)),
        (r"silu|swish", (_SILU,)),
        (r"functor_?(?:onself_)?add|addfunctor|add_kernel|cudafunctor_add", (_ADD,)),
        (r"relu|clamp|threshold", (_RELU,)),
        (r"reduce_kernel|reduction", (_REDUCE,)),
        (r"elementwise_kernel", (_MUL,)),
    )
)
_FUSED: Final = re.compile(r"(?:triton_(?:poi|red|per|tem|for)|cpp)_fused_(\w+?)_?\d*$")
_WORDS: Final = tuple(
    sorted(
        (
            "native_layer_norm", "_softmax", "softmax", "rms_norm", "native_batch_norm",
            "_native_batch_norm_legit_no_training", "relu", "gelu", "silu", "sigmoid", "tanh", "erf", "add",
            "sub", "mul", "div", "pow", "sqrt", "rsqrt", "exp", "mean", "sum", "amax", "var_mean", "clone",
            "copy_", "embedding", "_to_copy", "neg", "where", "clamp",
        ),
        key=len,
        reverse=True,
    )
)  # fmt: skip


def parts_of(name: str) -> tuple[Part, ...]:
    """What one execution of this name computes, in order; () when the model has no operator for it."""
    fused = _FUSED.search(name)
    if fused:
        return _fused_words(fused.group(1))
    if " + " in name:
        each = [parts_of(part.strip()) for part in name.split(" + ")]
        return tuple(part for parts in each for part in parts) if all(each) else ()
    word = _bare(name)
    if word in _OPERATORS:
        return _OPERATORS[word]
    if word in _VIEWS:
        return (_VIEW,)
    if name.startswith("aten::"):
        return ()
    lower = name.lower()
    return next((parts for pattern, parts in _KERNELS if pattern.search(lower)), ())


def _bare(name: str) -> str:
    """`aten::add` and `Add_17 (Add)` both say `add`; ONNX Runtime's Transpose moves, PyTorch's does not."""
    inner = re.search(r"\((\w+)\)$", name)
    if inner:
        word = inner.group(1).lower()
        return _ONNX.get(word, word)
    return re.sub(r"^(aten|mkldnn|mkl|prims|vllm)::", "", name).lower().removesuffix(".default")


def _fused_words(text: str) -> tuple[Part, ...]:
    """The operators a compiler lists in the name of a fused kernel."""
    found: list[Part] = []
    at = 0
    while at < len(text):
        word = next(
            (w for w in _WORDS if text.startswith(w, at) and text[at + len(w) : at + len(w) + 1] in ("", "_")), ""
        )
        if word:
            found += _OPERATORS.get(word, _OPERATORS.get(word.removeprefix("_"), (_REDUCE,)))
            at += len(word) + 1
        else:
            at = text.find("_", at) + 1 or len(text)
    return tuple(found)
