"""Judged rules for people, for JUnit and for GitHub's annotations; and their exit code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree

from fusetui.analysis.expression.judge import BREACHED, HOLDS, SHORT, worst
from fusetui.analysis.fmt import DASH, duration, number, percent, size

if TYPE_CHECKING:
    from fusetui.analysis.expression.judge import Judged, Outcome

EXIT: Final = {HOLDS: 0, BREACHED: 1, SHORT: 4}
Named = tuple[str, "Outcome"]
"""The capture that was judged, and the outcome."""


def exit_code(judged: Sequence[Named]) -> int:
    """0 all hold, 1 one is breached, 4 too few data for one and none breached."""
    return EXIT[worst([outcome.verdict for _, outcome in judged])]


def verdict_lines(judged: Sequence[Named], owners: Sequence[str]) -> Iterator[str]:
    """A line per rule, one per comparison, and whose it is where it does not hold."""
    for (where, outcome), owner in zip(judged, owners, strict=True):
        yield f"{outcome.verdict.upper():16} {outcome.rule.text}{f'   [{where}]' if where else ''}"
        for part in outcome.parts:
            yield f"{'':16} {told(part)}"
        if outcome.verdict != HOLDS:
            yield f"{'':16} owner: {owner}"


def told(part: Judged) -> str:
    """What was observed: `p99(latency) 4.20 ms [3.90 ms, 4.71 ms], n 1,204; note`."""
    seen, measure = part.observed, part.comparison.measure
    value = f"{'≥ ' if seen.at_least else ''}{value_text(part, seen.value)}"
    interval = ""
    if seen.low is not None and seen.high is not None:
        interval = f" [{value_text(part, seen.low)}, {value_text(part, seen.high)}]"
    note = f"; {part.note}" if part.note else ""
    where = "".join(f" where {only.text}" for only in part.comparison.where)
    return f"{measure.name} {value}{interval}, n {seen.n:,}{where}{note}"


def value_text(part: Judged, value: float | None) -> str:
    """In the unit of the measure."""
    measure = part.comparison.measure
    if value is None:
        return DASH
    if measure.change:
        return f"{value:+.1%}"
    if measure.kind == "share":
        return percent(value).strip()
    if measure.kind == "duration":
        return duration(value).strip()
    if measure.kind == "size":
        return size(value).strip()
    return f"{value:,.0f}" if float(value).is_integer() else number(value).strip()


def junit(judged: Sequence[Named], owners: Sequence[str]) -> str:
    """JUnit XML: a test case per rule; not enough data is an error, a breach a failure."""
    verdicts = [outcome.verdict for _, outcome in judged]
    suite = ElementTree.Element(
        "testsuite", name="fusetui", tests=str(len(judged)), failures=str(verdicts.count(BREACHED)),
        errors=str(verdicts.count(SHORT)), skipped="0",
    )  # fmt: skip
    for (where, outcome), owner in zip(judged, owners, strict=True):
        case = ElementTree.SubElement(suite, "testcase", classname=where or "fusetui", name=outcome.rule.text)
        detail = "\n".join([*(told(part) for part in outcome.parts), f"owner: {owner}"])
        if outcome.verdict != HOLDS:
            tag = "failure" if outcome.verdict == BREACHED else "error"
            ElementTree.SubElement(case, tag, message=outcome.verdict).text = detail
        ElementTree.SubElement(case, "system-out").text = detail
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode")


def github(judged: Sequence[Named], owners: Sequence[str]) -> Iterator[str]:
    """GitHub workflow commands: `error` for a breach and for too few data (which is no pass), `notice` for the rest."""
    for (where, outcome), owner in zip(judged, owners, strict=True):
        level = "notice" if outcome.verdict == HOLDS else "error"
        title = _property(f"fusetui: {outcome.verdict}{f' in {where}' if where else ''}")
        lines = [outcome.rule.text, *(told(part) for part in outcome.parts), f"owner: {owner}"]
        yield f"::{level} title={title}::{_data(chr(10).join(lines))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
