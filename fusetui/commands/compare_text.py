"""A comparison as text of at most 120 columns and as Markdown: the same tables, drawn twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Final

from fusetui.commands.compare_tables import Compared, Table, alike_text, counted_text, lists, tables, verdict_text
from fusetui.commands.verdicts import told, verdict_lines

WIDTH: Final = 120
_NARROW: Final = 12
"""No first column is cut to less."""


def text(one: Compared) -> Iterator[str]:
    """For a terminal."""
    yield from _wrapped(f"{one.before} → {one.after}")
    verdict, why = verdict_text(one.made)
    yield from _wrapped(f"latency of {one.made.latency_of}s: {verdict}{f' ({why})' if why else ''}")
    for line in filter(None, (alike_text(one.made), counted_text(one.made))):
        yield from _wrapped(line)
    if one.made.verdict in ("slower", "mixed"):
        yield from _wrapped(f"owner: {one.owner}")
    yield from _wrapped(f"rollout: {one.rollout.verdict.upper()}{one.rollout.sentence[len(one.rollout.verdict) :]}")
    if one.outcomes:
        yield ""
        yield "GUARDRAILS"
        for line in verdict_lines([("", outcome) for outcome, _ in one.outcomes], [owner for _, owner in one.outcomes]):
            yield from _wrapped(line, 18)
    for table in tables(one.made, one.rollout):
        yield ""
        yield table.title.upper()
        yield from _drawn(table)
        for line in table.foot:
            yield from _wrapped(line)
    for label, lines in lists(one.made, one.reading):
        yield ""
        yield label.upper()
        for line in lines:
            yield from _wrapped(f"- {line}")
    yield ""


def _drawn(table: Table) -> Iterator[str]:
    rows = [table.head, *table.rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(table.head))]
    over = sum(widths) + 2 * (len(widths) - 1) - WIDTH
    widths[0] = max(widths[0] - max(over, 0), min(_NARROW, widths[0]))
    for row in rows:
        cells = [_cut(row[0], widths[0]).ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        yield "  ".join(cells).rstrip()


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _wrapped(line: str, indent: int = 2) -> Sequence[str]:
    """As many lines as it takes; those after the first are indented."""
    return wrap(line, WIDTH, subsequent_indent=" " * indent, drop_whitespace=True, replace_whitespace=False) or [""]


def markdown(one: Compared) -> Iterator[str]:
    """For an issue."""
    yield f"## {_cell(one.before)} → {_cell(one.after)}"
    yield ""
    verdict, why = verdict_text(one.made)
    yield f"Latency of {one.made.latency_of}s: **{_cell(verdict)}**{f' ({_cell(why)})' if why else ''}"
    for line in filter(None, (alike_text(one.made), counted_text(one.made))):
        yield from ("", _cell(line))
    yield ""
    yield f"Rollout: **{one.rollout.verdict}**{_cell(one.rollout.sentence[len(one.rollout.verdict) :])}"
    if one.made.verdict in ("slower", "mixed"):
        yield ""
        yield f"Owner: {_cell(one.owner)}"
    guarded: list[tuple[str, ...]] = [
        (
            outcome.rule.text,
            outcome.verdict,
            "; ".join(told(part) for part in outcome.parts),
            owner * (outcome.verdict != "holds"),
        )
        for outcome, owner in one.outcomes
    ]
    rules = [Table("Guardrails", ("rule", "verdict", "observed", "owner"), guarded)] if guarded else []
    for table in (*rules, *tables(one.made, one.rollout)):
        yield from ("", f"### {table.title}", "")
        yield "| " + " | ".join(_cell(cell) for cell in table.head) + " |"
        yield "| --- |" + " ---: |" * (len(table.head) - 1)
        for row in table.rows:
            yield "| " + " | ".join(_cell(cell) for cell in row) + " |"
        if table.foot:
            yield ""
            yield from (_cell(line) for line in table.foot)
    for label, lines in lists(one.made, one.reading):
        yield from ("", f"### {label}", "")
        yield from (f"- {_cell(line)}" for line in lines)
    yield ""


def _cell(line: str) -> str:
    for mark in "\\|`*_<>[]":
        line = line.replace(mark, "\\" + mark)
    return line
