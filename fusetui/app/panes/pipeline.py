"""The four stages of the scheduling pipeline, left to right: the map that is on every screen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.spark import draw_spark
from fusetui.app.gauges import WAITING, latest, readings
from fusetui.app.palette import DATA, Ink
from fusetui.app.pane import Pane, draw_frame
from fusetui.app.panes.common import over, quantile_text, shown

STAGES = 4
BOX_LINES = 4
BOXES_FROM = 90
_NO_DATA = np.empty(0)


@dataclass(frozen=True, slots=True)
class Cell:
    """One stage: name, short name, a line, the parts of a second one, what it says in one line, its sparkline."""

    name: str
    short: str
    first: str
    second: tuple[str, ...]
    brief: str
    spark: npt.NDArray[np.float64]
    ink: int = Ink.STRONG
    high: float | None = None
    teaches: bool = False


class PipelinePane(Pane):
    """Wide (90 columns and 4 lines): four boxes; else one line.

    current  the stage whose screen this is (0..3), lit; None: none
    first    the stage that left its budget first, marked; None: none or not known
    """

    TITLE = "Pipeline"
    HELP = """The way of work through the accelerator: compile plan → runtime queue → core placement → completion.

COMPILE PLAN    shares of executions by mapping (column mapping): hit (planned: the plan's choice ran), adapted,
                fb (fallback: no plan fitted); the sparkline is the share that missed, full at one half.
RUNTIME QUEUE   queue wait = start_ns - enqueue_ns of executions: p99, p95, p50.
CORE PLACEMENT  λ = max/mean - 1 of busy time over cores; stretch = slowest core - mean core per parallel step (p95);
                J = Jain's index of busy time over cores.
COMPLETION      latency of requests (of executions when there are none): p99, p95, p50; ✗ over the objective.
Sparklines      the window, oldest left; a blank is a slot without data.
Blind to        anything the source does not record; each stage's own screen says what it needs."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", "Stage left", id="pipeline.left", show=False),
        Binding("right", "move(1)", "Stage right", id="pipeline.right", show=False),
        Binding("enter", "choose", "Open stage", id="pipeline.open", show=False),
    ]
    DEFAULT_CSS = "PipelinePane { height: 4; width: 1fr; }"

    class Chosen(Message):
        """A stage was opened: `stage` 0..3."""

        def __init__(self, stage: int) -> None:
            super().__init__()
            self.stage = stage

    def __init__(self, *, current: int | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.current = current
        self.first: int | None = None
        self.cursor = current or 0

    def extra_state(self) -> tuple[object, ...]:
        return self.first, self.current, self.cursor

    def select(self, delta: int) -> None:
        self.cursor = (self.cursor + delta) % STAGES
        self.repaint()

    def action_move(self, delta: int) -> None:
        self.select(delta)

    def action_choose(self) -> None:
        self.post_message(self.Chosen(self.cursor))

    def on_click(self, event: events.Click) -> None:
        self.cursor = min(STAGES - 1, event.x * STAGES // max(1, self.size.width))
        self.action_choose()

    def compose_canvas(self, canvas: Canvas) -> None:
        if not canvas.height or not canvas.width:
            return
        cells = _cells(self.snapshot)
        if canvas.width >= BOXES_FROM and canvas.height >= BOX_LINES:
            self._draw_boxes(canvas, cells)
        else:
            self._draw_line(canvas, cells)
        if self._trust_marks()[1]:
            canvas.fade()

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        for y, cell in enumerate(_cells(snapshot)):
            canvas.put(0, y, f"{cell.name:<15} {cell.first}  {' '.join(cell.second)}")

    def _draw_boxes(self, canvas: Canvas, cells: tuple[Cell, ...]) -> None:
        edges = [round(i * (canvas.width + 1) / STAGES) for i in range(STAGES + 1)]
        for i, cell in enumerate(cells):
            box = canvas.view(edges[i], 0, edges[i + 1] - edges[i] - 1, BOX_LINES)
            mark = f"{canvas.glyphs.first} first" if i == self.first else ""
            lit = i == self.current or (self.has_focus and i == self.cursor)
            draw_frame(box, cell.name, mark, focused=lit, alarm=bool(mark))
            _draw_cell(box.view(2, 1, box.width - 4, 2), cell)
            if i:
                canvas.put(edges[i] - 1, 1, canvas.glyphs.play, Ink.DIM)

    def _draw_line(self, canvas: Canvas, cells: tuple[Cell, ...]) -> None:
        x = 1
        for i, cell in enumerate(cells):
            lit = i == self.current or (self.has_focus and i == self.cursor)
            if i:
                x = canvas.put(x, 0, f" {canvas.glyphs.step} ", Ink.GRID)
            x = canvas.put(x, 0, f"{cell.short} ", Ink.ACCENT if lit else Ink.DIM)
            x = canvas.put(x, 0, cell.brief, Ink.DIM if cell.teaches else cell.ink)
            if i == self.first:
                x = canvas.put(x, 0, f" {canvas.glyphs.first}first", Ink.WARN)


def _cells(snapshot: Snapshot | None) -> tuple[Cell, ...]:
    if snapshot is None:
        names = (
            ("COMPILE PLAN", "PLAN"),
            ("RUNTIME QUEUE", "QUEUE"),
            ("CORE PLACEMENT", "CORES"),
            ("COMPLETION", "DONE"),
        )
        return tuple(Cell(name, short, "", (), fmt.DASH, _NO_DATA, teaches=True) for name, short in names)
    return _plan(snapshot), _queue(snapshot), _cores(snapshot), _completion(snapshot)


def _draw_cell(area: Canvas, cell: Cell) -> None:
    area.put(0, 0, cell.first, Ink.DIM if cell.teaches else cell.ink)
    x = 0
    for part in cell.second:
        # A number is shown whole or not at all.
        if x + len(part) <= area.width:
            x = area.put(x, 1, part, Ink.DIM) + 1
    left = 16
    if area.width - left >= 4 and len(cell.spark) and not cell.teaches:
        draw_spark(area, left, 0, area.width - left, cell.spark, DATA, high=cell.high)


def _plan(snapshot: Snapshot) -> Cell:
    shares = snapshot.mapping
    if not shares.known or shares.planned is None:
        return Cell(
            "COMPILE PLAN", "PLAN", "no plan recorded", ("needs column mapping",), "none", _NO_DATA, teaches=True
        )
    by_slot = shares.planned_by_slot if shares.planned_by_slot is not None else _NO_DATA
    return Cell(
        "COMPILE PLAN",
        "PLAN",
        f"hit      {fmt.percent(shares.planned)}",
        (f"adapted  {fmt.percent(shares.adapted)}", f"fb {fmt.percent(shares.fallback)}"),
        f"hit {fmt.percent(shares.planned).replace(' ', '')}",
        1 - shown(snapshot, by_slot),
        high=0.5,
    )


def _queue(snapshot: Snapshot) -> Cell:
    wait = snapshot.queue_wait
    waiting = latest(snapshot, WAITING)
    if not wait.n and waiting is not None:
        told = f"waiting  {fmt.count(waiting)}"
        shape = next(row.by_slot for row in snapshot.counter_rows if row.name in WAITING)
        return Cell(
            "RUNTIME QUEUE", "QUEUE", told, ("by the counter",), f"waiting {fmt.count(waiting).strip()}",
            shown(snapshot, shape),
        )  # fmt: skip
    if not wait.n:
        return Cell(
            "RUNTIME QUEUE", "QUEUE", "no queue wait", ("needs column enqueue_ns",), "none", _NO_DATA, teaches=True
        )
    return Cell(
        "RUNTIME QUEUE",
        "QUEUE",
        f"p99  {quantile_text(wait, 'p99')}",
        (f"p95  {quantile_text(wait, 'p95')}", f"p50 {fmt.duration(wait.p50_ns)}"),
        f"p99 {fmt.duration(wait.p99_ns).replace(' ', '')}",
        shown(snapshot, snapshot.wait_series.p99_ns),
    )


def _cores(snapshot: Snapshot) -> Cell:
    cores = snapshot.cores
    if not cores.labels:
        return Cell(
            "CORE PLACEMENT", "CORES", "no core named", ("needs columns start, end",), "none", _NO_DATA, teaches=True
        )
    balance = cores.imbalance
    return Cell(
        "CORE PLACEMENT",
        "CORES",
        f"λ        {fmt.ratio(balance.lambda_)}",
        (f"stretch {fmt.duration(balance.stretch_p95_ns)}", f"J {fmt.ratio(balance.jain)}"),
        f"λ {fmt.ratio(balance.lambda_).strip()}",
        shown(snapshot, cores.lambda_by_slot),
    )


def _completion(snapshot: Snapshot) -> Cell:
    latency = snapshot.latency
    counted = None if latency.n else next((one for one in readings(snapshot) if one.rank == 1 and one.text), None)
    if counted is not None:
        name = counted.name.rpartition(" ")[2]
        n = "" if counted.n is None else f"n {fmt.count(counted.n).strip()}"
        return Cell(
            "COMPLETION", "DONE", f"{name} {counted.text}", (counted.name.rpartition(" ")[0], n),
            f"{name} {counted.text}", _NO_DATA,
        )  # fmt: skip
    breach = over(latency.p99_ns, snapshot.header.slo_ns)
    mark = " ✗" if breach else ""
    return Cell(
        "COMPLETION",
        "DONE",
        f"p99  {quantile_text(latency, 'p99')}{mark}",
        (f"p95  {quantile_text(latency, 'p95')}", f"p50 {fmt.duration(latency.p50_ns)}"),
        f"p99 {fmt.duration(latency.p99_ns).replace(' ', '')}{mark}",
        shown(snapshot, snapshot.latency_series.p99_ns),
        ink=Ink.BREACH if breach else Ink.STRONG,
    )
