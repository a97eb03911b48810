"""An action tried on the requests that came: the same arrivals, sizes and work, with and without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.runtime.outcome import Outcome
from fusetui.accelerator.runtime.simulate import simulate
from fusetui.analysis.retune.action import Action
from fusetui.analysis.twin.model import Tail, Twin, tail_of

State = Literal["verified", "rejected", "unverified", "measured"]

GAIN: Final = 0.05
"""Fall of a quantile from which an action holds; also the rise of a stream's that is told as harm."""
SLACK: Final = 0.03
"""Rise of p95 or p99 that still counts as none: models fit no closer."""
NAMES: Final = ("p50", "p95", "p99")


@dataclass(frozen=True, slots=True)
class Harm:
    """A quantile of a stream ("" of all requests) that rises, ns."""

    stream: str
    quantile: str
    before_ns: int
    after_ns: int


@dataclass(frozen=True, slots=True)
class Proposal:
    """An action with what it did: p50, p95, p99 of latency over all requests before and after, ns.

    state  verified: it gains; rejected: it does not, `reason` says by what figure; unverified: not tried, and why;
           measured: another capture shows it
    """

    action: Action
    state: State
    reason: str
    before_ns: Tail
    after_ns: Tail | None
    harm: tuple[Harm, ...] = ()

    @property
    def change(self) -> tuple[float | None, float | None, float | None]:
        """after / before - 1."""
        return changes(self.before_ns, self.after_ns)

    @property
    def gain(self) -> tuple[float, float]:
        """(largest relative fall of p95 and p99, 0 below GAIN, that of p50): what proposals are put in order by."""
        p50, p95, p99 = self.change
        tail = max((-c for c in (p95, p99) if c is not None), default=0.0)
        return (tail if tail >= GAIN else 0.0), -(p50 or 0.0)


def changes(before: Tail, after: Tail | None) -> tuple[float | None, float | None, float | None]:
    """after / before - 1 of each quantile, None unknown."""
    if after is None:
        return None, None, None
    p50, p95, p99 = (b / a - 1 if a and b is not None else None for a, b in zip(before, after, strict=True))
    return p50, p95, p99


def try_action(twin: Twin, action: Action) -> Proposal:
    """Simulate the twin's requests with the action; the same random numbers in both."""
    before = tail_of(twin.outcome.latency_ns)
    if action.change is None:
        return Proposal(action, "unverified", action.why_not, before, None)
    try:
        outcome = simulate(*action.change(twin.load, twin.config))
    except AcceleratorError as error:
        return Proposal(action, "unverified", str(error), before, None)
    after = tail_of(outcome.latency_ns)
    reason = judge(before, after)
    return Proposal(action, "rejected" if reason else "verified", reason, before, after, _harm(twin, outcome))


def judge(before: Tail, after: Tail) -> str:
    """Why the change does not hold, "" when it does.

    The tail must fall and no quantile of it rise; the median may rise by less than p95 or p99 falls. Or the median
    falls and the tail stays.
    """
    p50, *tail = changes(before, after)
    told = ", ".join(f"{n} {c * 100:+.1f} %" for n, c in zip(NAMES, (p50, *tail), strict=True) if c is not None)
    known = [c for c in tail if c is not None]
    if any(c > SLACK for c in known):
        return f"the tail gets worse: {told}"
    saved = max(
        (b - a for b, a in zip(before[1:], after[1:], strict=True) if b is not None and a is not None), default=0
    )
    rise = (after[0] or 0) - (before[0] or 0)
    if any(c <= -GAIN for c in known):
        return "" if rise < saved or rise <= 0 else f"the median pays more than the tail gains: {told}"
    if p50 is not None and p50 <= -GAIN:
        return ""
    return f"gains less than {GAIN * 100:.0f} %: {told}"


def _harm(twin: Twin, outcome: Outcome) -> tuple[Harm, ...]:
    """Quantiles of all requests, and p95 and p99 of every stream, that rise by GAIN or more."""
    found = []
    streams = [("", np.ones(len(twin.load), np.bool_))]
    if len(twin.load.streams) > 1:
        streams += [(stream.name, twin.load.stream == i) for i, stream in enumerate(twin.load.streams)]
    for name, mine in streams:
        before, after = tail_of(twin.outcome.latency_ns[mine]), tail_of(outcome.latency_ns[mine])
        for quantile, b, a in zip(NAMES, before, after, strict=True):
            if b and a is not None and a / b - 1 >= GAIN:
                found.append(Harm(name, quantile, b, a))
    return tuple(found)
