"""What is wrong with the window that is shown, asked of the rules in a thread, and what was decided about it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fusetui.analysis.snapshot import Snapshot
from fusetui.app.decisions import Decision, Decisions
from fusetui.app.worker import Worker
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.text import safe_text

if TYPE_CHECKING:  # the first frame must not wait for the rules
    from fusetui.analysis.attribution.causes import Causes
    from fusetui.analysis.planned import GroupRow
    from fusetui.triage.finding import Finding, Triage
    from fusetui.triage.owners import Owners


MAX_SHARE: Final = 0.02
"""Most of a core that the rules may take in the long run: with hundreds of counters they are asked less often."""


@dataclass(frozen=True, slots=True)
class TriageRequest:
    """A snapshot, what the twin says of it, the plan's groups, and a snapshot to compare with."""

    snapshot: Snapshot
    causes: Causes | None = None
    groups: Sequence[GroupRow] = ()
    baseline: Snapshot | None = None


@dataclass(frozen=True, slots=True)
class TriageAnswer:
    """triage: None where the rules failed, `problem` says why (or why nobody is known to own anything).

    rules  how many were asked
    cost_s  CPU time they took
    """

    of: Snapshot
    triage: Triage | None
    rules: int
    problem: str
    took_ms: float
    cost_s: float = 0.0


class TriageWorker(Worker[TriageRequest, TriageAnswer]):
    """Asks every rule. owners: reads who owns what, once."""

    NAME = "fusetui-triage"

    def __init__(self, owners: Callable[[], Owners] | None = None) -> None:
        super().__init__()
        self._load = owners
        self._owners: Owners | None = None
        self._problem = ""

    def answered_by(self, request: TriageRequest, number: int) -> TriageAnswer:
        from fusetui.triage.judge import triage
        from fusetui.triage.rules import all_rules

        self._read_owners()
        began_s, begun_s, rules = time.perf_counter(), time.thread_time(), len(all_rules())
        try:
            found = triage(
                request.snapshot,
                request.causes,
                baseline=request.baseline,
                groups=request.groups,
                owners=self._owners,
            )
        except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
            why = safe_text(f"the rules failed: {type(error).__name__}: {error}", 300)
            return TriageAnswer(request.snapshot, None, rules, why, (time.perf_counter() - began_s) * 1e3)
        cost_s = time.thread_time() - begun_s
        return TriageAnswer(
            request.snapshot, found, rules, self._problem, (time.perf_counter() - began_s) * 1e3, cost_s
        )

    def _read_owners(self) -> None:
        load, self._load = self._load, None
        if load is None:
            return
        try:
            self._owners = load()
        except TelemetryError as error:
            self._problem = safe_text(str(error), 300)


class TriageBoard:
    """The findings of one session. They are asked for when the shown numbers changed, by whoever paints them.

    chosen  `key_of` the finding that is looked at, "" for the first
    """

    def __init__(self, decisions: Decisions, owners: Callable[[], Owners] | None = None) -> None:
        self.decisions = decisions
        self.worker = TriageWorker(owners)
        self.chosen = ""
        self._asked: TriageRequest | None = None
        self._asked_s = float("-inf")

    @property
    def answer(self) -> TriageAnswer | None:
        """The newest."""
        return self.worker.answer

    @property
    def busy(self) -> bool:
        """Whether the rules are being asked."""
        return self.worker.busy

    def state(self) -> tuple[object, ...]:
        """Equal as long as there is nothing new to draw."""
        return self.worker.answered, self.chosen, len(self.decisions.all)

    def look(
        self,
        snapshot: Snapshot | None,
        causes: Causes | None = None,
        groups: Sequence[GroupRow] = (),
        baseline: Snapshot | None = None,
    ) -> None:
        """Findings are shown: see to it that they are of this snapshot."""
        if snapshot is None:
            return
        request = TriageRequest(snapshot, causes, groups, baseline)
        if self._asked is not None and (_same(self._asked, request) or self._soon(self._asked, request)):
            return
        self._asked, self._asked_s = request, time.monotonic()
        self.worker.ask(request)

    def _soon(self, old: TriageRequest, new: TriageRequest) -> bool:
        """Whether only time went on, and less than the rules' cost allows: the next frames come back to it."""
        if self.answer is None or not _goes_on(old, new):
            return False
        return time.monotonic() - self._asked_s < self.answer.cost_s / MAX_SHARE

    def of(self, snapshot: Snapshot | None) -> Triage | None:
        """The newest findings, if they are of rows that this snapshot has too."""
        answer = self.answer
        if answer is None or snapshot is None:
            return None
        of = answer.of
        same = (of.generation, of.filter_text) == (snapshot.generation, snapshot.filter_text)
        overlaps = of.window_start_ns <= snapshot.now_ns and snapshot.window_start_ns <= of.now_ns
        return answer.triage if same and overlaps else None

    def finding(self, snapshot: Snapshot | None) -> Finding | None:
        """The one that is looked at: the chosen one as long as it is there, else the first."""
        triage = self.of(snapshot)
        if triage is None or not triage.findings:
            return None
        return next((one for one in triage.findings if key_of(one) == self.chosen), triage.findings[0])

    def decided(self, finding: Finding) -> Decision | None:
        """The newest decision about a finding."""
        taken = self.decisions.of(finding.id, finding.subject)
        return taken[-1] if taken else None


def key_of(finding: Finding) -> str:
    """What a finding is known by from snapshot to snapshot."""
    return f"{finding.id} {finding.subject}"


def _goes_on(old: TriageRequest, new: TriageRequest) -> bool:
    """Whether the same view moved on with time; a view that stands, another filter or a jump is asked about at once."""
    a, b = old.snapshot, new.snapshot
    moves = b.transport is None or b.transport.playing
    same = (a.header, a.filter_text, a.generation) == (b.header, b.filter_text, b.generation)
    beside = old.causes is new.causes and old.groups is new.groups and old.baseline is new.baseline
    return moves and same and beside


def _same(old: TriageRequest, new: TriageRequest) -> bool:
    """Whether the rules would read the same numbers: a snapshot that is only older is another object."""
    a, b = old.snapshot, new.snapshot
    same = a.latency_series is b.latency_series and a.cohort is b.cohort and a.launch is b.launch
    said = (a.now_ns, a.header, a.filter_text, a.generation) == (b.now_ns, b.header, b.filter_text, b.generation)
    beside = old.causes is new.causes and old.groups is new.groups and old.baseline is new.baseline
    return same and said and beside
