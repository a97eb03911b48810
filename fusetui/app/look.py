"""What an app hands to its panes: the palette of the theme and the glyph set."""

from __future__ import annotations

from typing import Protocol, cast

from fusetui.app.glyphs import BRAILLE, Glyphs
from fusetui.app.palette import DEFAULT, Palette


class Dressed(Protocol):
    """An app that decides how panes look. Assign a new palette or glyph set; panes take it up at their next repaint."""

    palette: Palette
    glyphs: Glyphs


def look_of(app: object) -> tuple[Palette, Glyphs]:
    """The palette and glyphs of an app, the defaults when it has none."""
    # Every pane asks at every tick: an isinstance check against a protocol costs more than the rest of the asking.
    if hasattr(app, "palette") and hasattr(app, "glyphs"):
        dressed = cast(Dressed, app)
        return dressed.palette, dressed.glyphs
    return DEFAULT, BRAILLE
