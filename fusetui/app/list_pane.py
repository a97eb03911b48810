"""Panes that are lists: a cursor that stays on its item when the order changes, and scrolling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType

from fusetui.analysis.snapshot import Snapshot
from fusetui.app.pane import MIN_FRAME_HEIGHT, MIN_FRAME_WIDTH, Pane


class ListPane(Pane):
    """A pane with an item every `item_lines` lines from line `head_lines` of the inside on.

    selected  key of the item under the cursor; None until the cursor is moved for the first time
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", id="list.up", show=False),
        Binding("down,j", "move(1)", "Down", id="list.down", show=False),
        Binding("pageup", "move(-10)", "Page up", id="list.page_up", show=False),
        Binding("pagedown", "move(10)", "Page down", id="list.page_down", show=False),
        Binding("home", "move(-1000000000)", "First", id="list.first", show=False),
        Binding("end", "move(1000000000)", "Last", id="list.last", show=False),
    ]
    head_lines: int = 0
    item_lines: int = 1

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.selected: str | None = None
        self.top = 0

    def keys(self, snapshot: Snapshot) -> Sequence[str]:
        """The items in the order shown, each by something that stays the same from tick to tick."""
        raise NotImplementedError

    def items(self) -> Sequence[str]:
        """The items now."""
        return self.keys(self.snapshot) if self.snapshot is not None else ()

    def cursor(self, keys: Sequence[str]) -> int | None:
        """Position of the selected item, None when nothing is selected or it is gone."""
        return keys.index(self.selected) if self.selected is not None and self.selected in keys else None

    def in_view(self, keys: Sequence[str], lines: int) -> range:
        """The items on screen when `lines` lines are there for them: the cursor is always among them."""
        cursor = self.cursor(keys)
        self.top = max(0, min(self.top, len(keys) - lines))
        if cursor is not None and lines > 0:
            self.top = min(self.top, cursor)
            self.top = max(self.top, cursor - lines + 1)
        return range(self.top, min(len(keys), self.top + max(0, lines)))

    def select(self, delta: int) -> None:
        """Move the cursor by `delta` items; the first move lands on the first (or last) item."""
        keys = self.items()
        if not keys:
            return
        at = self.cursor(keys)
        if at is None:
            at = -1 if delta > 0 else len(keys)
        self.selected = keys[max(0, min(at + delta, len(keys) - 1))]
        self.repaint()

    def action_move(self, delta: int) -> None:
        self.select(delta)

    def on_click(self, event: events.Click) -> None:
        framed = self.size.width >= MIN_FRAME_WIDTH and self.size.height >= MIN_FRAME_HEIGHT
        keys = self.items()
        line = event.y - int(framed) - self.head_lines
        at = line // self.item_lines + self.top
        if line >= 0 and at < len(keys):
            self.selected = keys[at]
            self.repaint()

    def on_mouse_scroll_down(self) -> None:
        self.select(1)

    def on_mouse_scroll_up(self) -> None:
        self.select(-1)
