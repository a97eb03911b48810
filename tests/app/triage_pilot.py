"""Keys pressed and screens read where findings are looked at in a thread."""

from __future__ import annotations

from typing import Any

from textual.pilot import Pilot

from fusetui.app.app import FusetuiApp


async def settle(pilot: Pilot[Any]) -> None:
    """Let keys, findings and screens come to rest."""
    await pilot.pause()
    await pilot.pause(0.06)
    app = pilot.app
    assert isinstance(app, FusetuiApp)
    while app.triage.busy:
        await pilot.pause(0.02)
    app.tick(now=True)
    await pilot.pause(0.02)


async def press(pilot: Pilot[Any], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await settle(pilot)


def lines(app: FusetuiApp) -> list[str]:
    """What is on the screen."""
    strips = app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip).rstrip() for strip in strips]


def text(app: FusetuiApp) -> str:
    return "\n".join(lines(app))


def said(app: FusetuiApp) -> list[str]:
    """The notices in the corner."""
    return [str(note.message) for note in app._notifications]
