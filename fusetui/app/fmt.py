"""Text for the screen: the numbers of `analysis.fmt`, and clipping by terminal cells."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

from fusetui.analysis.fmt import (
    BYTES_CELLS,
    COUNT_CELLS,
    DASH,
    DURATION_CELLS,
    NUMBER_CELLS,
    PERCENT_CELLS,
    RATE_CELLS,
    age,
    bounded,
    count,
    duration,
    duration_unit,
    lower_bound,
    moment,
    number,
    percent,
    rate,
    ratio,
    relative,
    short,
    size,
)

__all__ = [
    "BYTES_CELLS",
    "COUNT_CELLS",
    "DASH",
    "DURATION_CELLS",
    "NUMBER_CELLS",
    "PERCENT_CELLS",
    "RATE_CELLS",
    "age",
    "bounded",
    "clip",
    "count",
    "duration",
    "duration_unit",
    "fit",
    "lower_bound",
    "moment",
    "number",
    "percent",
    "rate",
    "ratio",
    "relative",
    "short",
    "signed",
    "size",
]


def clip(text: str, cells: int) -> str:
    """`text` in at most `cells` terminal cells, an ellipsis last when something was cut."""
    if cells <= 0:
        return ""
    if text.isascii():
        return text if len(text) <= cells else text[: cells - 1] + "…"
    # Measuring costs per character, and a letter has at most two marks: this much always fills the cells.
    text = text[: 3 * cells + 3]
    if cell_len(text) <= cells:
        return text
    return set_cell_size(text, cells - 1).rstrip(" ") + "…"


def fit(text: str, cells: int, *, right: bool = False) -> str:
    """`text` in exactly `cells` terminal cells, clipped or padded."""
    text = clip(text, cells)
    pad = " " * max(0, cells - (len(text) if text.isascii() else cell_len(text)))
    return pad + text if right else text + pad


def signed(share: float | None) -> str:
    """A difference as a share, with its sign, at most 6 cells: `+41 %`, `−3.2 %`, from tenfold on `×12.3`."""
    if share is None:
        return DASH
    percent = share * 100
    if abs(percent) < 0.05:
        return "±0 %"
    digits = 1 if abs(percent) < 9.95 else 0
    if percent >= 999.5:
        return f"×{number(1 + share).strip()}"
    return f"{percent:+.{digits}f} %".replace("-", "−")
