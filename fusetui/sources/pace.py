"""The clock of sources that make their own telemetry: simulated time, at a speed, from a moment that has passed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_FARTHEST_BEHIND_NS: Final = 2_000_000_000


class Pace:
    """Where simulated time should be by now.

    start_ns     epoch time of the first moment (default: now, less the history)
    history_s    simulated seconds that have passed at the beginning
    speed        simulated time per wall time
    monotonic_ns the wall clock, ns
    """

    def __init__(
        self,
        *,
        start_ns: int | None = None,
        history_s: float = 0.0,
        speed: float = 1.0,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._history_ns = int(history_s * 1e9)
        self.start_ns = time.time_ns() - self._history_ns if start_ns is None else start_ns
        self._speed = speed
        self._monotonic_ns = monotonic_ns
        self._began_ns = monotonic_ns() - int(self._history_ns / speed)

    def target_ns(self) -> int:
        """Simulated time since the first moment, ns."""
        return int((self._monotonic_ns() - self._began_ns) * self._speed)

    def until_s(self, position_ns: int) -> float:
        """Wall seconds until position_ns is due; below 0 when it is overdue."""
        return (position_ns - self.target_ns()) / self._speed / 1e9

    def forgive(self, position_ns: int) -> None:
        """Let wall time lost to a slow machine or a suspended terminal be lost, not caught up with.

        position_ns is how far the source has come; what it owes of the history is always caught up with.
        """
        if position_ns < self._history_ns:
            return
        behind_ns = int((self.target_ns() - position_ns) / self._speed)
        self._began_ns += max(0, behind_ns - _FARTHEST_BEHIND_NS)
