"""A fallback that feeds itself: what shows it, what that does not prove, and what else the mapping cannot tell."""

from __future__ import annotations

import textwrap

from fusetui.analysis.mapping import Evidence, MappingDetail
from fusetui.analysis.mapping_metastable import MIN_SLOTS
from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.table import Column, draw_header, draw_row, layout
from fusetui.app.palette import Ink
from fusetui.app.panes.mapping_common import BucketPane

_COLUMNS = (
    Column("", 16, grow=True),
    Column("before", 7, right=True),
    Column("since", 7, right=True),
)
_BESIDE_FROM = 90


class MappingMetastablePane(BucketPane):
    TITLE = "Stuck in the fallback?"
    HELP = f"""A metastable fallback: the batch grew past the largest size that has a plan, so that every step falls
back and takes longer, so that more requests are in progress, so that the batch stays large.

Shown by    batches above the largest planned one with 90 % fallback or more, slot after slot until now, for {MIN_SLOTS}
            slots with data or more, while queue depth and rate are as they were before
before      medians of the slots of planned work before; since: of those in the fallback
does not prove   what else these numbers would fit; the test to make stands beside it
Columns     mapping, batch, enqueue_ns, start_ns, end_ns
Blind to    a fallback that began before the window: make the window longer (])."""

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        detail = snapshot.mapping_detail
        found = detail.metastable
        if found is None:
            y = _prose(canvas, 0, _calm(detail), Ink.FG)
        elif canvas.width >= _BESIDE_FROM:
            half = canvas.width // 2 - 1
            y = _draw_evidence(canvas.view(0, 0, half, canvas.height), snapshot, found)
            y = max(y, _draw_doubts(canvas.view(half + 2, 0, canvas.width - half - 2, canvas.height), 0, found))
        else:
            y = _draw_doubts(canvas, _draw_evidence(canvas, snapshot, found), found)
        for note in detail.notes:
            y = _prose(canvas, y, note, Ink.DIM, "· ")


def _calm(detail: MappingDetail) -> str:
    fell = int(detail.counts[:, 2].sum())
    told = int(detail.counts[:, :3].sum())
    if not told:
        return "Not known: no execution carries a mapping (column mapping)."
    share = fmt.percent(fell / told).strip()
    if not fell:
        return "✓ no: nothing fell back in this window."
    return f"not shown: {share} fell back, but not all of it, above the largest planned batch, until now."


def _draw_evidence(canvas: Canvas, snapshot: Snapshot, found: Evidence) -> int:
    at = int(snapshot.slot_start_ns[min(found.from_slot, len(snapshot.slot_start_ns) - 1)])
    since = fmt.moment(at, 3600e9, snapshot.header.clock)
    fell = fmt.percent(found.fallback_share).strip()
    y = _prose(canvas, 0, f"▲ yes: since {since} {fell} fell back, in batches over {found.largest_planned}", Ink.WARN)
    places = layout(_COLUMNS, canvas.width)
    draw_header(canvas, y, _COLUMNS, places)
    rows = (
        ("batch", fmt.number(found.batch_before), fmt.number(found.batch_during)),
        ("waiting", fmt.number(found.depth_before), fmt.number(found.depth_during)),
        ("done per second", fmt.number(found.rate_before), fmt.number(found.rate_during)),
    )
    for row in rows:
        y += 1
        draw_row(canvas, y, _COLUMNS, places, row, (Ink.DIM, Ink.FG, Ink.STRONG))
    return y + 1


def _draw_doubts(canvas: Canvas, y: int, found: Evidence) -> int:
    y = _prose(canvas, y, "This does not prove", Ink.DIM)
    for text in found.does_not_prove:
        y = _prose(canvas, y, text, Ink.FG, "· ")
    return y


def _prose(canvas: Canvas, y: int, text: str, ink: int, bullet: str = "") -> int:
    """Wrapped text from line y on; returns the line after it."""
    room = max(8, canvas.width - len(bullet))
    for number, line in enumerate(textwrap.wrap(text, room)):
        canvas.put(0, y, fmt.clip((bullet if number == 0 else " " * len(bullet)) + line, canvas.width), ink)
        y += 1
    return y
