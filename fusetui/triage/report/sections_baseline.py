"""Before and after: what moved beyond chance, why, what did not, and what cannot be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fusetui.analysis.fmt import DASH
from fusetui.triage.report.blocks import Block, Bullets, Command, Section, Table, Text
from fusetui.triage.report.words import change, ns, of_kind, precise

Told = Mapping[str, Any]
_MOST: Final = 8
_SEEN: Final = {0: "not seen", 1: "up", -1: "down"}


def baseline_section(told: Told) -> Section | None:
    """None without a baseline."""
    made = told["comparison"]
    if made is None:
        return None
    moves = [move for move in made["moves"] if move["ratio"] is not None]
    blocks: list[Block] = [Text(f"Against {made['before']}: {_verdict(made)}.{_alike(made)}{_counted(made)}")]
    if moves:
        head = ("", "before", "after", "change", "95 % interval", "moved")
        blocks.append(Table(head, tuple(_row(move) for move in moves), (1, 2, 3, 4)))
    if said := _without(moves):
        blocks.append(Text(said))
    blocks += [*_sizes(made), *_parts(made), *_kernels(made), *_totals(made)]
    blocks += [Bullets(tuple(made["notes"]))] if made["notes"] else []
    return Section("Before and after", (*blocks, Command(made["command"], "compared.0")))


def _verdict(made: Told) -> str:
    """`p50 no change seen; p95, p99 not judged: needs n ≥ 60, 300, have 24 and 24 (p50 is within …)`."""
    why = f" ({made['why']})" if made["why"] else ""
    if not made["judged"] or not made["not_judged"]:
        return f"{made['verdict']}{why}"
    return f"{', '.join(made['judged'])} {made['verdict']}; {made['not_judged']}{why}"


def _alike(made: Told) -> str:
    """A mix of sizes drowns what each of them shows."""
    if not made["alike"]:
        return ""
    one = made["alike"][0]
    word = "no change seen" if one["low"] <= 1.0 <= one["high"] else "faster" if one["high"] < 1.0 else "slower"
    interval = f"{change(one['low'])} … {change(one['high'])}"
    return f" Like for like: {word}, typical latency {change(one['ratio'])} ({interval})."


def _counted(made: Told) -> str:
    return f" Counted: {'; '.join(made['counted'])}." if made["counted"] else ""


def _without(moves: list[Told]) -> str:
    """A large change without an interval must not read as none."""
    unknown = [f"{m['quantile']} {change(m['ratio'])}" for m in moves if m["of"] == "latency" and m["why"]]
    return f"Of the latency without an interval, so not judged: {', '.join(unknown)}." if unknown else ""


def _row(move: Told) -> tuple[str, ...]:
    known = move["low"] is not None and move["high"] is not None
    interval = f"{change(move['low'])} … {change(move['high'])}" if known else DASH
    moved = "not known" if move["why"] else _SEEN[move["moved"]]
    name = f"{move['of'].replace('_', ' ')} {move['quantile']}"
    return name, ns(move["before"]), ns(move["after"]), change(move["ratio"]), interval, moved


def _sizes(made: Told) -> Iterator[Block]:
    if not made["alike"]:
        return
    rows = tuple(
        (one["name"] or "all together", f"{one['n_before']:,}, {one['n_after']:,}", change(one["ratio"]),
         f"{change(one['low'])} … {change(one['high'])}", _SEEN[(one["low"] > 1.0) - (one["high"] < 1.0)])
        for one in made["alike"][: _MOST + 1]
    )  # fmt: skip
    yield Text("Like for like, the typical latency of the same kernel and shape, or of requests of the same shape:")
    yield Table(("", "n", "change", "95 % interval", "moved"), rows, (1, 2, 3))


def _parts(made: Told) -> Iterator[Block]:
    rows = tuple(
        (f"{one['part']}, {'all' if one['cohort'] == 'all' else 'from p95 up'}", ns(one["ratio"]["before"]),
         ns(one["ratio"]["after"]), _shift(one["ratio"]), _moved(one["ratio"]))
        for one in made["parts"]
    )  # fmt: skip
    if rows:
        yield Text("Where the latency is spent, mean:")
        yield Table(("part", "before", "after", "shift, 95 % interval", "moved"), rows, (1, 2, 3))


def _kernels(made: Told) -> Iterator[Block]:
    shown = made["kernels"][:_MOST]
    if not shown:
        return
    per = shown[0]["per"]
    rows = tuple(
        (one["name"], precise(one["launches"]["before"]), precise(one["launches"]["after"]), ns(one["time"]["before"]),
         ns(one["time"]["after"]), _shift(one["time"]), _kernel_word(one))
        for one in shown
    )  # fmt: skip
    left = len(made["kernels"]) - len(shown)
    more = f", the largest {_MOST} of {len(made['kernels'])}" if left else ""
    yield Text(f"Kernels by how far their time moved, per {per}{more}:")
    head = ("kernel", "launches", "after", "time", "after", "shift, 95 % interval", "")
    yield Table(head, rows, (1, 2, 3, 4, 5))


def _kernel_word(one: Told) -> str:
    if not one["launches"]["after"]:
        return "gone"
    return "new" if not one["launches"]["before"] else _SEEN[one["moved"]]


def _moved(ratio: Told) -> str:
    if ratio["why"] or ratio["shift_low"] is None:
        return "not known"
    return _SEEN[(ratio["shift_low"] > 0) - (ratio["shift_high"] < 0)]


def _shift(ratio: Told) -> str:
    if ratio["shift_low"] is None or ratio["shift_high"] is None:
        return DASH
    return " … ".join(f"{'−' if end < 0 else '+'}{ns(abs(end))}" for end in (ratio["shift_low"], ratio["shift_high"]))


def _totals(made: Told) -> Iterator[Block]:
    rows = tuple(
        (total["measure"], of_kind(total["before"]["value"], total["kind"]),
         of_kind(total["after"]["value"], total["kind"]), change(total["ratio"]))
        for total in made["totals"]
    )  # fmt: skip
    if rows:
        yield Text(f"Whole trace, one number each and so without intervals; rate is of {made['latency_of']}s a second:")
        yield Table(("measure", "before", "after", "change"), rows, (1, 2, 3))
