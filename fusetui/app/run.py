"""Run the application on an ingest and come back with the exit status."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from fusetui.app import terminal
from fusetui.app.actions import ACTIONS
from fusetui.app.app import FusetuiApp
from fusetui.app.bookmarks import Bookmarks
from fusetui.app.decisions import Decisions
from fusetui.app.glyphs import ASCII, BLOCK, BRAILLE, SETS, Glyphs
from fusetui.app.keymap import keymap_path, load_keymap
from fusetui.app.lookout import Lookout
from fusetui.app.session import Feed, Session
from fusetui.app.shell import Look
from fusetui.app.themes import DEFAULT, Themes, load_themes
from fusetui.app.watching import watching
from fusetui.telemetry.source import Trace
from fusetui.telemetry.tape import Tape
from fusetui.telemetry.text import safe_text

if TYPE_CHECKING:
    from fusetui.triage.owners import Owners

NO_TERMINAL = 2


def run_app(
    ingest: Feed,
    *,
    title: str,
    theme: str | None,
    glyphs: str | None,
    hz: float,
    mouse: bool,
    slo_ns: int | None,
    bookmarks_key: str,
    tape: Tape | None = None,
    trace: Trace | None = None,
    alerts: str | None = None,
    baseline: tuple[str, Callable[[], Trace]] | None = None,
) -> int:
    """Show `ingest` until the person leaves; the exit status.

    theme, glyphs  names, None: what suits the terminal; hz: frames per second wanted
    slo_ns         latency objective that replaces the capture's own, None: keep that
    bookmarks_key  names the capture whose bookmarks these are
    tape           where the source is being recorded to
    trace          the capture behind a replay, looked through for anomalies
    baseline       what the capture to compare with is called, and how it is opened (in a thread)
    alerts         a file of alerts, None: that of the config folder
    """
    refusal = terminal.refusal()
    if refusal is not None:
        sys.stderr.write(f"{refusal}\n")
        return NO_TERMINAL
    themes = load_themes()
    actions, problems = load_keymap(keymap_path(), ACTIONS)
    chosen, complaint = choose_theme(theme, themes, os.environ)
    bookmarks, decisions = Bookmarks(bookmarks_key), Decisions(bookmarks_key)
    problems += [
        f"{kept.broken} {what} could not be read and are left alone"
        for kept, what in ((bookmarks, "bookmarks"), (decisions, "decisions"))
        if kept.broken
    ]
    look = Look(themes.usable, chosen, choose_glyphs(glyphs, os.environ), "NO_COLOR" in os.environ)
    session = Session(ingest, bookmarks, tape, decisions)
    session.lookout = Lookout(ingest, partial(watching, alerts, bookmarks_key), trace)
    if baseline is not None:
        from fusetui.app.baseline import BaselineBoard

        session.baseline = BaselineBoard(ingest, baseline[1], safe_text(baseline[0], 60))
    app = FusetuiApp(
        session,
        title=safe_text(title, 200),
        look=look,
        hz=hz,
        slo_ns=slo_ns,
        actions=actions,
        problems=(*complaint, *themes.problems, *problems),
        owners=_owners,
        first_frame=terminal.settle_memory,
        driver_class=terminal.MeteredDriver,
    )
    terminal.remember_modes()
    session.lookout.start()
    try:
        app.run(mouse=mouse)
    finally:
        session.lookout.stop()
    return app.return_code or 0


def _owners() -> Owners:
    from fusetui.triage.owners import load_owners  # read in a thread: the first frame must not wait for it

    return load_owners()


def choose_glyphs(wanted: str | None, env: Mapping[str, str]) -> Glyphs:
    """The glyph set asked for, else what the terminal can show."""
    if wanted is not None and wanted in SETS:
        return SETS[wanted]
    if not terminal.draws_unicode():
        return ASCII
    # The Linux console's fonts have blocks but no braille.
    return BLOCK if env.get("TERM") == "linux" else BRAILLE


def choose_theme(wanted: str | None, themes: Themes, env: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """The theme asked for, else what suits the terminal; and a complaint when it is not there."""
    if wanted in themes.usable:
        return str(wanted), ()
    complaint = () if wanted is None else (f"no theme {safe_text(str(wanted), 40)}: {', '.join(themes.usable)}",)
    sixteen = env.get("TERM") in ("linux", "vt100", "xterm-color") and "COLORTERM" not in env
    fallback = "ansi16" if sixteen and "ansi16" in themes.usable else DEFAULT
    return fallback, complaint
