"""A question on the bottom line; a wrong answer is explained and can be corrected."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from fusetui.telemetry.text import safe_text

MAX_ANSWER = 2000


class Prompt(ModalScreen[None], inherit_bindings=False):
    """accept: takes the answer; a ValueError's text is shown and the prompt stays."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Cancel", id="prompt.cancel", show=False),
        Binding("ctrl+q,ctrl+c", "app.quit", "Leave", id="prompt.quit", show=False),
    ]
    DEFAULT_CSS = """
    Prompt { background: transparent; align: left bottom; overflow: hidden; }
    Prompt #ask { dock: bottom; height: auto; max-height: 100%; background: $panel; }
    Prompt #problem { height: auto; padding: 0 1; color: $error; display: none; }
    Prompt Horizontal { height: 1; }
    Prompt #label { width: auto; padding: 0 1; color: $accent; }
    Prompt Input { width: 1fr; height: 1; border: none; padding: 0; background: $panel; }
    Prompt Input:focus { border: none; }
    """

    def __init__(self, label: str, hint: str, accept: Callable[[str], None], value: str = "") -> None:
        super().__init__()
        self.label = label
        self.hint = hint
        self.accept = accept
        self.value = value

    def compose(self) -> ComposeResult:
        with Vertical(id="ask"):
            yield Static(Content(""), id="problem")
            with Horizontal():
                yield Static(Content(self.label), id="label")
                yield Input(self.value, placeholder=self.hint, max_length=MAX_ANSWER, select_on_focus=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        try:
            self.accept(event.value)
        except ValueError as error:
            self._explain(str(error))
        else:
            self.dismiss()

    def _explain(self, problem: str) -> None:
        lines = [safe_text(line, 400) for line in problem.split("\n")[:6]]
        place = self.query_one("#problem", Static)
        place.update(Content("\n".join(lines)))
        place.display = True
