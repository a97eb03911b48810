"""Text above the panes: what a pane shows and how it is computed, or every key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from fusetui.app.actions import Action, shown
from fusetui.app.footer import Hint
from fusetui.app.screens.drill import DrillScreen


class HelpScreen(DrillScreen):
    """A page of text; scrolls, `esc` closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,h,f1", "dismiss", "Back", id="help.back", show=False)
    ]
    KEYS: ClassVar[Sequence[Hint]] = (("esc", "back", 0), ("↑↓", "scroll", 1))
    DEFAULT_CSS = """
    HelpScreen VerticalScroll { padding: 1 2; height: 1fr; scrollbar-size-vertical: 1; }
    HelpScreen Static { width: 100%; max-width: 130; height: auto; }
    HelpScreen #heading { text-style: bold; color: $accent; margin-bottom: 1; }
    """

    def __init__(self, heading: str, text: str) -> None:
        super().__init__()
        self.heading = heading
        self.body_text = text

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(Content(self.heading), id="heading")
            yield Static(Content(self.body_text))
        yield self.footer


def keys_text(actions: Sequence[Action]) -> str:
    """Every action with its keys, its id for keys.toml and what it does."""
    lines = []
    area = ""
    for action in actions:
        if area and action.id.partition(".")[0] != area:
            lines.append("")
        area = action.id.partition(".")[0]
        keys = " ".join(shown(key) for key in action.keys) or "—"
        lines.append(f"{keys:<16}{action.help}  [{action.id}]")
    lines += ["", "Other keys: keys.toml in the fusetui folder of your config directory, action id = key."]
    return "\n".join(lines)
