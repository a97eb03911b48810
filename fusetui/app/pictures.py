"""Pictures of the screens without a terminal: what the application shows of a source, as SVG."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from textual.pilot import Pilot

from fusetui.app.app import FusetuiApp
from fusetui.app.bookmarks import Bookmarks
from fusetui.app.glyphs import BRAILLE
from fusetui.app.session import Feed, Session
from fusetui.app.shell import Look
from fusetui.app.themes import DEFAULT, load_themes

SIZE: Final = (120, 40)
SCREENS: Final = ("overview", "tail", "queue", "cores", "mapping", "triage")
_LONGEST_S: Final = 20.0
_SETTLES_S: Final = 0.4
# The fonts that the exporter names lie on somebody's server: a picture must not ask for them.
_FONT: Final = re.compile(r"@font-face\s*\{[^}]*\}")


def pictures(feed: Feed, folder: Path, *, title: str, screens: Sequence[str] = SCREENS) -> dict[str, str]:
    """SVG by screen, 120x40, of a source whose first snapshot is there or comes within 20 s.

    folder  where the application may keep its state meanwhile
    """
    session = Session(feed, Bookmarks("pictures", folder))
    app = FusetuiApp(session, title=title, look=Look(load_themes().usable, DEFAULT, BRAILLE))
    found: dict[str, str] = {}

    async def take(pilot: Pilot[object]) -> None:
        await _until(pilot, lambda: session.snapshot is not None)
        for screen in screens:
            await app.action_show(screen)
            await pilot.pause(_SETTLES_S)  # what is shown is what is asked of the rules and of the model
            await _until(pilot, lambda: not (app.triage.busy or app.causes.busy))
            await pilot.pause(_SETTLES_S)
            await _until(pilot, lambda: not app.triage.busy)
            app.tick(now=True)
            await pilot.pause()
            found[screen] = _FONT.sub("", app.export_screenshot(title=f"{title}: {screen}"))
        app.exit()

    app.run(headless=True, size=SIZE, auto_pilot=take)
    return found


async def _until(pilot: Pilot[object], holds: Callable[[], bool]) -> None:
    until_s = time.monotonic() + _LONGEST_S
    while not holds() and time.monotonic() < until_s:
        await pilot.pause(0.05)
