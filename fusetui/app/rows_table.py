"""Rows of the trace as a table: only the visible ones are formatted, however many there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.table import Column, draw_header, draw_row, layout
from fusetui.app.list_pane import ListPane
from fusetui.app.palette import Ink
from fusetui.app.pane import draw_text

if TYPE_CHECKING:
    import polars as pl

Row = dict[str, Any]
_TO_MICROSECONDS_NS = 1e6


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the table: how it looks, what it is sorted by, and the text of a row."""

    column: Column
    key: str
    text: Callable[[Row], str]


def core_name(row: Row) -> str:
    """`host/device:core` from what the row names, the dash when it names none."""
    host, device, core = row.get("host"), row.get("device"), row.get("core")
    parts = [str(part) for part in (device, core) if part is not None]
    place = ":".join(parts)
    if host is None:
        return place or fmt.DASH
    return f"{host}/{place}" if place else str(host)


def _text(key: str) -> Callable[[Row], str]:
    return lambda row: fmt.DASH if row.get(key) is None else str(row[key])


def _duration(key: str) -> Callable[[Row], str]:
    return lambda row: fmt.duration(row.get(key))


def _fields(clock: str) -> tuple[Field, ...]:
    def began(row: Row) -> str:
        at = row.get("start_ns")
        return fmt.moment(row.get("enqueue_ns") if at is None else at, _TO_MICROSECONDS_NS, clock)

    return (
        Field(Column("began", 16, right=True, priority=2), "start_ns", began),
        Field(Column("name", 16, grow=True), "name", _text("name")),
        Field(Column("stream", 9, priority=3), "stream", _text("stream")),
        Field(Column("core", 8, right=True, priority=5), "core", core_name),
        Field(Column("wait   ", 7, right=True, priority=1), "wait_ns", _duration("wait_ns")),
        Field(Column("service", 7, right=True, priority=1), "service_ns", _duration("service_ns")),
        Field(Column("latency", 7, right=True), "latency_ns", _duration("latency_ns")),
        Field(Column("mapping", 8, priority=6), "mapping", _text("mapping")),
        Field(Column("request", 10, right=True, priority=4), "request", _text("request")),
        Field(Column("shape", 12, priority=7, grow=True), "shape", _text("shape")),
    )


def _told(fields: Sequence[Field], frame: pl.DataFrame) -> tuple[Field, ...]:
    """The fields that say something of at least one row."""
    columns = {name for name in frame.columns if frame[name].null_count() < frame.height}
    return tuple(field for field in fields if field.key in columns or field.key in ("name", "latency_ns", "core"))


class RowsTable(ListPane):
    """A table over a frame of rows (as `Ingest.rows` returns them), not over the snapshot.

    heading  the title; sort_key: the column sorted by ("" as given), always with the largest first
    """

    TITLE = "Rows"
    HELP = """The rows of the trace behind a pane, at most as many as were asked for.

began     start_ns (enqueue_ns where it has not started)
wait      max(0, start_ns - enqueue_ns); service: end_ns - start_ns; latency: end_ns - enqueue_ns
Keys      up and down move, s sorts by the next column, Enter opens the row as a timeline
Blind to  rows older than the raw window that is kept, and what the filter leaves out."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sort", "Sort", id="rows.sort", show=False),
        Binding("enter", "open", "Open", id="rows.open", show=False),
    ]
    head_lines = 1

    class Opened(Message):
        """A row was opened; `row` maps column to value, `frame` holds all rows at hand."""

        def __init__(self, row: Row, frame: pl.DataFrame) -> None:
            super().__init__()
            self.row = row
            self.frame = frame

    def __init__(self, *, heading: str = "", clock: str = "epoch", id: str | None = None) -> None:
        super().__init__(id=id)
        self.heading = heading or self.TITLE
        self.frame: pl.DataFrame | None = None
        self.sort_key = ""
        self.at = 0
        self._all_fields = _fields(clock)
        self._fields = self._all_fields
        self._reason = "fetching rows"

    def set_rows(self, frame: pl.DataFrame | None, reason: str) -> None:
        """Show a frame; `reason` is what the pane says when it is None or empty."""
        self._reason = reason
        self.frame = frame
        self._fields = self._all_fields if frame is None else _told(self._all_fields, frame)
        self.at = 0
        self._sort()
        self.repaint()

    def row(self) -> Row | None:
        """The row under the cursor."""
        if self.frame is None or not self.frame.height:
            return None
        return self.frame.row(self.at, named=True)

    def title(self, snapshot: Snapshot | None) -> str:
        return self.heading

    def _trust_marks(self) -> tuple[str, bool]:
        if self.frame is None:
            return "", False
        return f"{fmt.count(self.frame.height).strip()} rows", False

    def keys(self, snapshot: Snapshot) -> Sequence[str]:
        return ()

    def select(self, delta: int) -> None:
        if self.frame is not None and self.frame.height:
            self.at = max(0, min(self.at + delta, self.frame.height - 1))
            self.repaint()

    def action_sort(self) -> None:
        """Sort by the next column that the frame has, the largest first."""
        if self.frame is None:
            return
        known = [field.key for field in self._fields if field.key in self.frame.columns]
        if known:
            at = known.index(self.sort_key) if self.sort_key in known else -1
            self.sort_key = known[(at + 1) % len(known)]
            self.at = 0
            self._sort()
            self.repaint()

    def _sort(self) -> None:
        if self.frame is not None and self.sort_key in self.frame.columns:
            self.frame = self.frame.sort(self.sort_key, descending=True, nulls_last=True, maintain_order=True)

    def action_open(self) -> None:
        row = self.row()
        if row is not None and self.frame is not None:
            self.post_message(self.Opened(row, self.frame))

    def _draw_inside(self, canvas: Canvas) -> None:
        frame = self.frame
        if not canvas.width or not canvas.height:
            return
        if frame is None or not frame.height:
            draw_text(canvas, self._reason)
            return
        lines = canvas.height - 1
        self.top = max(0, min(self.top, frame.height - lines, self.at))
        self.top = max(self.top, self.at - lines + 1, 0)
        columns = [field.column for field in self._fields]
        places = layout(columns, canvas.width)
        sorted_by = next((i for i, field in enumerate(self._fields) if field.key == self.sort_key), -1)
        draw_header(canvas, 0, columns, places, sorted_by)
        inks = [Ink.STRONG if field.key == "latency_ns" else Ink.FG for field in self._fields]
        for y, row in enumerate(frame.slice(self.top, max(0, lines)).iter_rows(named=True), 1):
            draw_row(canvas, y, columns, places, [field.text(row) for field in self._fields], inks)
        canvas.select(1 + self.at - self.top)
