"""Small pages as engines write them, and what a scraper makes of a sequence of them."""

from __future__ import annotations

from fusetui.sources.prometheus_fetch import Page
from fusetui.sources.prometheus_scraper import Scraper

Value = tuple[float, str]


def histogram(name: str, bounds: list[str], cumulative: list[int], total: float, labels: str = "") -> str:
    """A classic histogram; labels as `a="b",`."""
    lines = [f"# TYPE {name} histogram"]
    lines += [f'{name}_bucket{{{labels}le="{le}"}} {n}' for le, n in zip(bounds, cumulative, strict=True)]
    return "\n".join([*lines, f"{name}_sum{{{labels}}} {total}", f"{name}_count{{{labels}}} {cumulative[-1]}", ""])


class Scrapes:
    """Pages one second apart into one scraper."""

    def __init__(self, window_s: float = 30.0) -> None:
        self.scraper = Scraper(window_s)
        self.seconds = 0

    def take(self, text: str, after_s: int = 1) -> dict[str, Value]:
        """Counter rows: name, with ` [device]` when it has one -> (value, unit)."""
        self.seconds += after_s
        batch = self.scraper.take(Page(text, False, len(text)), self.seconds * 10**9, self.seconds * 10**9)
        rows = batch.to_pylist()
        self.marks = [row["name"] for row in rows if row["kind"] == "mark"]
        assert all(row["start_ns"] == row["end_ns"] == self.seconds * 10**9 for row in rows)
        counters = [row for row in rows if row["kind"] == "counter"]
        named = {
            row["name"] + ("" if row["device"] is None else f" [{row['device']}]"): (row["value"], row["unit"])
            for row in counters
        }
        assert len(named) == len(counters)
        return named
