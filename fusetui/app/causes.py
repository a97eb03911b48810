"""What caused the tail, asked of the twin of the window: in a thread, and only while somebody looks."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fusetui.analysis.snapshot import Snapshot
from fusetui.app.runtime_board import Make, making
from fusetui.app.worker import Worker

if TYPE_CHECKING:
    from fusetui.analysis.attribution.causes import Causes
    from fusetui.app.session import Feed

Window = tuple[str, int, int]
UNSEEN_S: Final = 4.0
"""When nobody has looked for so long, the work is given up."""


@dataclass(frozen=True, slots=True)
class CauseRequest:
    """of: the window; make: its twin."""

    of: Window
    make: Make


@dataclass(frozen=True, slots=True)
class CauseAnswer:
    """causes: or why there are none; given_up: because nobody looked any more, or another window was asked for."""

    of: Window
    causes: Causes | str
    given_up: bool
    took_s: float


class CauseWorker(Worker[CauseRequest, CauseAnswer]):
    """Makes a twin and asks it, unless nobody wants to know any more."""

    NAME = "fusetui-causes"

    def __init__(self) -> None:
        super().__init__()
        self.seen_s = 0.0

    def answered_by(self, request: CauseRequest, number: int) -> CauseAnswer:
        from fusetui.analysis.attribution.causes import causes_of  # with the runtime behind it

        def wanted() -> bool:
            return not self.newer(number) and time.monotonic() - self.seen_s < UNSEEN_S

        began_s = time.monotonic()
        twin = request.make()
        causes: Causes | str = twin if isinstance(twin, str) else causes_of(twin, wanted=wanted)
        given_up = isinstance(causes, str) and not wanted()
        return CauseAnswer(request.of, causes, given_up, time.monotonic() - began_s)


class CauseBoard:
    """The causes of the window that is shown. They take seconds, so they are looked for when time stands still, or
    when a person asks."""

    def __init__(self, feed: Feed, worker: CauseWorker | None = None) -> None:
        self.worker = worker or CauseWorker()
        self._feed = feed
        self._wanted: Window | None = None

    def state(self) -> tuple[object, ...]:
        """Equal as long as there is nothing new to draw."""
        return self.worker.answered, self.worker.busy, self._wanted

    def look(self, snapshot: Snapshot | None, *, held: bool = False, asked: bool = False) -> None:
        """A screen that shows causes is shown. held: the view stands still; asked: a person wants them now."""
        self.worker.seen_s = time.monotonic()
        if snapshot is None:
            return
        answer = self.worker.answer
        if answer is not None and answer.given_up and answer.of == self._wanted and not self.worker.busy:
            self._wanted = None
        transport = snapshot.transport
        calm = held or (transport is not None and not transport.playing)
        if (asked or calm) and window_of(snapshot) != self._wanted:
            self._wanted = window_of(snapshot)
            self.worker.ask(CauseRequest(self._wanted, making(self._feed, snapshot)))

    def of(self, snapshot: Snapshot) -> Causes | str | None:
        """The causes in the window they were last looked for in, or why there are none; None: not looked for."""
        answer = self.worker.answer
        if answer is None or answer.given_up or answer.of != self._wanted:
            return None
        moved = window_of(snapshot) != answer.of
        return None if moved and isinstance(answer.causes, str) else answer.causes

    def stands_for(self, snapshot: Snapshot) -> bool:
        """Whether the causes are of the window that is shown."""
        return self._wanted == window_of(snapshot)

    @property
    def busy(self) -> bool:
        """Whether they are being looked for."""
        return self.worker.busy


def window_of(snapshot: Snapshot) -> Window:
    """What a window is known by."""
    return snapshot.filter_text, snapshot.window_start_ns, snapshot.now_ns
