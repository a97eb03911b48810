"""Whether to roll out: throughput, latency and quality together. What is missing is named, and blocks "go"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from fusetui.analysis.fmt import number
from fusetui.analysis.intervals import needed_n
from fusetui.triage.quality import Reading

if TYPE_CHECKING:
    from fusetui.analysis.compare import Comparison
    from fusetui.analysis.compare.moves import Move

Verdict = Literal["go", "no go", "blocked"]
TAIL: Final = (0.95, 0.99)
SLOWER: Final = 0.1
"""A tail that may be slower by more than this, as far as its interval tells, is not judged."""
FEWER: Final = 0.05
"""Throughput that fell by less is as it was: it has no interval."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """The verdict, and why: what speaks against, what is missing, what was judged and holds."""

    verdict: Verdict
    against: tuple[str, ...]
    missing: tuple[str, ...]
    holds: tuple[str, ...]
    quality: tuple[Reading, ...]

    @property
    def sentence(self) -> str:
        """`blocked: missing quality: …`."""
        why = [*self.against, *(f"missing {text}" for text in self.missing)] if self.verdict != "go" else self.holds
        return f"{self.verdict}: {'; '.join(why)}"


def rollout_of(made: Comparison | None, quality: Sequence[Reading] = (), breaches: Sequence[str] = ()) -> Rollout:
    """made: after against before, None: there is no before; breaches: ids of findings that breach an objective."""
    if made is None:
        said = [("missing", "before and after: no baseline was given"), *([] if quality else _quality(()))]
    else:
        said = [*_throughput(made), *_latency(made), *_quality(quality)]
    said += [("against", f"breached: {', '.join(breaches)}")] if breaches else []
    against, missing, holds = (
        tuple(text for kind, text in said if kind == of) for of in ("against", "missing", "holds")
    )
    verdict: Verdict = "no go" if against else "blocked" if missing else "go"
    return Rollout(verdict, against, missing, holds, tuple(quality))


def rollout_plain(rollout: Rollout) -> dict[str, Any]:
    """As JSON has it; `go` is True only where nothing is missing."""
    return {"verdict": rollout.verdict, "go": rollout.verdict == "go", "sentence": rollout.sentence, **asdict(rollout)}


def _throughput(made: Comparison) -> Iterator[tuple[str, str]]:
    total = made.totals.get("rate")
    if made.verdict == "not comparable":
        yield "missing", f"throughput: {made.why}"
    elif total is None or total.ratio is None:
        yield "missing", f"throughput: no {made.latency_of}s a second on both sides"
    else:
        old, new = (number(side.value).strip() for side in (total.before, total.after))
        told = f"throughput: {old} → {new} {made.latency_of}s/s"
        yield ("against" if total.ratio < 1.0 - FEWER else "holds"), told


def _latency(made: Comparison) -> Iterator[tuple[str, str]]:
    if made.verdict == "not comparable":
        yield "missing", f"latency: {made.why}"
        return
    moves = [move for move in made.moves if move.field == "latency"]
    if not moves:
        yield "missing", "latency: none on both sides"
    for move in moves:
        name, ratio = f"latency p{100 * move.q:g}", move.ratio
        if move.moved:
            yield ("against" if move.moved > 0 else "holds"), f"{name} {_change(move)}"
        elif move.q in TAIL and (ratio.why or ratio.low is None or ratio.high is None):
            yield "missing", f"{name}: {(ratio.why or 'no interval').removeprefix(f'p{100 * move.q:g} ')}"
        elif move.q in TAIL and ratio.high is not None and ratio.high > 1.0 + SLOWER:
            yield "missing", f"{name}: {ratio.high - 1.0:+.1%} is not ruled out{_more(move)}"
        elif move.q in TAIL:
            yield "holds", f"{name} {_change(move)}"


def _change(move: Move) -> str:
    ratio = move.ratio
    if ratio.ratio is None or ratio.low is None or ratio.high is None:
        return "moved"
    return f"{ratio.ratio - 1.0:+.1%} ({ratio.low - 1.0:+.1%} … {ratio.high - 1.0:+.1%})"


def _more(move: Move) -> str:
    n, ratio = min(move.ratio.n_before, move.ratio.n_after), move.ratio
    needed = None if ratio.low is None or ratio.high is None else needed_n(n, ratio.low, ratio.high, SLOWER)
    return f", about n ≥ {needed:,} tells" if needed is not None and needed > n else ""


def _quality(readings: Sequence[Reading]) -> Iterator[tuple[str, str]]:
    if not readings:
        yield "missing", "quality: no counter of accuracy, errors or failed requests; give --quality FILE.csv"
    for one in readings:
        name = f"quality {one.name}"
        if one.verdict == "missing":
            side = "before" if one.before is None else "after"
            yield "missing", f"{name}: no reading {side}"
        elif one.verdict == "unclear":
            yield (
                "missing",
                f"{name}: {moved_text(one)}; more than {one.limit:.3g} of it is not ruled out: more readings",
            )
        else:
            yield ("against" if one.verdict == "worse" else "holds"), f"{name} {moved_text(one)}"
    if readings and not any(one.of_answers for one in readings):
        yield "holds", "quality is of requests without an answer only: nothing here judges the answers"


def moved_text(one: Reading) -> str:
    """`0.764 → 0.761, 0.4 % worse (0.1 % better … 0.9 % worse)`."""
    told = f"{_value(one.before)} → {_value(one.after)}"
    if one.worse_by is None:
        return told
    if one.low is None or one.high is None:
        return f"{told}, {_worse(one.worse_by)}"
    return f"{told}, {_worse(one.worse_by)} ({_worse(one.low)} … {_worse(one.high)})"


def _value(value: float | None) -> str:
    return "—" if value is None else f"{value:.4g}"


def _worse(share: float) -> str:
    return "as before" if abs(share) < 5e-5 else f"{abs(share):.2%} {'worse' if share > 0 else 'better'}"
