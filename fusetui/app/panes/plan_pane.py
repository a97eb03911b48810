"""Base of the panes that show a plan: they draw from the board, with or without telemetry, and when a plan changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.list_pane import ListPane
from fusetui.app.palette import Ink
from fusetui.app.pane import Pane, draw_text

if TYPE_CHECKING:  # the overview has such a pane, and its first frame must not wait for the model
    from fusetui.analysis.planned import GroupRow, Planned
    from fusetui.app.plan_board import PlanBoard
    from fusetui.app.planner import Answer

DRILL_ROWS: Final = 20_000
MODEL_NOTE: Final = """Model     every number with ≈ is computed by the accelerator model, none is measured.
          "uncalibrated": from datasheet numbers alone, expect ±30 %; fusetui calibrate fits it to a device.
"""


class PlanPane(Pane):
    """A pane over the newest plans. The screen sets `board`."""

    board: PlanBoard | None = None
    UNITS: ClassVar[str] = "model"

    # What subclasses say

    def draw_plan(self, canvas: Canvas, plan: Planned) -> None:
        """Draw the inside from today's plan."""

    def draw_answer(self, canvas: Canvas, answer: Answer) -> None:
        """Draw the inside from the newest answer; what could not be planned is said in one line."""
        if answer.today is None:
            draw_problem(canvas, answer.problem)
        else:
            self.draw_plan(canvas, answer.today)

    # The frame

    def title(self, snapshot: Snapshot | None) -> str:
        return f"{self.TITLE} · {self.UNITS}"

    def extra_state(self) -> tuple[object, ...]:
        return self.board.state() if self.board else ()

    def _drawn_from(self) -> tuple[object, ...]:
        # The snapshot is left out: a plan does not change with every event.
        return (self.board is None or self.board.answer is None, *super()._drawn_from()[1:])

    def _trust_marks(self) -> tuple[str, bool]:
        answer = self.board.answer if self.board else None
        plan = self.marked(answer) if answer else None
        if plan is None:
            return "", False
        assumed = "" if self.board is None or self.board.device_told(plan.hardware.name) else " assumed"
        return f"{plan.hardware.name}{assumed} · {'calibrated' if plan.plans.calibrated else 'uncalibrated'}", False

    def marked(self, answer: Answer) -> Planned | None:
        """The plan whose device and calibration the frame tells."""
        return answer.today

    def _draw_inside(self, canvas: Canvas) -> None:
        if not canvas.width or not canvas.height:
            return
        answer = self.board.answer if self.board else None
        if answer is None:
            doing = self.board.doing if self.board else "no plan yet"
            canvas.put(0, 0, fmt.clip(doing, canvas.width), Ink.DIM)
        else:
            self.draw_answer(canvas, answer)

    def moved(self) -> None:
        """The cursor of the board moved: repaint what shows it, now."""
        for pane in self.screen.query(PlanPane) if self.is_attached else ():
            if pane._drawn_from() != pane._drawn:
                pane.repaint()


class GroupListPane(PlanPane, ListPane):
    """A plan pane with a cursor on a group, the same in all of them."""

    def keys(self, snapshot: Snapshot | None) -> Sequence[str]:
        plan = self.board.today if self.board else None
        return [] if plan is None else [group_label(i) for i in range(len(plan.rows))]

    def items(self) -> Sequence[str]:
        return self.keys(self.snapshot)

    @property
    def selected(self) -> str | None:
        return self.board.group if self.board else None

    @selected.setter
    def selected(self, label: str | None) -> None:
        if self.board is not None:
            self.board.group = label

    def select(self, delta: int) -> None:
        super().select(delta)
        self.moved()

    def row_query(self, snapshot: Snapshot) -> RowQuery | None:
        return RowQuery(kind="execution", order="latency", limit=DRILL_ROWS) if self.row_names(snapshot) else None

    def row_names(self, snapshot: Snapshot) -> frozenset[str] | None:
        plan, row = self.board.today if self.board else None, self.chosen()
        if plan is None or plan.captured is None or row is None or row.measured is None:
            return None
        kernels = plan.captured.kernels
        return frozenset(kernels[op] for op in row.plan.ops if op in kernels)

    def chosen(self) -> GroupRow | None:
        """The group under the cursor."""
        plan = self.board.today if self.board else None
        at = self.cursor(self.items())
        return plan.rows[at] if plan is not None and at is not None else None


def group_label(index: int) -> str:
    """The label of the group at a position of the plan."""
    return f"g{index + 1}"


def about(ns: float | None) -> str:
    """A modelled duration, 8 cells: `≈35.4 µs`."""
    return f"≈{fmt.duration(ns)}"


def about_size(value: float | None) -> str:
    """Modelled bytes, 8 cells."""
    return f"≈{fmt.size(value)}"


def draw_problem(canvas: Canvas, problem: str) -> None:
    """Why there is no plan."""
    draw_text(canvas, problem or "no plan", Ink.WARN)
