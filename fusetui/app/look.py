"""What an app hands to its panes: the palette of the theme and the glyph set."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from fusetui.app.glyphs import BRAILLE, Glyphs
from fusetui.app.palette import DEFAULT, Palette


@runtime_checkable
class Dressed(Protocol):
    """An app that decides how panes look. Assign a new palette or glyph set; panes take it up at their next repaint."""

    palette: Palette
    glyphs: Glyphs


def look_of(app: object) -> tuple[Palette, Glyphs]:
    """The palette and glyphs of an app, the defaults when it has none."""
    if isinstance(app, Dressed):
        return app.palette, app.glyphs
    return DEFAULT, BRAILLE
