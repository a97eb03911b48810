"""What moved against the baseline, measure by measure, with the verdict of an interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.table import Column, draw_header, draw_row, layout
from fusetui.app.palette import Ink
from fusetui.app.pane import Pane, draw_text

if TYPE_CHECKING:
    from fusetui.app.baseline import BaselineBoard
    from fusetui.app.deltas import Delta

_COLUMNS: Final = (
    Column("", 12),
    Column("before ", 7, right=True, priority=2),
    Column("now ", 7, right=True),
    Column("change", 6, right=True),
    Column("", 16, priority=3),
    Column("", 15, grow=True, priority=1),
)
_TEXT: Final[Mapping[str, Callable[[float | None], str]]] = {
    "ns": fmt.duration, "share": fmt.percent, "rate": fmt.rate, "ratio": fmt.ratio
}  # fmt: skip


class BaselinePane(Pane):
    """The screen sets `board`."""

    TITLE = "Against the baseline"
    HELP = """The window that is shown beside a whole other capture (--baseline), under the same filter.

Formula   change = now / before - 1 of nearest-rank quantiles; [ ] its interval by Harrell-Davis with Maritz-Jarrett
          errors, wider where neighbours are alike, so that all lines together hold with 95 %
✗ changed for the worse, ✓ changed for the better; no change seen: the interval holds "none": that is not proof of none
needs n   so many on either side before an interval means anything
No word   rates and λ have no interval here: look, do not conclude
◦ and dots in other panes: the baseline on the same axes, over the same time since the beginning; beside a live source
          as the level of all of it
Columns   kind, enqueue_ns, start_ns, end_ns, mapping, core
Blind to  work still open, and why it moved: screen 7 says what the rules make of it."""
    board: BaselineBoard | None = None

    def title(self, snapshot: Snapshot | None) -> str:
        return self.TITLE if self.board is None else f"{self.TITLE} · {self.board.name}"

    def extra_state(self) -> tuple[object, ...]:
        return self.board.state() if self.board else ()

    def trust(self, snapshot: Snapshot) -> str:
        before = self.board.before(snapshot) if self.board else None
        if before is None:
            return ""
        return f"n {fmt.count(before.latency.n).strip()} → {fmt.count(snapshot.latency.n).strip()}"

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        answer = self.board.answer if self.board else None
        if answer is None:
            draw_text(canvas, "reading the baseline")
            return
        if answer.problem or not answer.deltas:
            draw_text(canvas, answer.problem or "Nothing to compare: neither side has work that ended.", Ink.WARN)
            return
        places = layout(_COLUMNS, canvas.width)
        draw_header(canvas, 0, _COLUMNS, places)
        for y, delta in enumerate(answer.deltas[: canvas.height - 1], 1):
            mark = "" if delta.verdict != "changed" else canvas.glyphs.breach if delta.worse else canvas.glyphs.ok
            ink = Ink.DIM if not mark else Ink.BREACH if delta.worse else Ink.OK
            texts = _texts(delta, mark)
            draw_row(canvas, y, _COLUMNS, places, texts, (Ink.FG, Ink.DIM, Ink.STRONG, ink, Ink.DIM, ink))
        y = 1 + len(answer.deltas)
        if answer.note and y < canvas.height:
            canvas.put(0, y, fmt.clip(answer.note, canvas.width), Ink.DIM)


def _texts(delta: Delta, mark: str) -> tuple[str, ...]:
    text = _TEXT[delta.unit]
    interval = ""
    if delta.low is not None and delta.high is not None:
        interval = f"[{signed(delta.low)}, {signed(delta.high)}]"
    verdict = f"{mark} {delta.verdict}".strip()
    return (delta.label, text(delta.before), text(delta.now), signed(delta.change), interval, verdict)


def signed(change: float | None) -> str:
    """A change: `+38 %`, `×12` from tenfold on, the dash where it is not known."""
    if change is None:
        return fmt.DASH
    if change >= 9.0:
        return f"×{fmt.number(change + 1.0).strip()}"
    return f"{'+' if change >= 0 else '−'}{abs(change) * 100:.0f} %"
