"""The latencies of this trace, those of its twin, and the twin's under other knobs, side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.table import Column, draw_header, draw_row, layout
from fusetui.app.palette import Ink
from fusetui.app.pane import draw_text
from fusetui.app.panes.plan_pane import PlanPane

if TYPE_CHECKING:
    from fusetui.app.runtime_board import RuntimeAnswer, RuntimeTail

_COLUMNS = (
    Column("", 12),
    Column("measured", 8, right=True, priority=1),
    Column("twin ", 8, right=True),
    Column("what if ", 8, right=True),
    Column("diff", 8, right=True),
)
_LEAST_CHANGE = 0.0005


@dataclass(frozen=True, slots=True)
class _Line:
    """What it is called, its value in a run of the runtime, whether it is a share."""

    label: str
    value: Callable[[RuntimeTail], float | None]
    share: bool = False


_LINES = (
    _Line("latency p99", lambda tail: tail.latency[2]),
    _Line("        p95", lambda tail: tail.latency[1]),
    _Line("        p50", lambda tail: tail.latency[0]),
    _Line("in queue p99", lambda tail: tail.queue[2]),
    _Line("at gate  p99", lambda tail: tail.gate[2]),
    _Line("fell back", lambda tail: tail.fell, share=True),
)


class WhatIfRuntimePane(PlanPane):
    TITLE = "What if the runtime"
    UNITS = "model, nothing is applied"
    HELP = """The requests of this window on another runtime. Their arrivals and sizes are those that came, never drawn
anew, and random numbers are the same on both sides.

measured    latency of the requests that ended in this window, nearest rank
≈ twin      the same requests simulated on the runtime as it was seen: how far it is off is the fit, on the last line
≈ what if   the same simulation with the knobs marked ▸ where they stand now
diff        what if / twin - 1, of shares in points: both sides have the twin's error in common
in queue    waited while no core was free, or another one was; at gate: for others of its batch
fell back   requests that ran the generic path
— of p95 below 20 and of p99 below 100 requests
Columns     kind, enqueue_ns, start_ns, end_ns, stream, shape, batch, mapping, request
Blind to    work that is not made of requests, and whatever a fit of more than 15 % leaves out. The twin is made of the
            window when this screen opens and when the window has wholly moved on; r makes it anew."""

    def _trust_marks(self) -> tuple[str, bool]:
        twin = self.board.runtime.twin if self.board else None
        if twin is None:
            return "", False
        return f"n {fmt.count(twin.fit.n).strip()} · {'of its scenario' if twin.exact else 'fitted'}", False

    def _draw_inside(self, canvas: Canvas) -> None:
        if not canvas.width or not canvas.height:
            return
        board = self.board.runtime if self.board else None
        answer = board.answer if board else None
        if answer is None:
            doing = "reading the requests" if board and board.worker.busy else "no twin of this trace yet"
            canvas.put(0, 0, fmt.clip(doing, canvas.width), Ink.DIM)
        elif isinstance(answer.twin, str):
            draw_text(canvas, f"No twin: {answer.twin}")
        else:
            _draw(canvas, answer)


def _draw(canvas: Canvas, answer: RuntimeAnswer) -> None:
    twin, today, then = answer.twin, answer.today, answer.predicted
    if isinstance(twin, str) or today is None:
        return
    places = layout(_COLUMNS, canvas.width)
    draw_header(canvas, 0, _COLUMNS, places)
    measured = dict(enumerate(reversed(twin.fit.measured_ns)))
    for y, line in enumerate(_LINES[: max(0, canvas.height - 2)]):
        before, after = line.value(today), line.value(then) if then is not None else None
        difference, moved = _difference(line, before, after)
        known = fmt.duration(measured[y]) if y in measured else ""
        loud = Ink.STRONG if moved else Ink.FG
        texts = (line.label, known, _about(line, before), _about(line, after), difference)
        draw_row(canvas, 1 + y, _COLUMNS, places, texts, (Ink.DIM, Ink.FG, Ink.FG, loud, loud if moved else Ink.DIM))
    last = canvas.height - 1
    if answer.problem:
        canvas.put(0, last, fmt.clip(answer.problem, canvas.width), Ink.WARN)
    else:
        fit = twin.fit.text.partition(":")[0]
        notes = "; ".join((fit, *twin.notes))
        canvas.put(0, last, fmt.clip(notes, canvas.width), Ink.DIM if twin.fit.good else Ink.WARN)


def _about(line: _Line, value: float | None) -> str:
    text = fmt.percent(value) + " " if line.share else fmt.duration(value)
    return fmt.DASH if value is None else f"≈{text}"


def _difference(line: _Line, before: float | None, after: float | None) -> tuple[str, bool]:
    if before is None or after is None:
        return fmt.DASH, False
    if line.share:
        points = (after - before) * 100
        return (f"{points:+.1f} pt".replace("-", "−"), True) if abs(points) >= 0.05 else ("same", False)
    if before == after or (before and abs(after / before - 1) < _LEAST_CHANGE):
        return "same", False
    return (fmt.signed(after / before - 1) if before else fmt.DASH), True
