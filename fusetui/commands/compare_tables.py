"""A comparison as tables and lists of texts, whichever way they are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fusetui.analysis.compare.moves import level_name
from fusetui.analysis.fmt import DASH, count, duration, moment, number, percent

if TYPE_CHECKING:
    from fusetui.analysis.compare import Comparison
    from fusetui.analysis.expression.judge import Outcome
    from fusetui.analysis.expression.measures import Measure
    from fusetui.analysis.expression.observe import Observed
    from fusetui.analysis.intervals import Ratio
    from fusetui.triage.rollout import Rollout

_MOST: Final = 10
_TIMES: Final = 10.0
"""Ratios from here on are told as such."""
_WORDS: Final = {1: "up", -1: "down", 0: "no change seen"}
_UNKNOWN: Final = "not judged"


@dataclass(frozen=True, slots=True)
class Compared:
    """One capture against the baseline.

    outcomes  rules judged, with who owns each; owner: who owns the tail
    reading   what to know of the reading of both
    """

    before: str
    after: str
    made: Comparison
    outcomes: Sequence[tuple[Outcome, str]]
    owner: str
    rollout: Rollout
    reading: Sequence[str]


@dataclass(frozen=True, slots=True)
class Table:
    """The first column is set to the left, the others to the right; foot: lines below it."""

    title: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]
    foot: tuple[str, ...] = ()


def verdict_text(made: Comparison) -> tuple[str, str]:
    """(what was judged and how it came out, why)."""
    of = f"{', '.join(made.judged)} " if made.judged and made.not_judged else ""
    rest = f"; {made.not_judged}" if made.judged and made.not_judged else ""
    return f"{of}{made.verdict.upper()}{rest}", made.why


def alike_text(made: Comparison) -> str:
    """A mix of sizes drowns what each of them shows; "" where sizes are not known."""
    if not made.alike:
        return ""
    one = made.alike[0]
    word = {1: "SLOWER", -1: "FASTER", 0: "NO CHANGE SEEN"}[one.moved]
    return f"like for like: {word}, typical latency {_change(one.ratio)} ({_interval(one.low, one.high)})"


def counted_text(made: Comparison) -> str:
    """What changed in number; "" when nothing did."""
    return f"counted: {'; '.join(made.counted)}" if made.counted else ""


def tables(made: Comparison, rollout: Rollout) -> Iterator[Table]:
    """In the order in which one asks: what moved, for whom, where, of what kernels."""
    rows: list[tuple[str, ...]]
    if made.moves:
        rows = [
            (f"{move.field.replace('_', ' ')} {level_name(move.q)}", *_ratio(move.ratio),
             _UNKNOWN if move.ratio.why else _WORDS[move.moved] if move.moved or not move.ratio.moved else "unclear")
            for move in made.moves
        ]  # fmt: skip
        foot = "intervals: 95 % each; up and down: 95 % for all quantiles of a duration together; unclear: only alone"
        whys = _whys([move.ratio for move in made.moves])
        yield Table("Quantiles", ("", *_HEAD, ""), rows, (foot, *whys))
    known = [(q, ratio) for q, ratio in made.shift if ratio.low is not None]
    if known:
        rows = [(level_name(q), *_ratio(ratio), _WORDS[ratio.moved]) for q, ratio in known]
        yield Table("Latency along its distribution", ("", *_HEAD, ""), rows, ("intervals: 95 % for all together",))
    if made.alike:
        rows = [
            (row.name or "all together", f"{row.n_before:,}, {row.n_after:,}", _change(row.ratio),
             _interval(row.low, row.high), _WORDS[row.moved])
            for row in made.alike[: _MOST + 1]
        ]  # fmt: skip
        foot = "typical latency (geometric mean) of the same kernel and shape, or request; 95 % for all together"
        yield Table("Like for like", ("", "n", "change", "95 % interval", ""), rows, (foot,))
    if made.parts:
        rows = [
            (f"{row.part} ({'mean of all' if row.cohort == 'all' else 'mean from p95 up'})", *_ratio(row.ratio),
             _UNKNOWN if row.ratio.why else _WORDS[row.ratio.moved])
            for row in made.parts
        ]  # fmt: skip
        whys = _whys([row.ratio for row in made.parts])
        yield Table(
            "Where the latency is spent", ("", *_HEAD, ""), rows, ("intervals: 95 % for all parts together", *whys)
        )
    if made.totals:
        rows = [
            (name, _value(t.measure, t.before), _value(t.measure, t.after), _change(t.ratio))
            for name, t in made.totals.items()
        ]
        yield Table("Whole trace", ("", "before", "after", "change"), rows, ("one number each: no intervals",))
    yield from _kernel_tables(made)
    yield from _quality(rollout)


_HEAD: Final = ("before", "after", "change", "95 % interval", "n")


def _whys(ratios: Sequence[Ratio]) -> tuple[str, ...]:
    return tuple(f"{_UNKNOWN}: {why}" for why in dict.fromkeys(ratio.why for ratio in ratios if ratio.why))


def _kernel_tables(made: Comparison) -> Iterator[Table]:
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
        yield Table(f"Kernels, per {per}", head, rows, tuple(foot))
    if len(made.streams) > 1:
        rows = [
            (row.name, *(f"{n:,}" for n in row.executions), duration(row.wait.before).strip(),
             duration(row.wait.after).strip(), _UNKNOWN if row.wait.why else _WORDS[row.wait.moved])
            for row in made.streams[:_MOST]
        ]  # fmt: skip
        whys = _whys([row.wait for row in made.streams[:_MOST]])
        yield Table("Streams", ("", "executions", "after", "p95 wait", "after", ""), rows, whys)


def _quality(rollout: Rollout) -> Iterator[Table]:
    if not rollout.quality:
        return
    rows: list[tuple[str, ...]] = [
        (one.name, _plain(one.before), _plain(one.after), _worse(one.worse_by),
         DASH if one.low is None or one.high is None else f"{one.low:+.2%} … {one.high:+.2%}",
         f"{one.n_before:,}, {one.n_after:,}", one.better, one.verdict)
        for one in rollout.quality
    ]  # fmt: skip
    foot = f"holds: at most {rollout.quality[0].limit:.3g} of the value before worse, as its 95 % interval has it"
    head = ("", "before", "after", "worse by", "95 % interval", "n", "better", "")
    yield Table("Quality", head, rows, (foot,))


def _kernel_word(launches: Ratio, moved: int) -> str:
    if not launches.after:
        return "gone"
    return "new" if not launches.before else _WORDS[moved]


def lists(made: Comparison, reading: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Titles with their lines."""
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
        _interval(ratio.low, ratio.high),
        f"{ratio.n_before:,}, {ratio.n_after:,}",
    )


def _shift(ratio: Ratio) -> str:
    if ratio.shift_low is None or ratio.shift_high is None:
        return DASH
    return f"{_signed(ratio.shift_low)} … {_signed(ratio.shift_high)}"


def _signed(ns: float) -> str:
    return f"{'+' if ns > 0 else '-' if ns < 0 else ''}{duration(abs(ns)).strip()}"


def _interval(low: float | None, high: float | None) -> str:
    return DASH if low is None or high is None else f"{_change(low)} … {_change(high)}"


def _change(ratio: float | None) -> str:
    if ratio is None:
        return DASH
    return f"{ratio - 1:+.1%}" if ratio < _TIMES else f"{number(ratio).strip()}×"


def _worse(share: float | None) -> str:
    return DASH if share is None else f"{share:+.2%}"


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
