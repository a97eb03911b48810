"""The small whole-number arithmetic by which exported models work their shapes out: never more than a few numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Value = npt.NDArray[Any]

SMALL: Final = 256  # elements of a value worth knowing: axes, shapes, indices, scales
_TYPES: Final[Mapping[int, Any]] = {1: np.float32, 6: np.int32, 7: np.int64, 9: np.bool_, 11: np.float64}
_BINARY: Final[Mapping[str, Callable[..., Any]]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Pow": np.power, "Equal": np.equal, "Less": np.less,
    "Greater": np.greater, "And": np.logical_and, "Or": np.logical_or, "Max": np.maximum, "Min": np.minimum,
    "Mod": np.mod,
}  # fmt: skip
_UNARY: Final[Mapping[str, Callable[..., Any]]] = {
    "Floor": np.floor, "Ceil": np.ceil, "Sqrt": np.sqrt, "Neg": np.negative, "Abs": np.abs, "Not": np.logical_not,
    "Identity": np.array,
}  # fmt: skip
_REDUCED: Final[Mapping[str, Callable[..., Any]]] = {
    "ReduceProd": np.prod,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceSum": np.sum,
}


def evaluate(op: str, inputs: Sequence[Value], attributes: Mapping[str, Any]) -> Value | None:
    """The value of one node whose inputs are known; None of an operator that shapes are not computed with.

    Raises ValueError, IndexError, TypeError or OverflowError where the inputs do not fit the operator.
    """
    with np.errstate(all="ignore"):
        if op in _BINARY and len(inputs) == 2:
            return _capped(np.asarray(_BINARY[op](*inputs)))
        if op in _UNARY and len(inputs) == 1:
            return np.asarray(_UNARY[op](inputs[0]))
        if op in _REDUCED and not set(attributes) - {"keepdims"} and len(inputs) == 1:
            return np.asarray(_REDUCED[op](inputs[0], keepdims=bool(attributes.get("keepdims", 1))))
        if op == "Div":
            return _divided(*inputs)
        if op == "Where":
            return _capped(np.where(inputs[0].astype(bool), inputs[1], inputs[2]))
        return _moved(op, inputs, attributes)


def _divided(a: Value, b: Value) -> Value:
    """Whole numbers divide towards zero."""
    if a.dtype.kind == "f" or not np.all(b):
        return np.asarray(a / b)
    return np.asarray((np.abs(a) // np.abs(b)) * np.sign(a) * np.sign(b)).astype(a.dtype)


def _moved(op: str, inputs: Sequence[Value], attributes: Mapping[str, Any]) -> Value | None:
    if op == "Cast":
        kind = _TYPES.get(attributes.get("to", 0))
        return None if kind is None else inputs[0].astype(kind)
    if op == "Concat":
        return _capped(np.concatenate(list(inputs), axis=int(attributes.get("axis", 0))))
    if op == "Gather":
        return _capped(np.take(inputs[0], inputs[1].astype(np.int64), axis=int(attributes.get("axis", 0))))
    if op in ("Squeeze", "Unsqueeze"):
        axes = inputs[1].tolist() if len(inputs) > 1 else attributes.get("axes")
        if op == "Unsqueeze":
            return np.expand_dims(inputs[0], tuple(axes or ()))
        return np.squeeze(inputs[0], None if axes is None else tuple(axes))
    if op == "Reshape":
        return inputs[0].reshape(inputs[1].tolist())
    if op == "Slice" and len(inputs) >= 3:
        return _sliced(*inputs)
    if op == "Range":
        start, stop, step = (v.item() for v in inputs)
        if step == 0 or (stop - start) / step > SMALL:
            return None
        return np.arange(start, stop, step, dtype=inputs[0].dtype)
    return None


def _sliced(data: Value, starts: Value, ends: Value, axes: Value | None = None, steps: Value | None = None) -> Value:
    cut = [slice(None)] * data.ndim
    for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        axis = i if axes is None else int(axes[i])
        step = 1 if steps is None else int(steps[i])
        stop = None if step < 0 and end < -data.shape[axis] else end
        cut[axis] = slice(start, stop, step)
    return data[tuple(cut)]


def _capped(value: Value) -> Value:
    if value.size > SMALL:
        raise ValueError("too many elements for a shape")
    return value
