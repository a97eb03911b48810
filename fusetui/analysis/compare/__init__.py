"""Two traces side by side: what moved, by how much at least and at most, where the time went, and what contradicts."""

from __future__ import annotations

from fusetui.analysis.compare.change import observe_change
from fusetui.analysis.compare.comparison import Comparison, compare

__all__ = ["Comparison", "compare", "observe_change"]
