"""One row as a timeline, with the rows of its request, or what its stream ran meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from fusetui.analysis.rows import RowQuery
from fusetui.app.footer import Hint
from fusetui.app.rows_table import Row
from fusetui.app.screens.drill import DrillScreen, Fetch, fetch_rows
from fusetui.app.timeline import TimelinePane, span_of

if TYPE_CHECKING:
    pass

MAX_FETCHED = 5000
MAX_RELATED = 500


class ExecutionScreen(DrillScreen):
    """The timeline of `row`; fetch: gets the other rows of its time, off the event loop."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "copy", "Copy", id="execution.copy", show=False)]
    KEYS: ClassVar[Sequence[Hint]] = (("esc", "back", 0), ("y", "copy", 1))

    def __init__(self, row: Row, fetch: Fetch, clock: str) -> None:
        super().__init__()
        self.row = row
        self.fetch = fetch
        self.timeline = TimelinePane(row, clock=clock)

    def compose(self) -> ComposeResult:
        yield self.timeline
        yield self.footer

    def on_mount(self) -> None:
        self.timeline.focus()
        if span_of([self.row]) is not None:
            self.load()

    @work(exclusive=True, exit_on_error=False)
    async def load(self) -> None:
        span = span_of([self.row])
        if span is None:
            return
        request, stream = self.row.get("request"), self.row.get("stream")
        if request is None and stream is None:
            return
        query = RowQuery(
            order="time",
            stream=str(stream) if request is None else None,
            from_ns=span[0],
            to_ns=span[1] + 1,
            limit=MAX_FETCHED,
        )
        rows, problem = await fetch_rows(self.fetch, query)
        if rows is None:
            self.notify(problem, markup=False, severity="warning")
            return
        if request is not None and "request" in rows.columns:
            rows = rows.filter(rows["request"] == request)
        if "start_ns" in rows.columns:
            rows = rows.sort("start_ns", nulls_last=True)
        relation = "rows of its request" if request is not None else "rows of its stream meanwhile"
        self.timeline.relate(rows.head(MAX_RELATED).to_dicts(), relation)

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self.timeline.text())
        self.notify("timeline copied", markup=False)
