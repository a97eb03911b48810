"""A comparison as text and as Markdown: the same tables, drawn twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fusetui.analysis.compare.plain import level_name
from fusetui.analysis.fmt import DASH, count, duration, moment, number, percent
from fusetui.commands.verdicts import told

if TYPE_CHECKING:
    from fusetui.analysis.compare import Comparison
    from fusetui.analysis.expression.judge import Outcome
    from fusetui.analysis.expression.measures import Measure
    from fusetui.analysis.expression.observe import Observed
    from fusetui.analysis.intervals import Ratio

_MOST: Final = 10
_WORDS: Final = {1: "up", -1: "down", 0: "no change seen"}


@dataclass(frozen=True, slots=True)
class _Table:
    title: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]
    foot: tuple[str, ...] = ()


def text(
    before: str, after: str, made: Comparison, outcomes: Sequence[Outcome], reading: Sequence[str]
) -> Iterator[str]:
    """For a terminal."""
    yield f"{before} → {after}"
    yield f"latency of {made.latency_of}s: {made.verdict.upper()}{f' ({made.why})' if made.why else ''}"
    for table in _tables(made, outcomes):
        yield ""
        yield table.title.upper()
        rows = [table.head, *table.rows]
        widths = [max(len(row[i]) for row in rows) for i in range(len(table.head))]
        for row in rows:
            cells = [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
            yield "  ".join(cells).rstrip()
        yield from table.foot
    for label, lines in _lists(made, reading):
        yield ""
        yield label.upper()
        yield from (f"- {line}" for line in lines)
    yield ""


def markdown(
    before: str, after: str, made: Comparison, outcomes: Sequence[Outcome], reading: Sequence[str]
) -> Iterator[str]:
    """For an issue."""
    yield f"## {_cell(before)} → {_cell(after)}"
    yield ""
    yield f"Latency of {made.latency_of}s: **{made.verdict}**{f' ({_cell(made.why)})' if made.why else ''}"
    for table in _tables(made, outcomes):
        yield ""
        yield f"### {table.title}"
        yield ""
        yield "| " + " | ".join(_cell(cell) for cell in table.head) + " |"
        yield "| --- |" + " ---: |" * (len(table.head) - 1)
        for row in table.rows:
            yield "| " + " | ".join(_cell(cell) for cell in row) + " |"
        if table.foot:
            yield ""
            yield from (_cell(line) for line in table.foot)
    for label, lines in _lists(made, reading):
        yield ""
        yield f"### {label}"
        yield ""
        yield from (f"- {_cell(line)}" for line in lines)
    yield ""


def _cell(line: str) -> str:
    for mark in "\\|`*_<>[]":
        line = line.replace(mark, "\\" + mark)
    return line


def _tables(made: Comparison, outcomes: Sequence[Outcome]) -> Iterator[_Table]:
    rows: list[tuple[str, ...]]
    if outcomes:
        rows = [(o.rule.text, o.verdict, "; ".join(told(part) for part in o.parts)) for o in outcomes]
        yield _Table("Guardrails", ("rule", "verdict", "observed"), rows)
    if made.moves:
        rows = [
            (f"{move.field.replace('_', ' ')} {level_name(move.q)}", *_ratio(move.ratio),
             move.ratio.why or _WORDS[move.moved] if move.moved or not move.ratio.moved else "unclear")
            for move in made.moves
        ]  # fmt: skip
        yield _Table(
            "Quantiles",
            ("", *_HEAD, ""),
            rows,
            ("intervals: 95 % each; up and down: 95 % for all quantiles of a duration together; unclear: only alone",),
        )
    known = [(q, ratio) for q, ratio in made.shift if ratio.low is not None]
    if known:
        rows = [(level_name(q), *_ratio(ratio), _WORDS[ratio.moved]) for q, ratio in known]
        yield _Table("Latency along its distribution", ("", *_HEAD, ""), rows, ("intervals: 95 % for all together",))
    if made.alike:
        rows = [
            (row.name or "all together", f"{row.n_before:,}, {row.n_after:,}", _change(row.ratio),
             f"{row.low - 1:+.1%} … {row.high - 1:+.1%}", _WORDS[row.moved])
            for row in made.alike[: _MOST + 1]
        ]  # fmt: skip
        foot = ("typical latency (geometric mean) at the same size; intervals: 95 % for all sizes together",)
        yield _Table("Like for like", ("", "n", "change", "95 % interval", ""), rows, foot)
    if made.parts:
        rows = [
            (f"{row.part} ({'mean of all' if row.cohort == 'all' else 'mean from p95 up'})", *_ratio(row.ratio),
             row.ratio.why or _WORDS[row.ratio.moved])
            for row in made.parts
        ]  # fmt: skip
        foot = ("intervals: 95 % for all parts together",)
        yield _Table("Where the latency is spent", ("", *_HEAD, ""), rows, foot)
    if made.totals:
        rows = [
            (name, _value(t.measure, t.before), _value(t.measure, t.after), _change(t.ratio))
            for name, t in made.totals.items()
        ]
        yield _Table("Whole trace", ("", "before", "after", "change"), rows, ("one number each: no intervals",))
    yield from _kernel_tables(made)


_HEAD: Final = ("before", "after", "change", "95 % interval", "n")


def _kernel_tables(made: Comparison) -> Iterator[_Table]:
    rows: list[tuple[str, ...]]
    if made.kernels:
        per = made.kernels[0].per
        rows = [
            (row.name, _plain(row.launches.before), _plain(row.launches.after), duration(row.time.before).strip(),
             duration(row.time.after).strip(), _signed(row.shift_ns), _shift(row.time), _change(row.each.ratio),
             _kernel_word(row.launches, row.moved))
            for row in made.kernels[:_MOST]
        ]  # fmt: skip
        head = ("", "launches", "after", f"time/{per}", "after", "shift", "95 % interval", "per launch", "")
        left = len(made.kernels) - len(rows)
        gone = sum(1 for row in made.kernels if not row.launches.after)
        new = sum(1 for row in made.kernels if not row.launches.before)
        foot = [f"{len(made.kernels)} kernel names, {gone} gone, {new} new{f'; {left} more in --json' if left else ''}"]
        yield _Table(f"Kernels, per {per}", head, rows, tuple(foot))
    if len(made.streams) > 1:
        rows = [
            (row.name, *(f"{n:,}" for n in row.executions), duration(row.wait.before).strip(),
             duration(row.wait.after).strip(), row.wait.why or _WORDS[row.wait.moved])
            for row in made.streams[:_MOST]
        ]  # fmt: skip
        yield _Table("Streams", ("", "executions", "after", "p95 wait", "after", ""), rows)


def _kernel_word(launches: Ratio, moved: int) -> str:
    if not launches.after:
        return "gone"
    return "new" if not launches.before else _WORDS[moved]


def _lists(made: Comparison, reading: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    clock = made.clock
    if made.contradictions:
        yield "Contradictions", made.contradictions
    if made.changes:
        yield (
            "Changes within after",
            [
                f"p95 {duration(c.before_ns).strip()} → {duration(c.after_ns).strip()} ({_change(c.ratio)}) at "
                f"{moment(c.at_ns, float(c.within_ns), clock)}, within {duration(c.within_ns).strip()}, p {c.p:.3f}"
                + "".join(f"; beside it: {mark.name}" for mark in c.marks)
                for c in made.changes
            ],
        )
    if made.left is not None:
        span = float(made.left.flagged_ns - made.left.began_ns)
        began, sure = (moment(at, span, clock) for at in (made.left.began_ns, made.left.flagged_ns))
        yield "First bad moment", [f"above the tail of before from {began}, sure at {sure}, windows of {made.left.per}"]
    notes = [*made.notes, *reading]
    notes += [why for why in (made.parts_why, made.changes_why, made.left_why) if why]
    if notes:
        yield "Notes", notes


def _ratio(ratio: Ratio) -> tuple[str, str, str, str, str]:
    return (
        duration(ratio.before).strip(),
        duration(ratio.after).strip(),
        _change(ratio.ratio),
        f"{ratio.low - 1:+.1%} … {ratio.high - 1:+.1%}" if ratio.low is not None and ratio.high is not None else DASH,
        f"{ratio.n_before:,}, {ratio.n_after:,}",
    )


def _shift(ratio: Ratio) -> str:
    if ratio.shift_low is None or ratio.shift_high is None:
        return DASH
    return f"{_signed(ratio.shift_low)} … {_signed(ratio.shift_high)}"


def _signed(ns: float) -> str:
    return f"{'+' if ns > 0 else '-' if ns < 0 else ''}{duration(abs(ns)).strip()}"


def _change(ratio: float | None) -> str:
    return DASH if ratio is None else f"{ratio - 1:+.1%}"


def _plain(value: float | None) -> str:
    return DASH if value is None else f"{value:,.3g}" if value < 1000 else count(value).strip()


def _value(measure: Measure, seen: Observed) -> str:
    if seen.value is None:
        return DASH
    if measure.kind == "number" and float(seen.value).is_integer():
        shown = f"{seen.value:,.0f}"
    else:
        write = duration if measure.kind == "duration" else percent if measure.kind == "share" else number
        shown = write(seen.value).strip()
    return f"≥ {shown}" if seen.at_least else shown
