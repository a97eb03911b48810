"""The replay clock: where in a trace we are, as wall time passes."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction

MIN_SPEED = 0.1
MAX_SPEED = 1000.0


class ReplayClock:
    """Maps monotonic wall time to trace time by rebasing, so that no error builds up over any number of frames.

    Times are integer ns. While playing, position = base + (wall - wall_base) · speed, exactly (the speed is kept
    as a fraction), clamped to [start_ns, end_ns]; the end may move while a capture grows. With `loop` the position
    wraps from the end to the start. Not thread-safe: the owner locks.

    wall_ns  the monotonic clock, replaceable in tests
    """

    def __init__(
        self, start_ns: int, end_ns: int, *, speed: float = 1.0, wall_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._wall_ns = wall_ns
        self.start_ns = start_ns
        self.end_ns = max(start_ns, end_ns)
        self.loop = False
        self.playing = False
        self._speed = Fraction(1)
        self._base_ns = start_ns
        self._wall_base_ns = wall_ns()
        self.set_speed(speed)

    @property
    def speed(self) -> float:
        """Trace seconds per wall second."""
        return float(self._speed)

    @property
    def at_end(self) -> bool:
        """True when nothing is left to play."""
        return self.position_ns() >= self.end_ns and not self.loop

    def position_ns(self) -> int:
        """Where we are, start_ns … end_ns."""
        if not self.playing:
            return self._base_ns
        raw_ns = self._base_ns + int((self._wall_ns() - self._wall_base_ns) * self._speed)
        if raw_ns <= self.end_ns:
            return raw_ns
        span_ns = self.end_ns - self.start_ns
        if self.loop and span_ns > 0:
            return self.start_ns + (raw_ns - self.start_ns) % span_ns
        return self.end_ns

    def laps(self) -> int:
        """How often a looping replay has passed the end since the last rebase."""
        span_ns = self.end_ns - self.start_ns
        if not self.playing or not self.loop or span_ns <= 0:
            return 0
        raw_ns = self._base_ns + int((self._wall_ns() - self._wall_base_ns) * self._speed)
        return max(0, (raw_ns - self.start_ns) // span_ns) if raw_ns > self.end_ns else 0

    def play(self) -> None:
        """Run on; from the end, start again."""
        if self.playing:
            return
        if self._base_ns >= self.end_ns:
            self._base_ns = self.start_ns
        self._wall_base_ns = self._wall_ns()
        self.playing = True

    def pause(self) -> None:
        """Stay where we are."""
        self._rebase(self.position_ns())
        self.playing = False

    def seek(self, position_ns: int) -> None:
        """Jump; clamped to the trace."""
        self._rebase(min(max(position_ns, self.start_ns), self.end_ns))

    def set_speed(self, speed: float) -> None:
        """0.1 … 1000, clamped; NaN is refused with ValueError. The position does not jump."""
        if speed != speed:
            raise ValueError("speed is not a number")
        self._rebase(self.position_ns())
        self._speed = Fraction(min(max(speed, MIN_SPEED), MAX_SPEED)).limit_denominator(1000)

    def extend(self, end_ns: int) -> None:
        """The capture grew. A clock that had stopped at the old end goes on from there, without a jump."""
        if end_ns <= self.end_ns:
            return
        position_ns = self.position_ns()
        self.end_ns = end_ns
        if self.playing and not self.loop:
            self._rebase(position_ns)

    def _rebase(self, position_ns: int) -> None:
        self._base_ns = position_ns
        self._wall_base_ns = self._wall_ns()
