"""The shift function: how every part of a distribution moved (Doksum 1974; Wilcox 1995), at deciles and in the tail."""

from __future__ import annotations

from typing import Final

from fusetui.analysis.intervals.ratio import Ratio, quantile_ratio
from fusetui.analysis.intervals.values import Values

LEVELS: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


def shift_function(
    before: Values, after: Values, *, level: float = 0.95, independent: bool = False
) -> list[tuple[float, Ratio]]:
    """(q, ratio) at each of LEVELS, by Harrell-Davis. `level` holds for all of them together (Bonferroni)."""
    each = 1.0 - (1.0 - level) / len(LEVELS)
    return [(q, quantile_ratio(before, after, q, level=each, method="hd", independent=independent)) for q in LEVELS]
