"""Few inks, named by what they mean; a palette gives each a colour taken from the theme."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Final, Self

from rich.segment import Segment
from rich.style import Style
from textual.color import Color, ColorParseError
from textual.filter import LineFilter

STEPS: Final = 8


class Ink(IntEnum):
    """What a cell is drawn in. STREAM_1 + i and HEAT_1 + i (i in 0..7) are the qualitative and the heat colours."""

    FG = 0
    STRONG = 1
    DIM = 2
    GRID = 3
    ACCENT = 4
    OK = 5
    WARN = 6
    BREACH = 7
    STREAM_1 = 8
    HEAT_1 = 16


DATA: Final = Ink.STREAM_1
"""What a chart of one series is drawn in; the accent is for focus."""

WAS: Final = Ink.STREAM_1 + 6
"""What a baseline is drawn in, with dots, so that it is told apart without colour too."""

_HEAT_GROUND: Final = 0.6
SELECTED: Final = 32
"""Added to an ink: the cell is under the cursor (reversed)."""

_DARK: Final = {
    "foreground": "#d8dee9",
    "background": "#0f1218",
    "accent": "#7aa2f7",
    "dim": "#7d8799",
    "grid": "#3b4252",
    "ok": "#8cc98f",
    "warn": "#e5b567",
    "breach": "#f0736a",
    "stream": ("#56b4e9", "#e69f00", "#2fb391", "#cc79a7", "#f0e442", "#7f8cff", "#d55e00", "#b8b8b8"),
    "heat": ("#2a2f5b", "#3a3f83", "#3f5fa0", "#3c82a8", "#41a39b", "#6cc07f", "#b3d65c", "#f6e85a"),
}
_LIGHT: Final = {
    "foreground": "#1f2430",
    "background": "#fafafa",
    "accent": "#2257c5",
    "dim": "#6b7280",
    "grid": "#c3c8d1",
    "ok": "#2f7d32",
    "warn": "#9a6200",
    "breach": "#c62828",
    "stream": ("#0072b2", "#a86700", "#00795a", "#a5457d", "#7d7200", "#4450c8", "#b34700", "#606060"),
    "heat": ("#dfe6a8", "#b5d39a", "#83bd97", "#55a399", "#3a869b", "#33679a", "#35468c", "#2a2466"),
}


@dataclass(frozen=True)
class Palette:
    """Rich styles of the inks; `styles` puts them on the background, which nobody else fills under drawn lines.

    ground   the background as a colour
    filters  what the app does to every colour (none at all, or the terminal's own ones): `styles` have been through it
    """

    fg: Style
    dim: Style
    grid: Style
    accent: Style
    ok: Style
    warn: Style
    breach: Style
    bg: Style
    streams: tuple[Style, ...]
    heat: tuple[Style, ...]
    ground: Color
    filters: tuple[LineFilter, ...] = ()

    @cached_property
    def styles(self) -> tuple[Style, ...]:
        """The style of every ink, then of every ink under the cursor (index + SELECTED)."""
        bold = Style(bold=True)
        plain = (self.fg, self.fg + bold, self.dim, self.grid, self.accent, self.ok, self.warn, self.breach)
        # Under the cursor what is faint is as strong as the rest: the bar is one bar, and its words can be read.
        under = (self.fg, self.fg + bold, self.fg, self.fg, *plain[4:])
        shades = (*self.streams, *self.heat)
        shades += (self.fg,) * (SELECTED - len(plain) - len(shades))
        reverse = Style(reverse=True)
        inks = [self.bg + style for style in (*plain, *shades)]
        inks += [self.bg + style + reverse for style in (*under, *shades)]
        return tuple(map(self._filtered, inks))

    def _filtered(self, style: Style) -> Style:
        segments = [Segment(" ", style)]
        for filter in self.filters:
            segments = filter.apply(segments, self.ground)
        return segments[0].style or Style.null()

    @classmethod
    def from_variables(cls, variables: Mapping[str, str], filters: Sequence[LineFilter] = ()) -> Self:
        """From theme variables (`fusetui-ok`, `fusetui-stream-1`, …); what is absent or unreadable has a fallback.

        The fallbacks follow the theme's own foreground, accent and severities, and its background decides whether
        the built-in colours for a dark or a light ground are used.
        """
        background = _colour(variables, ("background",)) or Color.parse(str(_DARK["background"]))
        base = _LIGHT if background.ansi is None and background.brightness > 0.5 else _DARK

        def ink(name: str, *others: str, bold: bool = False) -> Style:
            found = _colour(variables, (f"fusetui-{name}", *others))
            return Style(color=(found or Color.parse(str(base[name]))).rich_color, bold=bold or None)

        def ramp(name: str) -> list[Color]:
            found = (_colour(variables, (f"fusetui-{name}-{i + 1}",)) for i in range(STEPS))
            return [colour or Color.parse(fallback) for colour, fallback in zip(found, base[name], strict=True)]

        return cls(
            fg=ink("foreground", "foreground"),
            dim=ink("dim"),
            grid=ink("grid"),
            accent=ink("accent", "accent"),
            ok=ink("ok", "success"),
            warn=ink("warn", "warning"),
            breach=ink("breach", "error", bold=True),
            bg=Style(bgcolor=background.rich_color),
            streams=tuple(Style(color=colour.rich_color) for colour in ramp("stream")),
            heat=tuple(_heat_style(colour, background) for colour in ramp("heat")),
            ground=background,
            filters=tuple(filters),
        )


def _heat_style(colour: Color, background: Color) -> Style:
    """A shade glyph on a ground of its own colour: a light shade of a dark colour would look like no data."""
    if colour.ansi is not None or background.ansi is not None:
        return Style(color=colour.rich_color)
    return Style(color=colour.rich_color, bgcolor=background.blend(colour, _HEAT_GROUND).rich_color)


def _colour(variables: Mapping[str, str], names: tuple[str, ...]) -> Color | None:
    for name in names:
        value = variables.get(name)
        if value is None:
            continue
        try:
            return Color.parse(value)
        except ColorParseError:
            continue
    return None


def stream_ink(position: int) -> int:
    """The ink of the stream at `position`; from the eighth on they share the last one ("others")."""
    return Ink.STREAM_1 + min(position, STEPS - 1)


DEFAULT: Final = Palette.from_variables({})
