"""Base of the screens that open on top of another one: their own list of keys, `esc` closes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from fusetui.analysis.rows import RowQuery
from fusetui.app.footer import Footer, Hint
from fusetui.telemetry.text import safe_text

if TYPE_CHECKING:
    import polars as pl

Fetch: TypeAlias = "Callable[[RowQuery], pl.DataFrame]"


class DrillScreen(ModalScreen[None], inherit_bindings=False):
    """A full screen above the panes. KEYS: its footer."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Back", id="drill.back", show=False),
        Binding("ctrl+c,ctrl+q", "app.quit", "Leave", id="drill.quit", show=False),
    ]
    KEYS: ClassVar[Sequence[Hint]] = (("esc", "back", 0),)
    DEFAULT_CSS = """
    DrillScreen { layout: vertical; background: $background; overflow: hidden; }
    DrillScreen Footer { dock: bottom; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.footer = Footer()

    def on_mount(self) -> None:
        self.footer.set_hints(self.KEYS, "")

    async def on_footer_pressed(self, message: Footer.Pressed) -> None:
        message.stop()
        keys = {hint: key for key, hint, _ in self.KEYS}
        active = self.active_bindings.get({"esc": "escape"}.get(keys[message.hint], keys[message.hint]))
        if active is not None:
            await self.app.run_action(active.binding.action, active.node)

    def on_resize(self) -> None:
        self.footer.restyle()


async def fetch_rows(fetch: Fetch, query: RowQuery) -> tuple[pl.DataFrame | None, str]:
    """Rows, fetched in a thread, and ""; or None and what went wrong."""
    import polars as pl  # only a drill-down needs it: the first frame must not wait for it

    try:
        return await asyncio.to_thread(fetch, query), ""
    except (ValueError, OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        return None, safe_text(f"The rows could not be fetched: {error}", 400)
