"""The OpenMetrics 1.0 text format, written: families of samples, every label escaped and bounded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final, Literal

CONTENT_TYPE: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
MAX_LABEL_CHARS: Final = 120

Kind = Literal["gauge", "counter", "histogram", "info", "stateset"]
Labels = Mapping[str, str]


class Page:
    """Collects families; `text()` is the whole exposition. A family comes once, with all its samples."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def gauge(self, name: str, help_: str, values: Iterable[tuple[Labels, float | int | None]], unit: str = "") -> None:
        """One sample for each value that is known; NaN and None are absent."""
        self._begin(name, "gauge", help_, unit)
        for labels, value in values:
            if value is not None and not math.isnan(value):
                self._sample(name, labels, value)

    def counter(self, name: str, help_: str, values: Iterable[tuple[Labels, float | int]], unit: str = "") -> None:
        """`name` without `_total`."""
        self._begin(name, "counter", help_, unit)
        for labels, value in values:
            self._sample(f"{name}_total", labels, value)

    def info(self, name: str, help_: str, labels: Labels) -> None:
        """`name` without `_info`."""
        self._begin(name, "info", help_, "")
        self._sample(f"{name}_info", labels, 1)

    def states(self, name: str, help_: str, states: Iterable[str], now: str) -> None:
        """Every state as 0, that of now as 1."""
        self._begin(name, "stateset", help_, "")
        for state in states:
            self._sample(name, {name: state}, int(state == now))

    def begin_histogram(self, name: str, help_: str, unit: str) -> None:
        """Then `histogram` for each label set."""
        self._begin(name, "histogram", help_, unit)

    def histogram(self, name: str, labels: Labels, bounds: Iterable[str], below: Iterable[int], total: float) -> None:
        """bounds  upper bounds as text, the last "+Inf"; below: how many were up to each; total: sum of all"""
        count = 0
        for bound, count in zip(bounds, below, strict=True):
            self._sample(f"{name}_bucket", {**labels, "le": bound}, count)
        self._sample(f"{name}_count", labels, count)
        self._sample(f"{name}_sum", labels, total)

    def text(self) -> bytes:
        return ("\n".join([*self._lines, "# EOF"]) + "\n").encode("utf-8", "replace")

    def _begin(self, name: str, kind: Kind, help_: str, unit: str) -> None:
        self._lines.append(f"# TYPE {name} {kind}")
        if unit:
            self._lines.append(f"# UNIT {name} {unit}")
        self._lines.append(f"# HELP {name} {_escaped(help_, 1000)}")

    def _sample(self, name: str, labels: Labels, value: float | int) -> None:
        inside = ",".join(f'{key}="{_escaped(text, MAX_LABEL_CHARS)}"' for key, text in labels.items())
        self._lines.append(f"{name}{{{inside}}} {value!r}" if inside else f"{name} {value!r}")


def _escaped(text: str, most: int) -> str:
    return text[:most].replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
