"""Going to the rows that show something, and back to where one was: time, window and filter, no widgets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fusetui.app.session import Session
from fusetui.app.verdict import Verdict

if TYPE_CHECKING:
    from fusetui.triage.finding import Slice

SHORTER: Final = 0.9
"""A slice below this share of the window gets a window of its own."""


@dataclass(frozen=True, slots=True)
class View:
    """Where the person was. position_ns: None for a live source."""

    filter: str
    window_ns: int
    position_ns: int | None
    playing: bool


@dataclass(frozen=True, slots=True)
class Detour:
    """says  what stands on line two meanwhile; screen, pane, zoomed: to go back to; step: of a walk, None: a proof"""

    view: View
    says: Verdict
    screen: str
    pane: int | None
    zoomed: bool
    step: int | None = None


def view_of(session: Session) -> View:
    """The view as it is."""
    transport, newest = session.transport, session.feed.snapshot
    state = transport.state() if transport is not None else None
    return View(
        newest.filter_text if newest is not None else "",
        session.window_ns(),
        state.position_ns if state is not None else None,
        state.playing if state is not None else False,
    )


def show_slice(session: Session, part: Slice) -> None:
    """Leave only its rows in view, and let time stand at its end. Raises ValueError for a filter that is none."""
    if part.filter != view_of(session).filter:
        session.feed.set_filter(part.filter)
    transport = session.transport
    if transport is None:
        return
    transport.pause()
    if part.to_ns - part.from_ns < SHORTER * session.window_ns():
        session.feed.set_window(part.to_ns - part.from_ns)
    if transport.state().position_ns != part.to_ns:
        transport.seek_ns(part.to_ns)


def show_view(session: Session, view: View, *, filtered: bool) -> None:
    """Back to a view, and on with time when it ran. filtered: its rows alone were asked for meanwhile."""
    now = view_of(session)
    # What was asked for last may not be in any snapshot yet.
    if filtered or now.filter != view.filter:
        session.feed.set_filter(view.filter)
    if now.window_ns != view.window_ns:
        session.feed.set_window(view.window_ns)
    transport = session.transport
    if transport is None or view.position_ns is None:
        return
    if now.position_ns != view.position_ns:
        transport.seek_ns(view.position_ns)
    if view.playing and not now.playing:
        transport.play()
