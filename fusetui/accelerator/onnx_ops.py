"""What each ONNX operator is to the model: point by point and at what cost, a row, a view, a copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final


def words(text: str) -> list[str]:
    """The words of a list."""
    return text.split()


# Arithmetic per point: additions and products count one, a root, division or power by hardware about four, and a
# transcendental function the length of its usual polynomial.
POINTWISE: Final[Mapping[str, float]] = {
    **dict.fromkeys(
        words(
            "Add Sub Mul Neg Abs Relu Min Max Clip Where Cast CastLike Not And Or Xor Equal Less LessOrEqual Greater "
            "GreaterOrEqual Floor Ceil Round Sign IsNaN IsInf LeakyRelu PRelu ThresholdedRelu Mod BitShift BitwiseAnd "
            "BitwiseOr BitwiseXor BitwiseNot Sum Mean BiasAdd Trilu Shrink"
        ),
        1.0,
    ),
    **dict.fromkeys(words("Div Pow Sqrt Reciprocal HardSigmoid HardSwish QuantizeLinear DequantizeLinear"), 4.0),
    **dict.fromkeys(words("Exp Log Sigmoid Sin Cos Tan Silu Swish Softsign QuickGelu"), 4.0),
    **dict.fromkeys(words("Erf Tanh Sinh Cosh Asin Acos Atan Elu Celu Selu Softplus Mish"), 8.0),
    **dict.fromkeys(words("Gelu FastGelu BiasGelu"), 12.0),
    "BatchNormalization": 2.0,
    "RotaryEmbedding": 3.0,
}

REDUCTIONS: Final = frozenset(
    words(
        "ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp "
        "ReduceSumSquare ArgMax ArgMin GlobalAveragePool GlobalMaxPool"
    )
)

# Rows that stay in the result: (arithmetic per point, cost class).
ROWS: Final[Mapping[str, tuple[float, str]]] = {
    "Softmax": (5.0, "softmax"),
    "LogSoftmax": (6.0, "softmax"),
    "Hardmax": (2.0, "softmax"),
    "LayerNormalization": (7.0, "layernorm"),
    "SkipLayerNormalization": (8.0, "layernorm"),
    "RMSNormalization": (4.0, "norm"),
    "SimplifiedLayerNormalization": (4.0, "norm"),
    "SkipSimplifiedLayerNormalization": (5.0, "norm"),
    "InstanceNormalization": (7.0, "layernorm"),
    "GroupNormalization": (7.0, "layernorm"),
    "LpNormalization": (3.0, "norm"),
}

VIEWS: Final = frozenset(words("Reshape Flatten Squeeze Unsqueeze Identity Dropout"))

COPIES: Final = frozenset(
    words(
        "Transpose Slice Split Concat Expand Tile Pad Resize Upsample DepthToSpace SpaceToDepth Range ConstantOfShape "
        "EyeLike ReverseSequence"
    )
)

GATHERS: Final = frozenset(words("Gather GatherElements GatherND ScatterElements ScatterND OneHot"))

POOLS: Final = frozenset(words("MaxPool AveragePool LpPool"))

# Results that depend on shapes alone: known before anything runs.
SHAPES_ONLY: Final = frozenset(words("Shape Size Constant"))
