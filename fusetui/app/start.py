"""The start screen: what this machine offers to watch, to choose from."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from fusetui.app.run import choose_glyphs, choose_theme
from fusetui.app.shell import Look
from fusetui.app.themes import FALLBACKS, load_themes
from fusetui.sources.discovery import Offer
from fusetui.telemetry.text import safe_text

_DIGITS = "123456789"


def choose(found: Sequence[Offer], *, theme: str | None, glyphs: str | None, mouse: bool) -> str | None:
    """What the person wants to watch, as the SOURCE of `fusetui live`; None when they leave. Needs a terminal."""
    themes = load_themes()
    chosen, _ = choose_theme(theme, themes, os.environ)
    look = Look(themes.usable, chosen, choose_glyphs(glyphs, os.environ), "NO_COLOR" in os.environ)
    return StartApp(found, look).run(mouse=mouse)


class StartApp(App[str], inherit_bindings=False):
    """A list of offers, those that can be watched first; Enter or a digit returns the source of one."""

    TITLE = "fusetui"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,escape,ctrl+q,ctrl+c", "quit", "Leave", show=False),
        Binding("j", "move('down')", "Down", show=False),
        Binding("k", "move('up')", "Up", show=False),
        *(Binding(digit, f"take({number})", show=False) for number, digit in enumerate(_DIGITS)),
    ]
    CSS = """
    #head, #foot { height: 1; padding: 0 1; background: $panel; }
    #head { text-style: bold; }
    OptionList { height: 1fr; border: none; padding: 1 1; background: $background; }
    OptionList:focus { border: none; }
    """

    def __init__(self, found: Sequence[Offer], look: Look) -> None:
        super().__init__(ansi_color=True if look.no_color else None)
        self.offers = [offer for offer in found if offer.ready] + [offer for offer in found if not offer.ready]
        self.look = look
        for theme in look.themes.values():
            self.register_theme(theme)
        if look.theme in look.themes:
            self.theme = look.theme

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return FALLBACKS

    def compose(self) -> ComposeResult:
        yield Static(Content("fusetui  what this machine offers, found by looking only"), id="head")
        yield OptionList(
            *(
                Option(told(offer, _DIGITS[number : number + 1]), disabled=not offer.ready)
                for number, offer in enumerate(self.offers)
            )
        )
        yield Static(Content("enter watch   q leave   fusetui doctor tells more   fusetui replay FILE"), id="foot")

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.action_take(event.option_index)

    def action_take(self, number: int) -> None:
        if number < len(self.offers) and self.offers[number].ready:
            self.exit(self.offers[number].source)

    def action_move(self, way: str) -> None:
        options = self.query_one(OptionList)
        if way == "down":
            options.action_cursor_down()
        else:
            options.action_cursor_up()


def told(offer: Offer, digit: str) -> Content:
    """Two lines: what it is with the command that watches it, and how it was recognised or what is in the way."""
    way = offer.command if offer.ready else "not yet" + (f": then {offer.command}" if offer.command else "")
    first = f"{digit or ' '}  {safe_text(offer.name, 60)}  "
    return Content.assemble((first, "bold"), safe_text(way, 200), "\n   ", (safe_text(offer.detail, 300), "dim"))
