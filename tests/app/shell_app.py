"""The app on a fake feed: for tests (`make_app`), and to look at (`python tests/app/shell_app.py STATE`)."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fake_feed import FakeFeed, feed_of

from fusetui.app.app import FusetuiApp
from fusetui.app.bookmarks import Bookmarks
from fusetui.app.glyphs import BRAILLE, Glyphs
from fusetui.app.session import Session
from fusetui.app.shell import Look
from fusetui.app.terminal import stdin_is_data
from fusetui.app.themes import load_themes

THEMES = load_themes()


def make_app(
    feed: FakeFeed, folder: Path, *, glyphs: Glyphs = BRAILLE, theme: str = "dark", hz: float = 1, **options: Any
) -> FusetuiApp:
    """The app as `run_app` makes it, without a terminal."""
    return FusetuiApp(
        Session(feed, Bookmarks("test", folder)),
        title="bert-burst.arrows",
        look=Look(THEMES.usable, theme, glyphs),
        hz=hz,
        **options,
    )


class LoopWatch(FusetuiApp):
    """Notes how late the event loop ever was, and how many frames were skipped."""

    slowest_s = 0.0
    due_s = 0.0

    def on_mount(self) -> None:
        self.set_timer(1.0, lambda: self.set_interval(0.02, self._probe))

    def _probe(self) -> None:
        now_s = time.monotonic()
        if self.due_s:
            self.slowest_s = max(self.slowest_s, now_s - self.due_s)
        self.due_s = now_s + 0.02

    def on_unmount(self) -> None:
        Path(os.environ["FAKE_REPORT"]).write_text(
            json.dumps({"slowest_s": self.slowest_s, "skipped": self.pacer.skipped})
        )


def main() -> int:
    """Run it in this terminal."""
    from fusetui.app import run
    from fusetui.app.run import run_app

    state = sys.argv[1] if len(sys.argv) > 1 else "live"
    os.environ.setdefault("XDG_STATE_HOME", tempfile.mkdtemp())
    if state == "stdin":
        Path(sys.argv[2]).write_bytes(stdin_is_data().read())
    if "FAKE_REPORT" in os.environ:
        run.FusetuiApp = LoopWatch  # type: ignore[misc]
    feed = feed_of(state)
    return run_app(
        feed,
        title="bert-burst.arrows",
        theme=os.environ.get("FAKE_THEME"),
        glyphs=os.environ.get("FAKE_GLYPHS"),
        hz=float(os.environ.get("FAKE_HZ", "2")),
        mouse=True,
        slo_ns=None,
        bookmarks_key="fake",
    )


if __name__ == "__main__":
    sys.exit(main())
