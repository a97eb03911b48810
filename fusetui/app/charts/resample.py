"""From time slots to columns of cells, without inventing data: where there is none, NaN stays NaN."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_ABSURD = 1e100
Reduce = Literal["max", "mean", "sum"]


def finite(values: npt.ArrayLike) -> Floats:
    """As float64 with every infinity turned into NaN, so that a chart needs to know one kind of absence.

    Beyond 1e100 a value is no measurement and would only overflow: it is absent too.
    """
    array = np.array(values, np.float64)
    array[~(np.abs(array) < _ABSURD)] = np.nan
    return array


def columns(values: npt.ArrayLike, width: int, reduce: Reduce = "max") -> Floats:
    """[..., S] slots as [..., width] columns: the largest (or mean, or sum) of the slots a column covers.

    With fewer slots than columns each slot spans several columns (a sum is then shared out evenly).
    NaN slots are left out; a column without any other is NaN.
    """
    data = finite(values)
    slots = data.shape[-1]
    if width <= 0 or slots == 0:
        return np.full((*data.shape[:-1], max(0, width)), np.nan)
    starts = np.arange(width) * slots // width
    known = ~np.isnan(data)
    if slots <= width:
        picked: Floats = data[..., starts]
        return picked * (slots / width) if reduce == "sum" else picked
    number = np.add.reduceat(known, starts, axis=-1)
    if reduce == "max":
        top = np.maximum.reduceat(np.where(known, data, -np.inf), starts, axis=-1)
        return np.asarray(np.where(number > 0, top, np.nan), np.float64)
    total = np.add.reduceat(np.where(known, data, 0.0), starts, axis=-1)
    divisor = np.maximum(number, 1) if reduce == "mean" else 1
    return np.where(number > 0, total / divisor, np.nan)


def curve(values: npt.ArrayLike, points: int) -> Floats:
    """[S] slots as [points] of a line: interpolated between neighbours that are both there, never over a gap.

    With more slots than points a point is the largest value of those it covers.
    """
    data = finite(values)
    slots = len(data)
    if points <= 0 or slots == 0:
        return np.full(max(0, points), np.nan)
    if slots >= points:
        return columns(data, points, "max")
    at = (np.arange(points) + 0.5) * (slots / points) - 0.5
    left = np.clip(np.floor(at).astype(np.int64), 0, slots - 1)
    right = np.minimum(left + 1, slots - 1)
    share = np.clip(at - left, 0.0, 1.0)
    line = data[left] * (1 - share) + data[right] * share
    nearest = data[np.where(share < 0.5, left, right)]
    return np.asarray(np.where(np.isnan(line), nearest, line), np.float64)
