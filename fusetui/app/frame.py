"""What the chrome around the panes is drawn from: one immutable value a tick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fusetui.analysis.snapshot import Ints, Snapshot
from fusetui.app.bookmarks import Bookmark
from fusetui.app.moments import Moment
from fusetui.app.verdict import Verdict

if TYPE_CHECKING:
    from fusetui.app.baseline import BaselineBoard
    from fusetui.app.causes import CauseBoard
    from fusetui.app.lookout import Seen
    from fusetui.app.plan_board import PlanBoard
    from fusetui.app.triage_board import TriageBoard


@dataclass(frozen=True, slots=True)
class Frame:
    """One tick of the screen.

    snapshot     what the panes show; None before any data
    now_s        monotonic seconds
    held         a live view stands still while its source goes on
    window_ns    the window asked for
    cpu          share of one core fusetui takes, bytes_per_s what it sends to the terminal; None: not known yet
    skipped      frames not painted because the terminal was slow; hz: painted now
    density      rows per equal bin of the whole capture, None for a live source
    board        knobs and plans; None before they were first shown
    causes       what caused the tail; None where that is not shown
    triage       what the rules found; None before anything is shown
    moments      changes, alerts and marks that are known of the whole capture, or so far of a live source
    watched      what the lookout saw; None where nobody looks out
    baseline     the capture to compare with; None without one
    recorded     events recorded so far, None when nothing is being recorded; recording_failed: why that stopped
    """

    snapshot: Snapshot | None
    now_s: float
    title: str
    verdict: Verdict
    held: bool = False
    window_ns: int | None = None
    cpu: float | None = None
    bytes_per_s: float | None = None
    skipped: int = 0
    hz: float = 2.0
    slowed: bool = False
    bookmarks: Sequence[Bookmark] = ()
    density: Ints | None = None
    moments: Sequence[Moment] = ()
    watched: Seen | None = None
    recorded: int | None = None
    recording_failed: str = ""
    board: PlanBoard | None = None
    causes: CauseBoard | None = None
    baseline: BaselineBoard | None = None
    triage: TriageBoard | None = None

    @property
    def paused(self) -> bool:
        """Time on the screen stands still because a person wants it to."""
        transport = self.snapshot.transport if self.snapshot else None
        return self.held or (transport is not None and not transport.playing and not transport.at_end)
