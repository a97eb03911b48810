"""Moments worth jumping to: where the tail changed, where an alert was raised or cleared, and the capture's marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt

if TYPE_CHECKING:
    from fusetui.triage.alert import AlertEvent

BACK: Final = 1.25
"""A tail is back when it is no longer than so many times what it was before."""
Kind = Literal["change", "alert", "mark"]


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """at_ns on the trace's clock; text: what happened, without the time.

    of    what changed ("latency", "queue wait") or whose alert it is; "" of marks
    bad   it got worse, or was raised
    sure  False: flagged, and not confirmed yet
    before_ns, after_ns  p95 of a change
    """

    at_ns: int
    kind: Kind
    text: str
    of: str = ""
    bad: bool = False
    sure: bool = True
    before_ns: float = 0.0
    after_ns: float = 0.0


def change_moment(of: str, at_ns: int, before_ns: float, after_ns: float, *, sure: bool = True) -> Moment:
    """A change of p95, `p95 latency 22.1 → 38.0 ms`."""
    scale, unit = fmt.duration_unit(max(before_ns, after_ns))
    old, new = (fmt.number(value / scale).strip() for value in (before_ns, after_ns))
    return Moment(
        at_ns, "change", f"p95 {of} {old} → {new} {unit}", of, after_ns > before_ns, sure, before_ns, after_ns
    )


def alert_moment(event: AlertEvent) -> Moment:
    """An alert raised or cleared."""
    raised = event.what == "raised"
    return Moment(event.at_ns, "alert", f"alert {event.alert} {event.what}: {event.says}", event.alert, raised)


def since_of(moment: Moment, clock: str) -> str:
    """For line two: `p95 latency 22.1 → 38.0 ms since 03:10:12Z`."""
    open_ = "" if moment.sure else " (flagged, not confirmed yet)"
    return f"{moment.text} since {fmt.moment(moment.at_ns, 3600e9, clock).strip()}{open_}"


def standing(moments: Sequence[Moment], snapshot: Snapshot) -> list[Moment]:
    """What got worse within the window shown and is not back since, longest ago first; one of a kind, the first."""
    open_: dict[tuple[str, str], Moment] = {}
    for moment in sorted(moments):
        if moment.kind == "mark" or moment.at_ns > snapshot.now_ns:
            continue
        key = moment.kind, moment.of
        if moment.bad:
            open_.setdefault(key, moment)
        elif key in open_ and moment.after_ns <= BACK * open_[key].before_ns:
            del open_[key]
    return sorted(one for one in open_.values() if one.at_ns >= snapshot.window_start_ns)


def beside(moments: Iterable[Moment], position_ns: int, direction: int) -> Moment | None:
    """The next (1) or the previous (-1) one from a position."""
    later = [one for one in moments if (one.at_ns - position_ns) * direction > 0]
    return min(later, key=lambda one: (abs(one.at_ns - position_ns), one.kind != "change"), default=None)


def of_marks(snapshot: Snapshot) -> list[Moment]:
    """The marks in the window."""
    return [Moment(mark.at_ns, "mark", mark.name) for mark in snapshot.marks]
