"""One execution or request as a timeline: launched, waiting, running; below it the rows it has to do with."""

from __future__ import annotations

from collections.abc import Sequence

from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.axis import draw_time_axis
from fusetui.app.palette import Ink
from fusetui.app.pane import Pane, draw_text
from fusetui.app.rows_table import Row, core_name

WAIT_INK = Ink.STREAM_1 + 1
RUN_INK = Ink.STREAM_1
LAUNCH_INK = Ink.STREAM_1 + 3
_FACTS = ("plan", "group", "mapping", "shape", "batch", "dram_bytes", "sram_bytes", "flops")


class TimelinePane(Pane):
    """A row (as `Ingest.rows` returns it), and the rows of its request or of its stream meanwhile."""

    TITLE = "Timeline"
    HELP = """One row of the trace on its own time axis.

launch    the launch call (launch_ns before enqueue_ns); wait: enqueue_ns to start_ns; run: start_ns to end_ns
below     the other rows of the same request; without a request, what its stream ran meanwhile: what it waited behind
Columns   enqueue_ns, launch_ns, start_ns, end_ns, request, stream
Blind to  rows outside the raw window that is kept; an open end means the work has not finished."""

    def __init__(self, row: Row, *, clock: str = "epoch") -> None:
        super().__init__()
        self.clock = clock
        self.row = row
        self.related: list[Row] = []
        self.relation = ""

    def relate(self, rows: Sequence[Row], relation: str) -> None:
        """Show these rows below; relation: what they are to the row."""
        self.related = [other for other in rows if other != self.row]
        self.relation = relation
        self.repaint()

    def _trust_marks(self) -> tuple[str, bool]:
        return (f"{len(self.related)} other {self.relation}" if self.relation else ""), False

    def _draw_inside(self, canvas: Canvas) -> None:
        if not canvas.width or not canvas.height:
            return
        y = self._draw_head(canvas)
        area = canvas.view(0, y, canvas.width, canvas.height - y)
        span = span_of([self.row])
        if span is None:
            draw_text(area, "This row has no times (enqueue_ns, start_ns, end_ns), so there is no timeline.")
            return
        self._draw_rows(area, [self.row, *self.related], *span)

    def _draw_head(self, canvas: Canvas) -> int:
        row = self.row
        canvas.put(0, 0, fmt.clip(str(row.get("name") or fmt.DASH), canvas.width), Ink.STRONG)
        place = [f"{row.get('kind') or 'row'}", f"core {core_name(row)}"]
        place += [f"{key} {row[key]}" for key in ("stream", "request") if row.get(key) is not None]
        place += ["still open when last seen"] if row.get("end_ns") is None else []
        canvas.put(0, 1, fmt.clip(" · ".join(place), canvas.width), Ink.DIM)
        x = 0
        pairs = (("launch", "launch_ns", LAUNCH_INK), ("wait", "wait_ns", WAIT_INK), ("run", "service_ns", RUN_INK))
        for label, key, ink in (*pairs, ("latency", "latency_ns", Ink.STRONG)):
            x = canvas.put(x, 2, f"{label} ", Ink.DIM)
            x = canvas.put(x, 2, fmt.duration(row.get(key)), ink) + 2
        facts = [f"{key} {_fact(key, row[key])}" for key in _FACTS if row.get(key) is not None]
        if not facts or canvas.height <= 9:
            return 4
        canvas.put(0, 3, fmt.clip("  ".join(facts), canvas.width), Ink.DIM)
        return 5

    def _draw_rows(self, canvas: Canvas, rows: list[Row], start: int, end: int) -> None:
        label_cells = min(24, canvas.width // 4)
        bars = canvas.view(label_cells + 1, 0, canvas.width - label_cells - 10, canvas.height)
        lines = canvas.height - 1
        for y, row in enumerate(rows[: max(0, lines)]):
            ink = Ink.STRONG if y == 0 else Ink.DIM
            canvas.put(0, y, fmt.fit(str(row.get("name") or fmt.DASH), label_cells), ink)
            _draw_bar(bars, y, row, start, end)
            canvas.put_right(canvas.width, y, fmt.duration(row.get("latency_ns")), ink)
        draw_time_axis(bars, min(len(rows), lines), start, end, self.clock)


def _fact(key: str, value: object) -> str:
    if isinstance(value, (int, float)):
        if key.endswith("_bytes"):
            return fmt.size(value).strip()
        return fmt.count(value).strip() if key == "flops" else str(value)
    return str(value)


def _times(row: Row) -> list[int]:
    launched = row.get("enqueue_ns")
    if launched is not None and row.get("launch_ns") is not None:
        launched -= row["launch_ns"]
    return [at for at in (launched, row.get("enqueue_ns"), row.get("start_ns"), row.get("end_ns")) if at is not None]


def span_of(rows: Sequence[Row]) -> tuple[int, int] | None:
    """From the first to the last time of some rows; None when they have none."""
    times = [at for row in rows for at in _times(row)]
    if not times:
        return None
    return min(times), max(max(times), min(times) + 1)


def _draw_bar(canvas: Canvas, y: int, row: Row, start: int, end: int) -> None:
    """Launch, wait and run as three textures, so that they differ without colour too; cut to the axis."""
    enqueue, began, ended = row.get("enqueue_ns"), row.get("start_ns"), row.get("end_ns")
    shades = canvas.glyphs.shades

    def part(low: int | None, high: int | None, char: str, ink: int) -> None:
        if low is None or high is None or high < low or canvas.width < 1 or high < start or low > end:
            return
        low, high = max(low, start), min(high, end)
        left = min(canvas.width - 1, (low - start) * canvas.width // (end - start))
        right = max(left + 1, -(-(high - start) * canvas.width // (end - start)))
        canvas.put(left, y, char * min(right - left, canvas.width - left), ink)

    if enqueue is not None and row.get("launch_ns") is not None:
        part(enqueue - row["launch_ns"], enqueue, shades[2], LAUNCH_INK)
    part(enqueue, end if began is None else began, shades[0], WAIT_INK)
    part(began, end if ended is None else ended, shades[7], RUN_INK)
