"""Where the tail's time went and what caused it, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fusetui.analysis.fmt import DASH, duration, moment, percent

_LEAST_SHARE = 0.01
_PAD = " " * 13


def tail_lines(attribution: dict[str, Any], clock: str) -> Iterator[str]:
    """The slowest beside the median, part by part, the stage that left its budget first, and causes if asked for."""
    if "cohorts" in attribution:
        yield from _time(attribution)
        yield from _first(attribution, clock)
        for note in attribution["notes"]:
            yield f"{_PAD}{note}"
    if "causes" in attribution:
        yield from _causes(attribution)


def _time(time: dict[str, Any]) -> Iterator[str]:
    name = "p95" if time["cohorts"]["p99"] is None else "p99"
    slowest, median = time["cohorts"][name], time["cohorts"]["median"]
    total = slowest["latency_ns"]
    yield (
        f"tail time    {slowest['n']:,} {time['of']}s from {name} up took {_ns(total)} on average, "
        f"the median {_ns(median['latency_ns'])}"
    )
    for part, ns in sorted(slowest["mean_ns"].items(), key=lambda item: -item[1]):
        if total and ns >= total * _LEAST_SHARE:
            usual = _ns(median["mean_ns"][part])
            yield f"{_PAD}{part:14}{percent(ns / total)}{_ns(ns):>12}{usual:>12} in the median"


def _first(time: dict[str, Any], clock: str) -> Iterator[str]:
    if not time["stages"]:
        return
    budget = "the objective" if time["budget_of"] == "slo" else "what is calm here"
    if time["first_stage"] is None:
        yield f"first stage  none left its budget, by {budget}"
        return
    stage = next(stage for stage in time["stages"] if stage["stage"] == time["first_stage"])
    yield (
        f"first stage  {stage['stage']} left its budget of {_ns(stage['budget_ns'])} (by {budget}) at "
        f"{moment(stage['left_ns'], 60e9, clock).strip()}, at most {_ns(stage['worst_ns'])}"
    )


def _causes(attribution: dict[str, Any]) -> Iterator[str]:
    causes = attribution["causes"]
    if causes["why"]:
        yield f"causes       none told: {causes['why']}"
        return
    runs = f"{causes['runs']} simulations of {causes['n']:,} requests"
    yield f"causes       {causes['fit']}, {runs}; shares in {_unit(causes)}"
    for name in ("p95", "p99"):
        yield from _quantile(name, causes[name], attribution["columns"].get(name, []))
    if causes["left_out"]:
        yield f"{_PAD}next to nothing by {', '.join(causes['left_out'])}"
    for note in causes["notes"]:
        yield f"{_PAD}{note}"


def _quantile(name: str, at: dict[str, Any], columns: list[dict[str, Any]]) -> Iterator[str]:
    named = f"first {at['named']}" if at["named"] else "no driver stands out"
    as_is, without = _ns(at["as_is_ns"]), _ns(at["without_all_ns"])
    yield f"{name:13}≈ {as_is}, {without} without all of these; {named}"
    yield f"{_PAD}{'':14}{'time':>7} │ without it ≈ {name}       share"
    for row in columns or [{**driver, "time_share": None} for driver in at["drivers"]]:
        time = DASH if row["time_share"] is None else percent(row["time_share"]).strip()
        if row["without_ns"] is None and (row["time_share"] or 0) < _LEAST_SHARE:
            continue
        alone, share = _ns(row["without_ns"]), _ns(row["share_ns"])
        yield f"{_PAD}{row['name']:14}{time:>7} │ {alone:>16}{share:>12}"
    for pair in at["together"]:
        yield f"{_PAD}{' × '.join(pair['drivers'])} make each other worse by {_ns(pair['ns'])}"


def _unit(causes: dict[str, Any]) -> str:
    return "time" if causes["scale"] == "ns" else "the logarithm of time"


def _ns(value: float | None) -> str:
    return duration(value).strip()
