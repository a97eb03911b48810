"""How far another machine's clock is from ours, from the stamps that travel with its rows."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final, Literal

_KEPT: Final = 64


@dataclass(frozen=True, slots=True)
class Offset:
    """Their clock minus ours, ns.

    exchange  stamps went both ways: true within +- error_ns, whatever the ways there and back took of it
    bound     one way only: at least so much (a stamp cannot come before it was sent); error_ns is None
    """

    offset_ns: int
    error_ns: int | None
    method: Literal["exchange", "bound"]

    def __str__(self) -> str:
        ms = self.offset_ns / 1e6
        if self.error_ns is not None:
            return f"clock {ms:+.1f} ±{max(0.1, self.error_ns / 1e6):.1f} ms"
        return f"clock at least {ms:.1f} ms ahead" if ms > 0 else "clock unknown (one way)"


class ClockOffset:
    """Estimates from the last 64 samples, so that drift and steps are followed.

    The exchange is that of NTP (RFC 5905, section 8): we say at t1, they hear at t2 and say at t3, we hear at t4;
    offset = ((t2 - t1) + (t3 - t4)) / 2, delay = (t4 - t1) - (t3 - t2), and the truth is within delay / 2 of it.
    A sample's error grows with its age by 15 ppm, for drift. The sample with the least error counts: waiting in
    buffers only ever adds to the delay.
    """

    def __init__(self) -> None:
        self._exchanges: deque[tuple[int, int, int]] = deque(maxlen=_KEPT)
        self._leads: deque[int] = deque(maxlen=_KEPT)
        self._last_said_ns = -1

    def one_way(self, sent_ns: int, received_ns: int) -> None:
        """A stamp sent at `sent_ns` of their clock came at `received_ns` of ours."""
        self._leads.append(sent_ns - received_ns)

    def exchange(self, said_ns: int, heard_ns: int, sent_ns: int, received_ns: int) -> None:
        """We said at said_ns, they heard at heard_ns (theirs) and sent at sent_ns (theirs), we received at received_ns.

        Each `said_ns` counts once; a negative delay (a clock was set in between) does not count.
        """
        delay_ns = (received_ns - said_ns) - (sent_ns - heard_ns)
        if said_ns <= self._last_said_ns or delay_ns < 0:
            return
        self._last_said_ns = said_ns
        offset_ns = ((heard_ns - said_ns) + (sent_ns - received_ns)) // 2
        self._exchanges.append((received_ns, (delay_ns + 1) // 2, offset_ns))

    def estimate(self) -> Offset | None:
        """The best there is; None before any stamp."""
        samples = self._exchanges.copy()
        if samples:
            now_ns = samples[-1][0]
            error_ns, offset_ns = min((half + abs(now_ns - at_ns) * 15 // 10**6, o) for at_ns, half, o in samples)
            return Offset(offset_ns, error_ns, "exchange")
        if self._leads:
            return Offset(max(self._leads.copy()), None, "bound")
        return None
