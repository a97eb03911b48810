"""The evidence matrix: what each kind of evidence tells, what it does not prove, whether this trace has it."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.table import Column, draw_header, layout
from fusetui.app.list_pane import ListPane
from fusetui.app.palette import Ink
from fusetui.app.pane import draw_text
from fusetui.app.panes.triage_pane import TriagePane

if TYPE_CHECKING:
    from fusetui.triage.finding import EvidenceRow

_KIND: Final = 28
_COLUMNS: Final = (
    Column("kind of evidence", _KIND),
    Column("have it?", 18, grow=True),
    Column("tells", 18, grow=True, priority=2),
    Column("does not prove", 18, grow=True, priority=3),
    Column("next", 18, grow=True, priority=1),
)
_BRIEF: Final = (0, 1, 4)
"""Where not all of it can be told of every kind, the rest is told of the selected one."""
_INKS: Final = {"full": Ink.OK, "partial": Ink.WARN, "none": Ink.DIM}
_DETAIL: Final = 4


class MatrixPane(TriagePane, ListPane):
    TITLE = "Evidence matrix"
    HELP = """Five kinds of evidence, always all of them: what each can tell at all, and whether this trace has it.

have it?        ✓ all of it, ▲ a part, — none; then the share of the rows it needs that carry it
tells           what can be decided with it
does not prove  what it leaves open even when all of it is there
next            what to record, or to look at
Keys            up and down select a kind, which is then told in full; z gives every one its room
Columns         core, device, stream, enqueue_ns, launch_ns, dram_bytes, sram_bytes, value and the counters' names
Blind to        evidence of other kinds: logs, code, people."""
    head_lines = 1

    def keys(self, snapshot: Snapshot) -> Sequence[str]:
        triage = self.found(snapshot)
        return [row.kind for row in triage.matrix] if triage else ()

    def cursor(self, keys: Sequence[str]) -> int | None:
        """On the first kind that is not all there, until it is moved."""
        at = super().cursor(keys)
        triage = self.found(self.snapshot)
        if at is not None or triage is None or not keys:
            return at
        return next((i for i, row in enumerate(triage.matrix) if row.presence != "full"), 0)

    def text(self) -> str:
        triage = self.found(self.snapshot)
        if triage is None:
            return super().text()
        lines = ["| kind of evidence | have it? | tells | does not prove | next |", "|---|---|---|---|---|"]
        for row in triage.matrix:
            cells = (row.kind, f"{row.presence}: {row.have}", row.tells, row.does_not_prove, row.next_action)
            lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
        return "\n".join(lines) + "\n"

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        triage = self.found(snapshot)
        if triage is None:
            draw_text(canvas, self.quiet(snapshot) or "")
            return
        rows, cursor = triage.matrix, self.cursor(self.keys(snapshot))
        places = layout(_COLUMNS, canvas.width)
        cells = [_cells(row, places) for row in rows]
        if len(places) == len(_COLUMNS) and 1 + sum(_lines(row) for row in cells) <= canvas.height:
            draw_header(canvas, 0, _COLUMNS, places)
            self._draw_full(canvas, rows, cells)
            return
        places = [(_BRIEF[i], x, width) for i, x, width in layout([_COLUMNS[i] for i in _BRIEF], canvas.width)]
        cells = [_cells(row, places) for row in rows]
        draw_header(canvas, 0, _COLUMNS, places)
        detail = canvas.height - 1 - len(rows) >= _DETAIL - 1
        view = self.in_view(self.keys(snapshot), canvas.height - 1)
        for i in view:
            _draw_cells(canvas, 1 + i - view.start, rows[i], [(i, x, w, t[:1]) for i, x, w, t in cells[i]], 1)
        if cursor is not None and cursor in view:
            canvas.select(1 + cursor - view.start)
            if detail:
                foot = canvas.view(0, len(rows) + 1, canvas.width, canvas.height - len(rows) - 1)
                _draw_detail(foot, rows[cursor])

    def _draw_full(
        self,
        canvas: Canvas,
        rows: Sequence[EvidenceRow],
        cells: Sequence[Sequence[tuple[int, int, int, list[str]]]],
    ) -> None:
        y = 1
        spare = canvas.height - 1 - sum(_lines(row) for row in cells)
        gap = 1 if spare >= len(rows) - 1 else 0
        for row, texts in zip(rows, cells, strict=True):
            height = _lines(texts)
            _draw_cells(canvas, y, row, texts, height)
            y += height + gap


def _cells(row: EvidenceRow, places: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int, list[str]]]:
    """(column, x, cells, lines) of a row, wrapped."""
    share = "" if row.coverage is None or row.presence == "none" else f"{fmt.percent(row.coverage).strip()}, "
    texts = (row.kind, f"  {share}{row.have}", row.tells, row.does_not_prove, row.next_action)
    return [(i, x, width, textwrap.wrap(texts[i], width, drop_whitespace=i != 1)) for i, x, width in places]


def _lines(cells: Sequence[tuple[int, int, int, list[str]]]) -> int:
    return max(len(lines) for _, _, _, lines in cells)


def _draw_cells(
    canvas: Canvas, y: int, row: EvidenceRow, cells: Sequence[tuple[int, int, int, list[str]]], height: int
) -> None:
    mark = {"full": canvas.glyphs.ok, "partial": canvas.glyphs.warn}.get(row.presence, fmt.DASH)
    for i, x, width, lines in cells:
        for at, line in enumerate(lines[:height]):
            canvas.put(x, y + at, fmt.clip(line, width), Ink.STRONG if i == 0 else Ink.FG)
        if i == 1:
            canvas.put(x, y, mark, _INKS[row.presence])


def _draw_detail(canvas: Canvas, row: EvidenceRow) -> None:
    """The selected kind in whole sentences."""
    y = max(0, canvas.height - _DETAIL)
    told = (
        ("have it?", row.have),
        ("tells", row.tells),
        ("leaves open", row.does_not_prove),
        ("next", row.next_action),
    )
    for label, text in told[-canvas.height :]:
        canvas.put(0, y, fmt.fit(label, 12), Ink.DIM)
        canvas.put(12, y, fmt.clip(text, canvas.width - 12), Ink.FG)
        y += 1
