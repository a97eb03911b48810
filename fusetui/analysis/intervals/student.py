"""Quantiles of Student's t: what a normal quantile becomes where the spread itself is known from few values.

Hill's expansion (Algorithm 396, Communications of the ACM 13, 1970): within 1e-4 from 3 degrees of freedom on; 1 and 2
have closed forms.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final

_NORMAL: Final = NormalDist()
_MANY: Final = 1e6


def t_reach(level: float, freedom: float) -> float:
    """t such that |T| < t with probability `level`, 0 < level < 1; freedom >= 1."""
    if freedom >= _MANY:
        return _NORMAL.inv_cdf((1.0 + level) / 2.0)
    outside = 1.0 - level
    if freedom < 1.5:
        return 1.0 / math.tan(outside * math.pi / 2.0)
    if freedom < 2.5:
        return math.sqrt(2.0 / (outside * (2.0 - outside)) - 2.0)
    return _hill(outside, freedom)


def _hill(outside: float, n: float) -> float:
    a = 1.0 / (n - 0.5)
    b = 48.0 / (a * a)
    c = ((20700.0 * a / b - 98.0) * a - 16.0) * a + 96.36
    d = ((94.5 / (b + c) - 3.0) / b + 1.0) * math.sqrt(a * math.pi / 2.0) * n
    x = d * outside
    y = x ** (2.0 / n)
    if y > 0.05 + a:
        x = _NORMAL.inv_cdf(outside / 2.0)
        y = x * x
        if n < 5.0:
            c += 0.3 * (n - 4.5) * (x + 0.6)
        c = (((0.05 * d * x - 5.0) * x - 7.0) * x - 2.0) * x + b + c
        y = (((((0.4 * y + 6.3) * y + 36.0) * y + 94.5) / c - y - 3.0) / b + 1.0) * x
        y = math.expm1(a * y * y)
    else:
        y = ((1.0 / (((n + 6.0) / (n * y) - 0.089 * d - 0.822) * (n + 2.0) * 3.0) + 0.5 / (n + 4.0)) * y - 1.0) * (
            n + 1.0
        ) / (n + 2.0) + 1.0 / y
    return math.sqrt(n * y)
