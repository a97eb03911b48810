"""A finding in words: its class, its numbers, in the verdict, and as Markdown for a ticket."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from fusetui.app import fmt
from fusetui.app.palette import Ink

if TYPE_CHECKING:
    from fusetui.analysis.attribution.causes import Causes
    from fusetui.app.decisions import Decision
    from fusetui.app.glyphs import Glyphs
    from fusetui.triage.finding import Fact, Finding, Severity, Slice

_KNOWN: Final[Mapping[str, Callable[[float | None], str]]] = {
    "ns": fmt.duration, "share": fmt.percent, "count": fmt.count, "": fmt.ratio, "B": fmt.size,
}  # fmt: skip
INKS: Final = {"breach": Ink.BREACH, "warn": Ink.WARN, "info": Ink.DIM}


def mark_of(severity: Severity, glyphs: Glyphs) -> str:
    """The glyph that says how bad it is."""
    return {"breach": glyphs.breach, "warn": glyphs.warn}.get(severity, "·")


def class_of(finding: Finding) -> str:
    """The bottleneck it names, else what it is about."""
    return finding.bottleneck or finding.topic


def bare_sentence(finding: Finding) -> str:
    """Its sentence, without the class where that stands before it already."""
    name = class_of(finding)
    return finding.sentence.removeprefix(f"{name}: ").removeprefix(f"{name} on {finding.subject_kind} ")


def share_of(finding: Finding) -> float | None:
    """Share of the tail: of cause where that is known, else of time."""
    return finding.cause if finding.cause is not None else finding.share


def value_text(fact: Fact) -> str:
    """The number behind a finding, in its unit; a dash where it is absent."""
    if fact.value is None:
        return fmt.DASH
    if fact.unit in _KNOWN:
        return _KNOWN[fact.unit](fact.value).strip()
    return f"{fmt.number(fact.value).strip()} {fact.unit}"


def slice_text(part: Slice, clock: str) -> str:
    """The rows that show it: from when to when, and which."""
    span = part.to_ns - part.from_ns
    ends = (fmt.moment(ns, span, clock).strip() for ns in (part.from_ns, part.to_ns))
    return f"{' to '.join(ends)}{', ' if part.filter else ''}{part.filter}"


def by_model(finding: Finding, causes: Causes | None) -> bool:
    """Whether its place is the model's word, not a measured share: the twin named a cause, and this is one."""
    named = causes is not None and bool(causes.p95.named or causes.p99.named)
    return named and finding.bottleneck is not None and finding.cause is not None


def in_verdict(finding: Finding, causes: Causes | None) -> str:
    """`queueing on prefill (41 % of the tail; without it ≈ 39.0 ms), runtime queue`."""
    kind = "" if finding.subject_kind == "stream" else f"{finding.subject_kind} "
    on = f" on {kind}{fmt.clip(finding.subject, 24)}" if finding.subject else ""
    share, without = share_of(finding), _without(finding, causes)
    told = [f"{_rounded(share)} of the tail"] if share is not None else []
    told += [f"without it ≈ {fmt.duration(without).strip()}"] if without is not None else []
    stage = f", {finding.stage}" if finding.stage else ""
    numbers = f" ({'; '.join(told)})" if told else ""
    return f"{class_of(finding)}{on}{numbers}{stage}"


def _rounded(share: float) -> str:
    """Line two has little room: whole percents, where there are some."""
    return f"{round(share * 100)} %" if share >= 0.095 else fmt.percent(share).strip()


def _without(finding: Finding, causes: Causes | None) -> int | None:
    """The slowest quantile if this bottleneck were taken away, by the twin."""
    if causes is None or finding.bottleneck is None:
        return None
    from fusetui.triage.blame import OF_DRIVER  # only once there are causes, the rules are there too

    rows = [row for row in causes.p99.rows if OF_DRIVER.get(row.name) == finding.bottleneck]
    return max(rows, key=lambda row: row.share_ns).without_ns if rows else None


def markdown(finding: Finding, clock: str, decisions: Sequence[Decision] = ()) -> str:
    """The finding for a ticket: what, numbers with columns, what they leave open, what to do, and the rows."""
    share = share_of(finding)
    about = [finding.severity, class_of(finding), finding.stage or "", f"owner {finding.owner or 'nobody'}"]
    about += [f"{fmt.percent(share).strip()} of the tail"] if share is not None else []
    lines = [f"### {_plain(finding.sentence)}", "", " · ".join(_plain(word) for word in about if word), ""]
    if finding.evidence:
        lines += ["| evidence | value | columns |", "|---|---|---|"]
        lines += [
            f"| {_plain(fact.text)} | {_plain(value_text(fact))} | {_plain(', '.join(fact.columns))} |"
            for fact in finding.evidence
        ]
        lines.append("")
    lines += [f"- Does not prove: {_plain(text)}" for text in finding.does_not_prove]
    for label, text in (
        ("Confidence", f"{finding.confidence}: {finding.confidence_why}"),
        ("Next", finding.next_action),
        ("Fix", finding.fix),
        ("Rollback", finding.rollback),
    ):
        lines += [f"- {label}: {_plain(text)}"] if text else []
    rows = slice_text(finding.slice, clock).replace("`", "'")
    lines.append(f"- Rows: `{rows}`")
    lines.append(f"- Rule: `{finding.id}`")
    for one in decisions:
        told = [one.status, one.owner, one.fix and f"fix: {one.fix}", one.rollback and f"rollback: {one.rollback}"]
        told += [one.guardrail and f"guardrail: {one.guardrail}"]
        lines.append(f"- Decided {one.at}: {_plain('; '.join(word for word in told if word))}")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Text of the data that Markdown and HTML leave alone."""
    for mark in "\\`*_[]|<>#":
        text = text.replace(mark, f"\\{mark}")
    return text
