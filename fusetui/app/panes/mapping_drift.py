"""How far the shapes that come have moved from those the plans were made for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusetui.analysis.mapping import Drift
from fusetui.analysis.mapping_drift import MAJOR, MIN_SAMPLES, MODERATE
from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.bars import draw_meter
from fusetui.app.charts.table import Column, draw_header, draw_row, layout
from fusetui.app.list_pane import ListPane
from fusetui.app.palette import DATA, Ink
from fusetui.app.panes.mapping_common import BucketPane

_COLUMNS = (
    Column("shape", 10, grow=True),
    Column("expected", 8, right=True),
    Column("seen ", 6, right=True),
    Column("moved", 8, right=True),
    Column("", 6, priority=1, grow=True),
)
_METER = 4
_MARKS = {"stable": ("✓", Ink.OK), "moderate": ("▲", Ink.WARN), "major": ("✗", Ink.BREACH)}


class MappingDriftPane(BucketPane, ListPane):
    TITLE = "Drift of shapes"
    HELP = f"""How far the mix of shapes moved, by the population stability index, and the shapes that moved most.

PSI         Σ (seen - expected) ln(seen / expected) over shapes, shares of counts raised by ½
expected    the envelope in the header's plans (`envelope: shape @ share; …`); without one the first quarter of the
            window, and then a mix that was wrong all along does not show
seen        the window, or its other three quarters
verdict     below {MODERATE:g} stable, below {MAJOR:g} moderate, above major; stable too when it is no more than chance:
by chance   what sampling alone stays under 95 % of the time
moved       seen - expected, in points
Columns     shape of requests where {2 * MIN_SAMPLES} or more say it, else of executions
Blind to    shapes that nobody records, and whether a shape that moved is slower for it."""
    head_lines = 2

    def trust(self, snapshot: Snapshot) -> str:
        drift = snapshot.mapping_detail.drift
        return f"n {fmt.count(drift.seen_n).strip()} {drift.of}" if drift else ""

    def empty(self, snapshot: Snapshot) -> str | None:
        if not snapshot.mapping_detail.plans:
            return super().empty(snapshot)
        if snapshot.mapping_detail.drift is None:
            return (
                f"Too little tells its shape: {MIN_SAMPLES} with two shapes or more are needed on either side (column "
                "shape). A longer window (]) has more."
            )
        return None

    def keys(self, snapshot: Snapshot) -> Sequence[str]:
        drift = snapshot.mapping_detail.drift
        return [drift.shapes[i] for i in _order(drift)] if drift else []

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        drift = snapshot.mapping_detail.drift
        if drift is None:
            return
        _draw_verdict(canvas, drift)
        places = layout(_COLUMNS, canvas.width)
        draw_header(canvas, 1, _COLUMNS, places)
        keys, order = self.keys(snapshot), _order(drift)
        view = self.in_view(keys, canvas.height - 2)
        top = float(max(drift.expected.max(), drift.seen.max()))
        for i in view:
            _draw_shape(canvas, 2 + i - view.start, drift, order[i], places, top)
        cursor = self.cursor(keys)
        if cursor is not None and cursor in view:
            canvas.select(2 + cursor - view.start)


def _order(drift: Drift) -> list[int]:
    order: list[int] = np.argsort(-np.abs(drift.seen - drift.expected), kind="stable").tolist()
    return order


def _draw_verdict(canvas: Canvas, drift: Drift) -> None:
    mark, ink = _MARKS.get(drift.verdict, ("", Ink.FG))
    x = canvas.put(0, 0, f"{mark} {drift.verdict}", ink)
    chance = f"  by chance < {fmt.ratio(drift.by_chance).strip()}"
    x = canvas.put(x, 0, f"  PSI {fmt.ratio(drift.index).strip()}", Ink.STRONG)
    canvas.put(x, 0, fmt.clip(f"{chance}  against {drift.against}", canvas.width - x), Ink.DIM)


def _draw_shape(canvas: Canvas, y: int, drift: Drift, at: int, places: list[tuple[int, int, int]], top: float) -> None:
    expected, seen = float(drift.expected[at]), float(drift.seen[at])
    points = f"{(seen - expected) * 100:+.1f} pt".replace("-", "−")
    texts = (drift.shapes[at], fmt.percent(expected), fmt.percent(seen), points, "")
    draw_row(canvas, y, _COLUMNS, places, texts, (Ink.FG, Ink.DIM, Ink.FG, Ink.STRONG, Ink.FG))
    place = next(((x, cells) for i, x, cells in places if i == _METER), None)
    if place is not None and top > 0:
        draw_meter(canvas, place[0], y, place[1], seen / top, DATA)
