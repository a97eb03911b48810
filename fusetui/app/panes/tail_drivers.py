"""What the tail is made of: where its time went, beside what the model says its p99 would be without each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.bars import bar_text
from fusetui.app.charts.table import Column, draw_header, draw_row, layout
from fusetui.app.palette import DATA, WAS, Ink
from fusetui.app.pane import Pane

if TYPE_CHECKING:
    from fusetui.analysis.attribution.causes import Causes, CausesAt
    from fusetui.analysis.attribution.columns import Row
    from fusetui.analysis.attribution.parts import Cohort, TailTime
    from fusetui.app.causes import CauseBoard

_BAR = 1
_COLUMNS = (
    Column("", 12),
    Column("", 6, grow=True, priority=2),
    Column("share ", 6, right=True),
    Column("time ", 7, right=True, priority=4),
    Column("median ", 7, right=True, priority=5),
)
_WAS = Column("was ", 6, right=True, priority=3)
_CAUSES = (
    Column("", 10, right=True, priority=1),
    Column("", 8, right=True, priority=1),
)
TAIL_TEACHES = (
    "Fewer than 20 items tell how long they waited (columns enqueue_ns, start_ns, end_ns): too few to set the slowest "
    "apart. A longer window (]) has more."
)


class TailDriversPane(Pane):
    TITLE = "What the tail is made of"
    HELP = """Where the time of the slowest went and, right of │, what p99 would be without it. Time share is not cause.

Items      requests, or executions when there are no requests; the slowest are those at or above p99, with fewer than
           100 at or above p95; median: those from p45 to p55. Their parts add up to their latency.
share      of the mean latency of the slowest; time: mean time they spent there; median: what the median did
queue      waited while no other core was free; gate: for its batch; launch: its core stood still between its kernels
planned    ran, up to the typical time of its shape; padding, fallback: above the planned time of its size
imbalance  waited while another core was free, or on a slower core; contention: as others shared the device; rest: the
           remainder that no column tells
without it model: the same requests simulated on a twin of the runtime with that driver alone taken away, ≈ p99 then and
           the difference. Random numbers are in common. A twin that is over 15 % off tells no causes.
was        share in the baseline, where there is one
▲          the driver to look at first
Keys       c asks for the causes of this window (seconds of work); where time stands still they are looked for by
           themselves. Enter shows the rows.
Columns    enqueue_ns, start_ns, end_ns, launch_ns, request, batch, shape, mapping, plan, core
Blind to   drivers that no column and no twin knows of: they are in rest."""
    causes: CauseBoard | None = None

    def title(self, snapshot: Snapshot | None) -> str:
        found = self._found(snapshot)
        return self.TITLE if found is None or isinstance(found, str) else "Tail drivers · time │ model"

    def trust(self, snapshot: Snapshot) -> str:
        time = snapshot.tail_time
        if time is None:
            return ""
        newest = "" if snapshot.latency.exact else " newest"
        return f"n {fmt.count(_slowest(time)[1].n).strip()}{newest}"

    def empty(self, snapshot: Snapshot) -> str | None:
        return None if snapshot.tail_time is not None else TAIL_TEACHES

    def row_query(self, snapshot: Snapshot) -> RowQuery | None:
        return RowQuery(order="latency", kind=snapshot.tail_time.of) if snapshot.tail_time else None

    def extra_state(self) -> tuple[object, ...]:
        return self.causes.state() if self.causes else ()

    def _found(self, snapshot: Snapshot | None) -> Causes | str | None:
        return self.causes.of(snapshot) if self.causes is not None and snapshot is not None else None

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        from fusetui.analysis.attribution.columns import two_columns

        time, found = snapshot.tail_time, self._found(snapshot)
        if time is None:
            return
        name, _ = _slowest(time)
        told = None if found is None or isinstance(found, str) else found
        at = (told.p99 if name == "p99" else told.p95) if told else None
        rows = two_columns(time, at)
        was = self._was(time, at)
        columns = (*_COLUMNS, *((_WAS,) if was else ()), *(_CAUSES if at else ()))
        places = layout(columns, canvas.width)
        draw_header(canvas, 0, columns, places)
        cells = next((cells for i, _, cells in places if i == _BAR), 0)
        canvas.put(0, 0, fmt.clip(f"{time.of}s ≥ {name}", 12 + (cells + 2 if cells else 0)), Ink.DIM)
        causes_at = len(columns) - len(_CAUSES) if at else -1
        beside = next((x for i, x, _ in places if i == causes_at), None)
        if beside is not None:
            canvas.put(beside, 0, fmt.clip(f"│ without it ≈ {name}", canvas.width - beside), Ink.DIM)
        foot = self._foot(snapshot, found)
        lines = canvas.height - 1 - (1 if foot and canvas.height >= 4 else 0)
        top = max((row.time_share for row in rows), default=0.0)
        for y, row in enumerate(rows[: max(0, lines)], 1):
            _draw(canvas, y, row, at, top, places, columns, was)
        if lines < canvas.height - 1:
            warn = told is None and isinstance(found, str)
            canvas.put(0, canvas.height - 1, fmt.clip(foot, canvas.width), Ink.WARN if warn else Ink.DIM)

    def _was(self, time: TailTime, at: CausesAt | None) -> dict[str, float] | None:
        """Shares of the baseline by part, where its items are of the same kind."""
        from fusetui.analysis.attribution.columns import two_columns

        old = self.baseline.tail_time if self.baseline is not None else None
        return {row.name: row.time_share for row in two_columns(old, at)} if old and old.of == time.of else None

    def _foot(self, snapshot: Snapshot, found: Causes | str | None) -> str:
        """How far the model is to be trusted, or why it says nothing."""
        board = self.causes
        if board is None:
            return ""
        if board.busy:
            return "model: looking for the causes"
        if found is None:
            return "c: what caused it, of a model"
        if isinstance(found, str):
            return f"no causes: {found}"
        of = "" if board.stands_for(snapshot) else ", of the window it was asked for"
        return f"{found.fit}{of}"


def _slowest(time: TailTime) -> tuple[str, Cohort]:
    return ("p99", time.extreme) if time.extreme is not None else ("p95", time.tail)


def _draw(
    canvas: Canvas,
    y: int,
    row: Row,
    at: CausesAt | None,
    top: float,
    places: list[tuple[int, int, int]],
    columns: tuple[Column, ...],
    was: dict[str, float] | None,
) -> None:
    named = at is not None and at.named == row.name
    without, saved = "│" + " " * 9, ""
    if at is not None and row.without_ns is not None:
        without = f"│ ≈{fmt.duration(row.without_ns)}"
        sign = "−" if row.without_ns <= at.all_ns else "+"
        saved = f"{sign}{fmt.duration(abs(row.without_ns - at.all_ns)).lstrip()}"
    elif at is not None:
        without = f"│ {fmt.DASH:>5}   "
    texts = (
        f"{row.name}{' ▲' if named else ''}",
        "",
        fmt.percent(row.time_share),
        fmt.duration(row.time_ns),
        fmt.duration(row.median_ns),
        *(() if was is None else (fmt.percent(was.get(row.name)),)),
        without,
        saved,
    )
    name_ink = Ink.WARN if named else Ink.FG
    inks = (name_ink, Ink.FG, Ink.STRONG, Ink.FG, Ink.DIM, *(() if was is None else (WAS,)), Ink.FG, Ink.FG)
    draw_row(canvas, y, columns, places, texts, inks)
    x, cells = next(((x, cells) for i, x, cells in places if i == _BAR), (0, 0))
    if cells and top > 0:
        canvas.put(x, y, bar_text(row.time_share / top, cells, canvas.glyphs.rows), DATA)
