"""The alerts that are watched: how each stands, since when, and what it observed."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.palette import Ink
from fusetui.app.pane import Pane, draw_text

if TYPE_CHECKING:
    from fusetui.app.lookout import Seen
    from fusetui.app.moments import Moment
    from fusetui.triage.alert import AlertState

_STATE = 9
_NAME = 18


class AlertsPane(Pane):
    """The screen sets `watched`."""

    TITLE = "Alerts"
    HELP = """Rules of alerts.toml (or --alerts FILE), in the language of `fusetui check`: what should hold.

✗ raised  breached for as long as `for` says; ✓ holds; ▲ breached, not yet for long enough
— no data neither raised nor cleared: what it observed says what is missing
cleared   once it has held for as long as `clear` says: in between it stays raised
Log       every raise and clear is a line in alerts/ of the state folder; hooks that failed too. In a replay alerts are
          marks only: ▲ raised, ✓ cleared, over the whole capture, and no hook is called.
Columns   those of the measures in its rule
Blind to  what came between two looks; more than the newest 100,000 rows of the time looked over."""
    watched: Seen | None = None

    def extra_state(self) -> tuple[object, ...]:
        return (id(self.watched),)

    def trust(self, snapshot: Snapshot) -> str:
        seen = self.watched
        if seen is None or not seen.alerts:
            return "over the whole capture" if seen is not None and snapshot.transport is not None else ""
        raised = sum(state.raised_ns is not None for state in seen.alerts)
        return f"{raised} raised" if raised else "none raised"

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        seen = self.watched
        if seen is None:
            return
        if seen.problem:
            draw_text(canvas, seen.problem, Ink.WARN)
            return
        y = 0
        for state in sorted(seen.alerts, key=lambda one: (one.raised_ns is None, one.no_data)):
            y = _draw_state(canvas, y, state, snapshot)
        past = [one for one in seen.moments if one.kind == "alert"]
        for one in past[::-1] if not seen.alerts else ():
            if y < canvas.height:
                _draw_past(canvas, y, one, snapshot)
            y += 1


def _draw_state(canvas: Canvas, y: int, state: AlertState, snapshot: Snapshot) -> int:
    """Draw one; the line after it."""
    if y >= canvas.height:
        return y
    glyphs = canvas.glyphs
    mark, word, ink = {
        "raised": (glyphs.breach, "raised", Ink.BREACH if state.alert.severity == "breach" else Ink.WARN),
        "no data": (fmt.DASH, "no data", Ink.DIM),
        "holds": (glyphs.ok, "holds", Ink.OK),
        "breached": (glyphs.warn, "breached", Ink.WARN),
    }[standing_of(state)]
    canvas.put(0, y, f"{mark} {word}", ink)
    canvas.put(_STATE + 2, y, fmt.clip(state.alert.name, _NAME), Ink.STRONG)
    x = _STATE + _NAME + 4
    since = state.raised_ns if state.raised_ns is not None else state.since_ns
    when = "" if since is None else f"since {fmt.moment(since, 3600e9, snapshot.header.clock).strip()}  "
    lines = textwrap.wrap(f"{when}{state.says}", max(1, canvas.width - x))[:2]
    for i, line in enumerate(lines):
        if y + i < canvas.height:
            canvas.put(x, y + i, fmt.clip(line, canvas.width - x), Ink.DIM if state.no_data else Ink.FG)
    return y + max(len(lines), 1)


def standing_of(state: AlertState) -> str:
    """raised, breached, holds or no data: what is raised stays that, whatever the newest look saw."""
    if state.raised_ns is not None:
        return "raised"
    return "no data" if state.no_data else state.verdict


def _draw_past(canvas: Canvas, y: int, one: Moment, snapshot: Snapshot) -> None:
    mark, ink = (canvas.glyphs.warn, Ink.WARN) if one.bad else (canvas.glyphs.ok, Ink.OK)
    at = fmt.moment(one.at_ns, 3600e9, snapshot.header.clock).strip()
    canvas.put(0, y, mark, ink)
    canvas.put(2, y, fmt.clip(f"{at}  {one.text.removeprefix('alert ')}", canvas.width - 2), Ink.FG)
