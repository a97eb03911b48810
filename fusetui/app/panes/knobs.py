"""The knobs of the what-if screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.list_pane import ListPane
from fusetui.app.palette import Ink
from fusetui.app.panes.plan_pane import PlanPane
from fusetui.app.planner import Answer

_LABEL_CELLS = 13
_RUNTIME = "runtime."


class KnobsPane(PlanPane, ListPane):
    TITLE = "Knobs"
    HELP = """What is supposed to be different. Nothing is applied to anything: only the model is asked.

hardware        the device, datasheet numbers of a preset or of a file in fusetui's hardware folder
SRAM            factor on the on-chip memory of every core; bandwidth: on that of device memory
launch cost     factor on the cost of a launch call, its latency and the gaps between kernels
launch mode     eager: the host launches every kernel; graph: once for all of them
policy          how far fusion may go: none, conservative, balanced, aggressive
block           what is planned, on both sides of the comparison: the operators found in the capture, or a built-in
model           sizes of a published model; a size turned by itself wins over the model's
dtype, sizes    of a built-in block; the operators of a capture keep what they ran with
▸               of the runtime that ran the requests of this window, where a twin of it could be made:
  arrivals      how much faster the same requests come; cores: in all, those added on devices of their own
  placement     which core a job goes to; batching, batch size and batch wait: the gate before the queue
  plan sizes    sizes there is a plan for, largest plan: up to which; fusion: the policy all plans are made with
Keys            up and down select a knob; right + more, left - less; 0 puts it back to today's value, R all
A changed knob is marked with ◆ and tells today's value behind it.
Blind to        whether a device like this can be built or bought."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right", "turn(1)", "More", id="knobs.right", show=False),
        Binding("left", "turn(-1)", "Less", id="knobs.left", show=False),
    ]

    class Turned(Message):
        """A knob was moved: an answer is on its way."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.selected = "bandwidth"

    def title(self, snapshot: Snapshot | None) -> str:
        return self.TITLE

    def _trust_marks(self) -> tuple[str, bool]:
        answer = self.board.answer if self.board else None
        if self.board is None or not self.board.changed:
            return "as today", False
        if answer is None or answer.today is None or answer.predicted is None or not self.board.changes:
            return f"{len(self.board.changed)} changed", False
        # The one number that must be seen even where the comparison has no room.
        today, then = (plan.plan.totals.predicted_ns for plan in (answer.today, answer.predicted))
        return f"time {fmt.signed(then / today - 1)} · {len(self.board.changed)} changed", False

    def keys(self, snapshot: Snapshot | None) -> Sequence[str]:
        return [knob.name for knob in self.board.knobs] if self.board else []

    def items(self) -> Sequence[str]:
        return self.keys(self.snapshot)

    def extra_state(self) -> tuple[object, ...]:
        return (*super().extra_state(), self.selected)

    def action_turn(self, steps: int) -> None:
        self.turn(steps)

    def turn(self, steps: int) -> None:
        """One step more or less of the knob under the cursor."""
        if self.board is not None and self.selected is not None:
            self.board.turn(self.selected, steps)
            self._turned()

    def reset(self) -> None:
        """Put the knob under the cursor back."""
        if self.board is not None and self.selected is not None:
            self.board.reset(self.selected)
            self._turned()

    def reset_all(self) -> None:
        """Put all knobs back."""
        if self.board is not None:
            self.board.reset_all()
            self._turned()

    def _turned(self) -> None:
        self.moved()
        self.post_message(self.Turned())

    def draw_answer(self, canvas: Canvas, answer: Answer) -> None:
        board = self.board
        if board is None:
            return
        knobs = board.knobs
        keys = [knob.name for knob in knobs]
        hidden = len(keys) - canvas.height
        shown = self.in_view(keys, canvas.height - (1 if hidden > 0 and canvas.height > 3 else 0))
        for i in shown:
            line = canvas.view(0, i - shown.start, canvas.width, 1)
            now, today = board.text(knobs[i])
            moved = knobs[i].name in board.changed
            mark = "◆ " if moved else f"{canvas.glyphs.step} " if knobs[i].name.startswith(_RUNTIME) else "  "
            x = line.put(0, 0, mark, Ink.ACCENT if moved else Ink.GRID)
            line.put(x, 0, fmt.clip(knobs[i].label, _LABEL_CELLS - 1), Ink.FG if moved else Ink.DIM)
            x += _LABEL_CELLS
            x = line.put(x, 0, fmt.clip(now, line.width - x), Ink.STRONG if moved else Ink.FG)
            if moved and x + len(today) + 7 <= line.width:
                line.put(x + 1, 0, fmt.clip(f"today {today}", line.width - x - 1), Ink.DIM)
            if keys[i] == self.selected:
                canvas.select(i - shown.start)
        if len(shown) < len(keys) and len(shown) < canvas.height:
            rest = len(keys) - len(shown)
            canvas.put(2, canvas.height - 1, f"{rest} more (↑↓)", Ink.DIM)
