"""What triage hands to screens, reports and exit codes: immutable, texts safe to print, absent is None."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Bottleneck = Literal[
    "launch", "compute", "DRAM bandwidth", "on-chip bandwidth", "register/spill", "memory burst", "queueing",
    "imbalance", "fallback", "batching", "host",
]  # fmt: skip
BOTTLENECKS: Final[tuple[Bottleneck, ...]] = (
    "launch", "compute", "DRAM bandwidth", "on-chip bandwidth", "register/spill", "memory burst", "queueing",
    "imbalance", "fallback", "batching", "host",
)  # fmt: skip
Topic = Literal["tail", "fairness", "device", "source", "contradiction"]
"""What a finding is about that names no bottleneck."""
Severity = Literal["breach", "warn", "info"]
SEVERITIES: Final[tuple[Severity, ...]] = ("breach", "warn", "info")
Confidence = Literal["sure", "likely", "possible"]
"""sure: counted or measured; likely: measured, another reading is left open; possible: one sign of it."""
Stage = Literal["compile plan", "runtime queue", "core placement", "completion"]
SubjectKind = Literal["", "stream", "core", "shape", "counter", "group"]
Presence = Literal["full", "partial", "none"]


@dataclass(frozen=True, slots=True)
class Fact:
    """A number behind a finding.

    text     what it is, e.g. "queue wait p99 of stream prefill"
    value    in `unit`, None: absent or not a number; unit: "ns", "share", "count", "" for a ratio …
    columns  of the contract that it comes from
    """

    text: str
    value: float | None
    unit: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Slice:
    """The rows that show a finding: times in ns on the trace's clock, from_ns inclusive, and a filter of `/`.

    filter  "" for all rows; `analysis.filter.parse_filter` reads it
    """

    from_ns: int
    to_ns: int
    filter: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something an on-call engineer should know.

    id             of the rule, e.g. "queueing/tail"; with `subject` it is known by across snapshots
    subject        what of, "" for all of the trace; subject_kind says what that is: a stream, core, shape, counter
    sentence       one line: what is wrong, since when where that is known, with its numbers
    bottleneck     class, None where it names none; then topic tells what it is about
    stage          of the pipeline; None where it is of no stage
    severity       breach: against an objective or the evidence itself is broken; warn: look; info: good to know
    share          of the latency of the slowest items (0..1): time, None where it cannot be told
    cause          share that is its doing, by the twin, or with the wait behind it: what findings are ranked by
    since_ns       since when, None: unknown, or all the window
    does_not_prove what the evidence leaves open
    contradicts    ids of findings that it speaks against, or that it puts in doubt
    owner          "" as long as no rule of owners.toml fits
    fix, rollback  a bounded change, and how to undo it; next_action: what to look at now
    screen, pane   NAME of the screen and module of the pane to jump to
    confidence     with `confidence_why`
    """

    id: str
    sentence: str
    severity: Severity
    slice: Slice
    bottleneck: Bottleneck | None = None
    topic: Topic = "tail"
    subject: str = ""
    subject_kind: SubjectKind = ""
    stage: Stage | None = None
    share: float | None = None
    cause: float | None = None
    since_ns: int | None = None
    evidence: tuple[Fact, ...] = ()
    does_not_prove: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    owner: str = ""
    fix: str = ""
    rollback: str = ""
    next_action: str = ""
    screen: str = ""
    pane: str = ""
    confidence: Confidence = "likely"
    confidence_why: str = ""


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """One kind of evidence: what it can tell at all, and whether this trace has it.

    coverage  share 0..1 of the rows it needs that carry it, None where that cannot be counted
    have      what is there, or what is missing, in a line
    """

    kind: str
    tells: str
    does_not_prove: str
    presence: Presence
    coverage: float | None
    have: str
    next_action: str


@dataclass(frozen=True, slots=True)
class Triage:
    """All that the rules say of a snapshot.

    findings        ranked: severity, then cause (else share of the tail), then confidence
    matrix          five kinds of evidence, always all of them
    quiet           nothing above info: no findings to act on. Says nothing where `judged` is False
    judged          whether there was enough to judge at all; why_not says what was missing
    """

    findings: tuple[Finding, ...] = ()
    matrix: tuple[EvidenceRow, ...] = ()
    quiet: bool = True
    judged: bool = True
    why_not: str = ""

    @property
    def contradictions(self) -> tuple[Finding, ...]:
        """Those of the findings that are contradictions."""
        return tuple(finding for finding in self.findings if finding.topic == "contradiction")

    @property
    def first(self) -> Finding | None:
        """The bottleneck to look at first, above info; None: none is named."""
        named = (one for one in self.findings if one.bottleneck is not None and one.severity != "info")
        return next(named, None)
