"""What line two says at a tick: the failure, the detour one is on, else the top finding with what changed and since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.moments import Moment, since_of, standing
from fusetui.app.verdict import Verdict, in_trouble, verdict
from fusetui.telemetry.text import safe_text

if TYPE_CHECKING:
    from fusetui.analysis.attribution.causes import Causes
    from fusetui.triage.finding import Triage


class LineTwo:
    """Keeps the sentence as long as what it is made of stays the same."""

    def __init__(self) -> None:
        self._of: tuple[object, ...] = ()
        self._says = verdict(None)

    def says(
        self,
        judged: Snapshot | None,
        triage: Triage | None,
        causes: Causes | None,
        moments: Sequence[Moment] = (),
    ) -> Verdict:
        """The verdict on a window; causes: what the twin said of it; moments: changes and alerts."""
        of = (judged, triage, causes, moments)
        if len(self._of) != len(of) or any(a is not b for a, b in zip(self._of, of, strict=True)):
            self._of = of
            self._says = with_moments(verdict(judged, triage, causes), judged, moments)
        return self._says


def failure(why: str) -> Verdict:
    """Reading ended, and not because the source did."""
    return Verdict("breach", f"reading stopped: {safe_text(why, 300)}")


def with_moments(says: Verdict, judged: Snapshot | None, moments: Sequence[Moment]) -> Verdict:
    """The verdict with the first bad moment of what changed, and the alerts that are raised."""
    if judged is None or in_trouble(judged):
        return says
    bad = standing(moments, judged)
    clock = judged.header.clock
    changes = [since_of(one, clock) for one in bad if one.kind == "change"]
    alerts = [
        f"alert {one.of} since {fmt.moment(one.at_ns, 3600e9, clock).strip()}" for one in bad if one.kind == "alert"
    ]
    if not changes and not alerts:
        return says
    severity = "warn" if says.severity in ("ok", "calm", "unknown") else says.severity
    # A finding is the answer, and a missed objective the news; without them what changed is, and what somebody asked
    # to be told.
    breach = says.severity == "breach"
    told = [says.text, *changes] if breach or says.finding is not None else [*changes, says.text]
    told = [*told, *alerts] if breach else [*alerts, *told]
    return replace(says, severity=severity, text="; ".join(told))
