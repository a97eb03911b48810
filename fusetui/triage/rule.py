"""A rule: a pure function of measures, with what it reads, its threshold and why, and what its findings always say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fusetui.triage.finding import Bottleneck, Confidence, Fact, Finding, Severity, Slice, Stage, SubjectKind, Topic
from fusetui.triage.measures import Measures
from fusetui.triage.where import joined


@dataclass(frozen=True, slots=True)
class Seen:
    """What a rule saw this time; see `finding.Finding`.

    filter  of the slice, joined to the one in force; from_ns, to_ns: of the slice, None: the window's
    next_action, fix  in place of the rule's
    """

    sentence: str
    severity: Severity
    confidence: Confidence
    confidence_why: str
    evidence: tuple[Fact, ...] = ()
    share: float | None = None
    cause: float | None = None
    subject: str = ""
    filter: str = ""
    from_ns: int | None = None
    to_ns: int | None = None
    since_ns: int | None = None
    contradicts: tuple[str, ...] = ()
    next_action: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    look       what it sees in measures: nothing, or one or more findings; it raises nothing and keeps nothing
    inputs     the measures it reads; threshold: from which value it speaks; why: why that value
    about      what the subjects of its findings are
    others     see `finding.Finding`
    """

    id: str
    look: Callable[[Measures], Iterable[Seen]]
    inputs: tuple[str, ...]
    threshold: str
    why: str
    does_not_prove: tuple[str, ...]
    next_action: str
    bottleneck: Bottleneck | None = None
    topic: Topic = "tail"
    stage: Stage | None = None
    fix: str = ""
    rollback: str = ""
    screen: str = "overview"
    pane: str = ""
    about: SubjectKind = ""

    def findings(self, measures: Measures) -> tuple[Finding, ...]:
        """What it finds."""
        return tuple(self._finding(measures, seen) for seen in self.look(measures))

    def _finding(self, measures: Measures, seen: Seen) -> Finding:
        snapshot = measures.snapshot
        return Finding(
            id=self.id,
            sentence=seen.sentence,
            severity=seen.severity,
            slice=Slice(
                snapshot.window_start_ns if seen.from_ns is None else seen.from_ns,
                snapshot.now_ns if seen.to_ns is None else seen.to_ns,
                joined(snapshot.filter_text, seen.filter),
            ),
            bottleneck=self.bottleneck,
            topic=self.topic,
            subject=seen.subject,
            subject_kind=self.about if seen.subject else "",
            stage=self.stage,
            share=seen.share,
            cause=seen.cause,
            since_ns=seen.since_ns,
            evidence=seen.evidence,
            does_not_prove=self.does_not_prove,
            contradicts=seen.contradicts,
            fix=seen.fix or self.fix,
            rollback=self.rollback,
            next_action=seen.next_action or self.next_action,
            screen=self.screen,
            pane=self.pane,
            confidence=seen.confidence,
            confidence_why=seen.confidence_why,
        )
