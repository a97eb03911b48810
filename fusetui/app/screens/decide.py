"""The form of a decision: who does what about a finding, how it is undone, and what must hold from now on."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from fusetui.app.decisions import MAX_TEXT, STATUSES
from fusetui.telemetry.text import safe_text

FIELDS: Final = (
    ("owner", "who sees to it"),
    ("status", f"{', '.join(STATUSES[:-1])} or {STATUSES[-1]}"),
    ("fix", "a bounded change"),
    ("rollback", "how it is undone"),
    ("guardrail", "what must hold from now on, e.g. p99 < 50ms"),
)


class DecideScreen(ModalScreen[None]):
    """values: what stands in the fields at first; accept: takes them, a ValueError's text is shown."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "Cancel", id="decide.cancel", show=False),
        Binding("ctrl+s", "save", "Save", id="decide.save", show=False),
        Binding("down", "app.focus_next", "Next", id="decide.next", show=False),
        Binding("up", "app.focus_previous", "Previous", id="decide.previous", show=False),
        Binding("ctrl+q,ctrl+c", "app.quit", "Leave", id="decide.quit", show=False),
    ]
    DEFAULT_CSS = """
    DecideScreen { background: transparent; align: left bottom; overflow: hidden; }
    DecideScreen #form { dock: bottom; height: auto; max-height: 100%; background: $panel; }
    DecideScreen #heading { padding: 0 1; height: 1; text-style: bold; }
    DecideScreen #keys { padding: 0 1; height: 1; color: $text-muted; }
    DecideScreen #problem { height: auto; padding: 0 1; color: $error; display: none; }
    DecideScreen Horizontal { height: 1; }
    DecideScreen .label { width: 12; padding: 0 1; color: $accent; }
    DecideScreen Input { width: 1fr; height: 1; border: none; padding: 0; background: $panel; }
    DecideScreen Input:focus { border: none; }
    """

    def __init__(self, heading: str, values: dict[str, str], accept: Callable[[dict[str, str]], None]) -> None:
        super().__init__()
        self.heading = heading
        self.values = values
        self.accept = accept

    def compose(self) -> ComposeResult:
        with Vertical(id="form"):
            yield Static(Content(safe_text(self.heading, 300)), id="heading")
            yield Static(Content(""), id="problem")
            for name, hint in FIELDS:
                with Horizontal():
                    yield Static(Content(name), classes="label")
                    value = self.values.get(name, "")
                    yield Input(value, placeholder=hint, max_length=MAX_TEXT, id=name, select_on_focus=False)
            yield Static(Content("enter next, in the last field save   ^s save   esc cancel"), id="keys")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if event.input.id == FIELDS[-1][0]:
            self.action_save()
        else:
            self.focus_next()

    def action_save(self) -> None:
        given = {name: safe_text(self.query_one(f"#{name}", Input).value.strip(), MAX_TEXT) for name, _ in FIELDS}
        try:
            given["status"] = status_of(given["status"])
            self.accept(given)
        except ValueError as error:
            place = self.query_one("#problem", Static)
            place.update(Content(safe_text(str(error), 300)))
            place.display = True
        else:
            self.dismiss()


def status_of(typed: str) -> str:
    """The status that what was typed begins. Raises ValueError."""
    found = [status for status in STATUSES if status.startswith(typed.lower())] if typed else []
    if len(found) != 1:
        raise ValueError(f"status: {FIELDS[1][1]}")
    return found[0]
