"""Alerts: rules that are watched, raised once they were breached for a while and cleared once they held for a while.

    alerts = Alerts(load_alerts().alerts, owners=load_owners())
    for event in alerts.look(batches, header, now_ns):
        log.append(event)
        hooks.submit(event)

An alert without data says so (`AlertState.no_data`); it is then neither raised nor cleared, and what it had waited for
begins anew: nobody knows what happened meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa

from fusetui.analysis.expression.judge import BREACHED, HOLDS, SHORT, Verdict, judge
from fusetui.analysis.expression.rule import Rule
from fusetui.telemetry.header import Header
from fusetui.telemetry.text import safe_text
from fusetui.triage.alert_rows import MAX_ROWS, SNAPSHOT_ROWS, newest_rows
from fusetui.triage.alert_scope import needs_snapshot
from fusetui.triage.alert_text import judged_text
from fusetui.triage.finding import BOTTLENECKS, Finding, Severity, Slice, SubjectKind

if TYPE_CHECKING:
    from fusetui.triage.owners import Owners

Transition = Literal["raised", "cleared"]
_NO_SLICE: Final = Slice(0, 0)
MAX_TEXT: Final = 400


@dataclass(frozen=True, slots=True)
class Hooks:
    """What is told of an event. command: argv, never a shell, () for none; webhook: an address, "" for none."""

    command: tuple[str, ...] = ()
    webhook: str = ""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert of a file.

    rule       what should hold, as in `fusetui check`
    over_ns    how far back it looks; for_ns: breached so long before it is raised; clear_ns: held so long before it is
               cleared
    min_n      items below which a comparison is not enough data
    of_class, subject, subject_kind  what owners.toml knows it by; owner: in place of who that names
    """

    name: str
    rule: Rule
    over_ns: int = 60_000_000_000
    for_ns: int = 10_000_000_000
    clear_ns: int = 30_000_000_000
    severity: Severity = "warn"
    min_n: int = 0
    of_class: str = ""
    subject: str = ""
    subject_kind: SubjectKind = ""
    owner: str = ""
    hooks: Hooks = Hooks()

    @property
    def most_rows(self) -> int:
        """Most rows that a look takes, the newest."""
        costly = any(needs_snapshot(each.measure) for each in self.rule.comparisons())
        return SNAPSHOT_ROWS if costly else MAX_ROWS


@dataclass(frozen=True, slots=True)
class AlertState:
    """How an alert stands.

    verdict      of the newest look; `not enough data` before any
    since_ns     since when the verdict is this one, without a gap; None before any look
    raised_ns    when it was raised, None: it is not
    says         what was observed, or why nothing can be told; one line
    """

    alert: Alert
    verdict: Verdict = SHORT
    since_ns: int | None = None
    raised_ns: int | None = None
    says: str = ""

    @property
    def no_data(self) -> bool:
        """It cannot be told: neither raised nor cleared now."""
        return self.verdict == SHORT


@dataclass(frozen=True, slots=True)
class AlertEvent:
    """An alert was raised or cleared.

    at_ns      when, on the trace's clock; since_ns: the first look at which it was breached (or held again)
    clock      "epoch": times are ns since 1970 UTC; "trace": since the trace began
    says       what was observed, one line
    """

    alert: str
    what: Transition
    at_ns: int
    since_ns: int
    clock: str
    severity: Severity
    owner: str
    rule: str
    says: str
    hooks: Hooks = Hooks()

    def as_dict(self) -> dict[str, Any]:
        """As JSON for logs and hooks; times in ns. What the hooks are is left out."""
        return {
            "alert": self.alert, "what": self.what, "at_ns": self.at_ns, "since_ns": self.since_ns,
            "clock": self.clock, "severity": self.severity, "owner": self.owner, "rule": self.rule, "says": self.says,
        }  # fmt: skip


class Alerts:
    """The alerts of one session, fed by whoever has the rows; one thread looks, any may read `states`.

    owners  who owns what, None: nobody but whom the alerts name
    states  how each stands, in the order of the file
    """

    def __init__(self, alerts: Sequence[Alert], owners: Owners | None = None) -> None:
        self._owners = owners
        self.states: tuple[AlertState, ...] = tuple(AlertState(alert) for alert in alerts)

    @property
    def needs_ns(self) -> int:
        """How far back rows are looked at."""
        return max((state.alert.over_ns for state in self.states), default=0)

    def reset(self) -> None:
        """Time has jumped: nothing is raised, and nothing has been waited for."""
        self.states = tuple(AlertState(state.alert) for state in self.states)

    def look(self, batches: Sequence[pa.RecordBatch], header: Header, now_ns: int) -> list[AlertEvent]:
        """Judge every alert over its time up to now_ns; what was raised or cleared by that, in the order of the file.

        batches  canonical, oldest first, at least those of the last `needs_ns`; older rows are left out
        now_ns   the source's present on the trace's clock, never less than at the last look (`reset` before that)
        """
        rows = {
            (over, most): newest_rows(batches, header, now_ns, over, most)
            for over, most in {(state.alert.over_ns, state.alert.most_rows) for state in self.states}
        }
        states, events = [], []
        for state in self.states:
            alert, scope = state.alert, rows[state.alert.over_ns, state.alert.most_rows].scope
            outcome = judge(alert.rule, lambda c, of=scope: of(c.where).observe(c.measure), alert.min_n)  # type: ignore[misc]
            after = step(state, outcome.verdict, now_ns, judged_text(outcome))
            states.append(after)
            if (after.raised_ns is None) != (state.raised_ns is None):
                events.append(self._event(after, header, now_ns))
        self.states = tuple(states)
        return events

    def _event(self, state: AlertState, header: Header, now_ns: int) -> AlertEvent:
        alert = state.alert
        return AlertEvent(
            alert=alert.name,
            what="cleared" if state.raised_ns is None else "raised",
            at_ns=now_ns,
            since_ns=now_ns if state.since_ns is None else state.since_ns,
            clock=header.clock,
            severity=alert.severity,
            owner=alert.owner or self._owner(alert, header.plans),
            rule=alert.rule.text,
            says=state.says,
            hooks=alert.hooks,
        )

    def _owner(self, alert: Alert, plans: Mapping[str, str]) -> str:
        if self._owners is None:
            return ""
        return self._owners.owned(_as_finding(alert), tuple(plans)).owner


def step(state: AlertState, verdict: Verdict, now_ns: int, says: str = "") -> AlertState:
    """The state after another verdict at now_ns; `raised_ns` tells whether it was raised or cleared."""
    since = state.since_ns if state.verdict == verdict and state.since_ns is not None else now_ns
    raised = state.raised_ns
    if verdict == BREACHED and raised is None and now_ns - since >= state.alert.for_ns:
        raised = now_ns
    elif verdict == HOLDS and raised is not None and now_ns - since >= state.alert.clear_ns:
        raised = None
    return replace(state, verdict=verdict, since_ns=since, raised_ns=raised, says=safe_text(says, MAX_TEXT))


def _as_finding(alert: Alert) -> Finding:
    """What owners.toml judges: an alert has the class and subject that its file gives it."""
    named = next((name for name in BOTTLENECKS if name == alert.of_class), None)
    found = Finding(
        id=f"alert/{alert.name}", sentence=alert.rule.text, severity=alert.severity, slice=_NO_SLICE, bottleneck=named,
        subject=alert.subject, subject_kind=alert.subject_kind,
    )  # fmt: skip
    if named is None and alert.of_class:
        return replace(found, topic=alert.of_class)  # type: ignore[arg-type]
    return found
