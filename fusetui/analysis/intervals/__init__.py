"""Confidence intervals of quantiles and of what moved between two samples."""

from __future__ import annotations

from fusetui.analysis.intervals.dependence import dependence, dependence_of_mean
from fusetui.analysis.intervals.means import mean_ratio, mean_ratio_of, share_interval, share_ratio
from fusetui.analysis.intervals.one import quantile_interval
from fusetui.analysis.intervals.ratio import Method, Ratio, quantile_ratio
from fusetui.analysis.intervals.shift import shift_function
from fusetui.analysis.intervals.size import least_n, needed_n, too_small

__all__ = [
    "Method",
    "Ratio",
    "dependence",
    "dependence_of_mean",
    "least_n",
    "mean_ratio",
    "mean_ratio_of",
    "needed_n",
    "quantile_interval",
    "quantile_ratio",
    "share_interval",
    "share_ratio",
    "shift_function",
    "too_small",
]
