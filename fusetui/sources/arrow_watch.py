"""One producer over all its connections: what it said it sent, what came, its clock, and when it was away."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from fusetui.telemetry.offset import ClockOffset
from fusetui.telemetry.stamp import Answer, Stamp

HUNG_S: Final = 5.0
"""A sender says something every second."""
LOST_S: Final = 30.0
_ANSWER_NS: Final = 100_000_000


class Watch:
    """The producer's thread writes, any reads.

    run        the run of a sender the stamps are of; "" for a producer that does not stamp
    offset     its clock against ours
    lost_ns    when it was lost (our clock), None while it is here
    """

    def __init__(self, wall_ns: Callable[[], int] = time.time_ns) -> None:
        self.run = ""
        self.offset = ClockOffset()
        self.lost_ns: int | None = None
        self.final = False
        self._wall_ns = wall_ns
        self._through = -1
        self._base = self._taken = self._sent = self._received = 0
        self._earlier_taken = self._earlier_received = 0
        self._gaps: list[tuple[int, int]] = []
        self._gaps_ns = 0
        self._heard_s = time.monotonic()
        self._busy = False
        self._answered_ns = 0

    def follow(self, old: Watch) -> None:
        """Go on where an earlier connection of the same producer stopped; called before anything is heard."""
        self._gaps, self._gaps_ns = old._gaps, old._gaps_ns
        self._earlier_taken, self._earlier_received = old._earlier_taken, old._earlier_received
        if old.run and old.run == self.run:
            self.offset = old.offset
            self._through, self._base = old._through, old._base
            self._taken, self._sent, self._received = old._taken, old._sent, old._received
        else:
            self._earlier_taken += old._taken - old._base
            self._earlier_received += old._received
        if old.lost_ns is not None:
            gap = (old.lost_ns, self._wall_ns())
            self._gaps = [*self._gaps[-1:], gap]
            self._gaps_ns += gap[1] - gap[0]

    def heard(self, rows: int, raw: bytes) -> Answer | None:
        """A batch of so many rows came, with this stamp; what to answer, if anything."""
        now_ns = self._wall_ns()
        self._heard_s = time.monotonic()
        stamp = Stamp.read(raw) if raw and self.run else None
        if stamp is None:
            self._received += rows
            return None
        if self._through < 0:
            self._through = self._base = stamp.rows - rows
        self._received += rows
        if rows:
            self._through = max(self._through, stamp.rows)
        self._taken, self._sent = max(self._taken, stamp.taken), max(self._sent, stamp.rows)
        self.final = stamp.final
        self.offset.one_way(stamp.sent_ns, now_ns)
        if stamp.echo_ns is not None and stamp.heard_ns is not None:
            self.offset.exchange(stamp.echo_ns, stamp.heard_ns, stamp.sent_ns, now_ns)
        if not stamp.asks or (now_ns - self._answered_ns < _ANSWER_NS and self._answered_ns and not stamp.final):
            return None
        self._answered_ns = now_ns
        return Answer(self._wall_ns(), self._through)

    def waiting(self, busy: bool) -> None:
        """We do not read (`busy`), so silence is our own doing."""
        self._busy = busy
        self._heard_s = time.monotonic()

    def lost(self) -> None:
        """It went without a word."""
        self.lost_ns = self._wall_ns()

    @property
    def stamped(self) -> bool:
        """It says what it sends."""
        return self._through >= 0

    @property
    def silent_s(self) -> float:
        """How long nothing came from a producer that stamps, while we were reading; 0 for others."""
        return 0.0 if self._busy or not self.run else time.monotonic() - self._heard_s

    @property
    def gap(self) -> tuple[int, int] | None:
        """The latest time it was away, from and to, ns."""
        return self._gaps[-1] if self._gaps else None

    @property
    def counts(self) -> tuple[int, int]:
        """Rows announced, and rows that came, in all runs since we listen; (0, rows) without stamps."""
        return self._earlier_taken + self._taken - self._base, self._earlier_received + self._received

    def text(self) -> list[str]:
        """For a person, most important first."""
        said = []
        if self.lost_ns is not None:
            away_s = (self._wall_ns() - self.lost_ns) / 1e9
            said.append(f"since {_clock(self.lost_ns)}, {away_s:.0f} s")
        elif self.gap is not None:
            start, end = self.gap
            more = f", {self._gaps_ns / 1e9:.1f} s in all" if self._gaps_ns > end - start else ""
            said.append(f"gap {_clock(start)} to {_clock(end)}, {(end - start) / 1e9:.1f} s{more}")
        if self.stamped:
            said += self._count_text()
            offset = self.offset.estimate()
            said.append(str(offset) if offset else "clock unknown")
        return said

    def _count_text(self) -> list[str]:
        announced, received = self.counts
        here = self.lost_ns is None and not self.final
        earlier = self._earlier_taken - self._earlier_received
        missing = announced - received if not here else earlier + self._through - self._base - self._received
        if missing > 0:
            return [f"{missing:,} of {announced:,} sent never came"]
        return ["all came" if here else f"all of {received:,} came"]


def _clock(time_ns: int) -> str:
    return time.strftime("%H:%M:%SZ", time.gmtime(time_ns // 10**9))
