"""When to paint: a terminal that reads slowly is painted less often, never waited for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

MAX_BACKLOG: Final = 1
SKIPS_BEFORE_SLOWING: Final = 3
RESTORE_AFTER_S: Final = 10.0
SLOWEST_HZ: Final = 0.5
MAX_FORCED_BACKLOG: Final = 8


@dataclass(slots=True)
class Pacer:
    """Decides frame by frame. Feed it every tick of a timer that runs at `wanted_hz`.

    wanted_hz  what the user asked for; hz: what is painted now
    skipped    frames not painted because earlier ones had not left yet
    """

    wanted_hz: float
    hz: float = field(init=False)
    skipped: int = 0
    _in_a_row: int = 0
    _last_frame_s: float = float("-inf")
    _last_skip_s: float = float("-inf")

    def __post_init__(self) -> None:
        self.hz = self.wanted_hz

    def due(self, backlog: int, now_s: float) -> bool:
        """Whether to paint now. backlog: writes the terminal has not taken yet; now_s: monotonic seconds."""
        if backlog > MAX_BACKLOG:
            self._skip(now_s)
            return False
        self._in_a_row = 0
        if self.hz < self.wanted_hz and now_s - self._last_skip_s >= RESTORE_AFTER_S:
            self.hz = self.wanted_hz
        # Half a timer period of slack, or jitter would drop every other frame at full rate.
        if now_s - self._last_frame_s < 1 / self.hz - 0.5 / self.wanted_hz:
            return False
        self._last_frame_s = now_s
        return True

    def _skip(self, now_s: float) -> None:
        self.skipped += 1
        self._in_a_row += 1
        self._last_skip_s = now_s
        if self._in_a_row >= SKIPS_BEFORE_SLOWING:
            self._in_a_row = 0
            self.hz = min(self.hz, max(SLOWEST_HZ, self.hz / 2))


@dataclass(slots=True)
class SelfCost:
    """What fusetui itself costs, over the last seconds: share of one core, and bytes a second to the terminal."""

    cpu: float | None = None
    bytes_per_s: float | None = None
    _wall_s: float | None = None
    _cpu_s: float = 0.0
    _bytes: int = 0

    def update(self, wall_s: float, cpu_s: float, bytes_written: int) -> None:
        """Feed readings that only grow; the figures change once two seconds have passed."""
        if self._wall_s is None:
            self._wall_s, self._cpu_s, self._bytes = wall_s, cpu_s, bytes_written
            return
        elapsed = wall_s - self._wall_s
        if elapsed < 2:
            return
        self.cpu = (cpu_s - self._cpu_s) / elapsed
        self.bytes_per_s = (bytes_written - self._bytes) / elapsed
        self._wall_s, self._cpu_s, self._bytes = wall_s, cpu_s, bytes_written
