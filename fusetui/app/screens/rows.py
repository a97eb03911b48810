"""Drill-down: the rows behind a pane; Enter on one opens its timeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from fusetui.analysis.rows import RowQuery
from fusetui.app.footer import Hint
from fusetui.app.rows_table import RowsTable
from fusetui.app.screens.drill import DrillScreen, Fetch, fetch_rows
from fusetui.app.screens.execution import ExecutionScreen

if TYPE_CHECKING:
    import polars as pl

GONE = "No rows: the raw rows behind this window are no longer kept, or none match."


def query_text(query: RowQuery, names: frozenset[str] | None = None) -> str:
    """The query as a line: what rows these are."""
    kind = "rows" if query.kind == "any" else f"{query.kind}s"
    parts = [f"{kind} of the window" if query.from_ns is None else f"{kind} of a part of the window"]
    parts += [f"stream {query.stream}"] if query.stream is not None else []
    parts += [f"core {query.core_label}"] if query.core_label is not None else []
    parts += [
        f"{word} {value or 'none'}"
        for word, value in (("plan", query.plan), ("shape", query.shape))
        if value is not None
    ]
    parts += [f"named {' or '.join(sorted(names))[:120]}"] if names is not None else []
    parts.append("newest first" if query.order == "time" else f"longest {query.order} first")
    return ", ".join(parts) + f", at most {query.limit}"


class RowsScreen(DrillScreen):
    """Rows of a query. fetch: called off the event loop; names: only rows of these names, None: of any."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "copy", "Copy", id="rows.copy", show=False)]
    KEYS: ClassVar[Sequence[Hint]] = (
        ("esc", "back", 0),
        ("↑↓", "select", 2),
        ("enter", "timeline", 1),
        ("s", "sort", 3),
        ("y", "copy", 4),
    )
    DEFAULT_CSS = "RowsScreen #query { height: 1; padding: 0 1; }"

    def __init__(
        self, title: str, query: RowQuery, fetch: Fetch, clock: str, *, names: frozenset[str] | None = None
    ) -> None:
        super().__init__()
        self.rows_query = query
        self.fetch = fetch
        self.clock = clock
        self.names = names
        self.table = RowsTable(heading=f"Rows · {title}", clock=clock)

    def compose(self) -> ComposeResult:
        yield Static(Content(query_text(self.rows_query, self.names)), id="query")
        yield self.table
        yield self.footer

    def on_mount(self) -> None:
        self.table.focus()
        self.load()

    @work(exclusive=True, exit_on_error=False)
    async def load(self) -> None:
        rows, problem = await fetch_rows(self.fetch, self.rows_query)
        if rows is not None and self.names is not None:
            rows = rows.filter(rows["name"].is_in(list(self.names)))
        self.table.set_rows(rows, problem or GONE)

    def on_rows_table_opened(self, message: RowsTable.Opened) -> None:
        self.app.push_screen(ExecutionScreen(message.row, self.fetch, self.clock))

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(rows_text(self.table.frame))
        self.notify("rows copied", markup=False)


def rows_text(frame: pl.DataFrame | None, limit: int = 500) -> str:
    """The first rows as tab-separated text."""
    if frame is None:
        return ""
    known: list[Any] = [name for name in frame.columns if frame[name].null_count() < frame.height]
    return frame.select(known).head(limit).write_csv(separator="\t")
