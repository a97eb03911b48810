"""What a person does to time, window and filter, whatever the source: no widgets; methods say what they did."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Protocol

from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Ints, Snapshot
from fusetui.app import fmt
from fusetui.app.bookmarks import MAX_LABEL, Bookmark, Bookmarks
from fusetui.app.decisions import Decision, Decisions
from fusetui.app.moments import Moment, beside, of_marks
from fusetui.telemetry.source import Source, Transport
from fusetui.telemetry.tape import Tape
from fusetui.telemetry.text import safe_text
from fusetui.telemetry.times import parse_position_ns

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

    from fusetui.app.baseline import BaselineBoard
    from fusetui.app.lookout import Lookout, Seen

_S: Final = 1_000_000_000
SPEEDS: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
WINDOWS_NS: Final = (
    *(size * 10**power for power in range(6, 9) for size in (1, 2, 5)),
    *(seconds * _S for seconds in (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)),
)
LEAD_SLOTS: Final = 4
"""How much of what came after a moment is in view once one has jumped to it."""
DENSITY_BINS: Final = 400
DENSITY_S: Final = 1.0
NOT_HERE: Final = "a live source has no past to move in; space holds the view"


class Feed(Protocol):
    """What the app needs of the ingest thread."""

    source: Source

    @property
    def snapshot(self) -> Snapshot | None: ...
    @property
    def window_ns(self) -> int | None: ...
    @property
    def failed(self) -> str | None: ...
    def set_window(self, ns: int) -> None: ...
    def set_filter(self, text: str) -> None: ...
    def rows(self, query: RowQuery) -> pl.DataFrame: ...
    def raw(self) -> list[pa.RecordBatch]: ...


class Session:
    """The view on one source.

    tape  where the source is being recorded to, if it is
    lookout  who watches it, None: nobody
    baseline  the capture to compare with, None without one
    held  the snapshot a live view stands at while its source goes on, None when it follows
    """

    def __init__(
        self, feed: Feed, bookmarks: Bookmarks, tape: Tape | None = None, decisions: Decisions | None = None
    ) -> None:
        self.feed = feed
        self.tape = tape
        self.bookmarks = bookmarks
        # Without a place of their own they lie in the folder beside that of the bookmarks, under the same name.
        folder = bookmarks.path.parent.with_name("decisions")
        self.decisions = decisions or Decisions(bookmarks.path.stem, folder)
        self.lookout: Lookout | None = None
        self.baseline: BaselineBoard | None = None
        self.held: Snapshot | None = None
        self.held_s = 0.0
        self._jumped = (0, 0)
        self._density: Ints | None = None
        self._density_s = float("-inf")

    @property
    def transport(self) -> Transport | None:
        return self.feed.source.transport

    @property
    def snapshot(self) -> Snapshot | None:
        """What the screen shows: the newest, or the held one."""
        return self.held or self.feed.snapshot

    @property
    def watched(self) -> Seen | None:
        """What the lookout saw so far."""
        return None if self.lookout is None else self.lookout.seen

    @property
    def moments(self) -> tuple[Moment, ...]:
        """Changes, alerts and marks, the same object as long as there are no others."""
        return () if self.lookout is None else self.lookout.seen.moments

    def window_ns(self) -> int:
        """The window's length: the one asked for, else the one shown."""
        shown = self.snapshot
        return self.feed.window_ns or (max(1, shown.now_ns - shown.window_start_ns) if shown else _S)

    @property
    def when_held(self) -> str:
        """What to add to a change that a held view does not show yet."""
        return "" if self.held is None else ", once the view goes on (space)"

    def density(self, now_s: float) -> Ints | None:
        """Rows per bin of the whole capture, at most a second old; None for a live source."""
        if self.transport is None:
            return None
        if now_s - self._density_s >= DENSITY_S:
            self._density, self._density_s = self.transport.density(DENSITY_BINS), now_s
        return self._density

    def pause(self) -> str:
        if self.transport is not None:
            self.transport.toggle()
            return ""
        if self.held is not None:
            self.held = None
            return "following the source again"
        self.held, self.held_s = self.feed.snapshot, time.monotonic()
        return "" if self.held is None else "view held; the source goes on"

    def step(self, columns: int) -> str:
        shown = self.snapshot
        if self.transport is None or shown is None:
            return NOT_HERE
        self.transport.pause()
        self.transport.step(columns * max(1, shown.slot_ns))
        return ""

    def speed(self, steps: int) -> str:
        if self.transport is None:
            return NOT_HERE
        speed = _next(SPEEDS, self.transport.state().speed, steps)
        self.transport.set_speed(speed)
        return f"speed {speed:g}×"

    def window(self, steps: int) -> str:
        window = int(_next(WINDOWS_NS, self.window_ns(), steps))
        self.feed.set_window(window)
        return f"window {fmt.duration(window).strip()}{self.when_held}"

    def loop(self) -> str:
        if self.transport is None:
            return NOT_HERE
        loop = not self.transport.state().loop
        self.transport.set_loop(loop)
        return "at the end: begin again" if loop else "at the end: stop"

    def go(self, text: str) -> None:
        """Go to a place as typed. Raises ValueError with a line for the person."""
        if self.transport is None:
            raise ValueError(NOT_HERE)
        at = self.transport.state()
        clock = self.feed.source.header.clock
        self.transport.seek_ns(parse_position_ns(text, at.start_ns, at.end_ns, at.position_ns, clock))

    def seek(self, fraction: float) -> str:
        if self.transport is None:
            return NOT_HERE
        self.transport.seek_fraction(max(0.0, min(1.0, fraction)))
        return ""

    def add_bookmark(self, label: str, screen: str) -> str:
        shown = self.snapshot
        if shown is None:
            return "nothing to bookmark yet"
        mark = Bookmark(
            shown.window_start_ns, shown.now_ns, safe_text(label, MAX_LABEL), safe_text(shown.filter_text), screen
        )
        try:
            self.bookmarks.add(mark)
        except OSError as error:
            return f"bookmark kept for this session only: {error.strerror}"
        return "bookmarked"

    def decide(self, decision: Decision) -> str:
        try:
            self.decisions.add(decision)
        except OSError as error:
            return f"decision kept for this session only: {error.strerror}"
        return f"decided: {decision.status}"

    def next_bookmark(self, direction: int) -> tuple[Bookmark | None, str]:
        """Go to a neighbour: the bookmark, None when there is none that way, and what to say."""
        if self.transport is None:
            return None, NOT_HERE
        mark = self.bookmarks.beside(self.transport.state().position_ns, direction)
        if mark is None:
            return None, "no bookmark after this" if direction > 0 else "no bookmark before this"
        # Standing at a bookmark, "the one before" is not this one again.
        self.transport.pause()
        self.transport.seek_ns(mark.t1_ns)
        return mark, f"⚑ {mark.label}" if mark.label else "⚑"

    def next_moment(self, direction: int) -> str:
        """Go to a neighbour: a change, an alert or a mark; what to say. A live source only tells the newest."""
        shown = self.snapshot
        if shown is None:
            return "no data yet"
        places = [*self.moments, *of_marks(shown)]
        if self.transport is None:
            return f"{_told(max(places), shown)}; {NOT_HERE}" if places else "no anomaly yet"
        position_ns = self.transport.state().position_ns
        # After a jump one stands at its moment, wherever the view ends.
        standing_ns = self._jumped[1] if self._jumped[0] == position_ns else position_ns
        found = beside(places, standing_ns, direction)
        if found is None:
            return f"no anomaly {'after' if direction > 0 else 'before'} this"
        self.transport.pause()
        self.transport.seek_ns(found.at_ns + shown.slot_ns * LEAD_SLOTS)
        self._jumped = self.transport.state().position_ns, found.at_ns
        return _told(found, shown)


def _told(moment: Moment, shown: Snapshot) -> str:
    return f"{moment.text} · {fmt.moment(moment.at_ns, 3600e9, shown.header.clock).strip()}"


def _next(ladder: tuple[float, ...] | tuple[int, ...], value: float, steps: int) -> float:
    """The rung above (1) or below (-1) `value`; the last one at either end."""
    if steps > 0:
        return min((rung for rung in ladder if rung > value * 1.001), default=ladder[-1])
    return max((rung for rung in ladder if rung < value * 0.999), default=ladder[0])
