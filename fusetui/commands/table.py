"""A summary as text: what `fusetui snapshot` prints for people."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import TextWrapper
from typing import Any

from fusetui.analysis.fmt import DASH, duration, percent, ratio
from fusetui.commands.counter_table import counter_lines
from fusetui.commands.tail_table import tail_lines

_QUANTILES = ("p50", "p95", "p99", "p999", "max")
_LIST_LINES = 8
_NOTE = TextWrapper(
    120, initial_indent="note         ", subsequent_indent=" " * 13, break_long_words=False, break_on_hyphens=False
)


def summary_lines(summary: dict[str, Any]) -> Iterator[str]:
    """The summary line by line; absent values are dashes, lists are cut with a count of what is left out."""
    health, header = summary["source_health"], summary["header"]
    yield f"source       {header['source']}, {health['state']}, clock {header['clock']}"
    yield f"work         {_n(summary['executions'])} executions, {_n(summary['requests'])} requests"
    if summary["executions"] or summary["requests"] or not summary["counters"]:
        yield from _work(summary)
    yield from counter_lines(summary["counters_by_name"], summary["slot_ns"])
    losses = ", ".join(f"{_n(health[key])} {word}" for key, word in _LOSSES if health[key])
    yield f"losses       {losses or 'none counted'}"
    for note in summary["notes"]:
        yield from _NOTE.wrap(note)


def _work(summary: dict[str, Any]) -> Iterator[str]:
    header = summary["header"]
    yield f"time         span {_ns(summary['span_ns'])}, busy {_ns(summary['busy_ns'])}{_busy_share(summary)}"
    yield from _tails(summary)
    yield from tail_lines(summary["attribution"] or {}, header["clock"])
    yield from _launch(summary["launch"])
    yield from _mapping(summary["mapping"])
    imbalance = summary["imbalance"]
    yield f"imbalance    λ {ratio(imbalance['lambda']).strip()}, Jain {ratio(imbalance['jain']).strip()}"
    yield from _list(
        "streams", summary["streams"], lambda s: f"{_n(s['executions']):>9}  p99 wait {_ns(s['wait']['p99'])}"
    )
    yield from _list("cores", summary["cores"], lambda c: f"{_n(c['executions']):>9}  busy {_ns(c['busy_ns'])}")


_LOSSES = (
    ("dropped_batches", "batches dropped"),
    ("rejected_batches", "batches rejected"),
    ("bad_rows", "rows with impossible times"),
)


def _tails(summary: dict[str, Any]) -> Iterator[str]:
    yield " " * 13 + "".join(f"{q:>10}" for q in _QUANTILES) + f"{'n':>12}"
    latency = summary["latency_ns"]
    rows = (("latency", latency), ("queue wait", summary["queue_wait_ns"]), ("service", summary["service_ns"]))
    for name, tail in rows:
        cells = "".join(f"{_ns(tail[q]):>10}" for q in _QUANTILES)
        yield f"{name:13}{cells}{_n(tail['n']):>12}{'' if tail['exact'] else '  (histogram, ≤ 1.1 % off)'}"
    yield f"{'':13}latency is of {latency['of']}s"


def _launch(launch: dict[str, Any]) -> Iterator[str]:
    yield (
        f"launch       {_n(launch['joined'])} of {_n(launch['total'])} joined, {_n(launch['orphans'])} orphans, "
        f"{_n(launch['nodes'])} graph nodes, {_n(launch['clipped'])} clipped, "
        f"{_n(launch['clock_errors'])} clock errors, {_n(launch['short'])} short"
    )


def _mapping(mapping: dict[str, Any]) -> Iterator[str]:
    if not mapping["buckets"]:
        return
    shares = ", ".join(f"{name} {_share(mapping[name])}" for name in ("planned", "adapted", "fallback"))
    yield f"mapping      {shares}; padding {_times(mapping['padding'])}, accuracy {_share(mapping['accuracy'])}"
    yield (
        f"{'':13}{_n(mapping['compiles'])} recompiles, stall {_ns(mapping['stall_ns'])}; adaptation gain "
        f"{_share(mapping['gain'])}, fallback cost {_ns(mapping['fallback_cost_ns'])}{_drift(mapping['drift'])}"
    )


def _drift(drift: dict[str, Any] | None) -> str:
    return f"; drift {drift['verdict']}, index {drift['index']:.2f}" if drift else ""


def _share(value: float | None) -> str:
    return DASH if value is None else percent(value).strip()


def _times(value: float | None) -> str:
    return DASH if value is None else f"{value:.2f}x"


def _list(title: str, rows: list[dict[str, Any]], tell: Any) -> Iterator[str]:
    for number, row in enumerate(rows[:_LIST_LINES]):
        name = row.get("name", row.get("label"))
        yield f"{title if not number else '':13}{name:24}{tell(row)}"
    if len(rows) > _LIST_LINES:
        yield f"{'':13}and {len(rows) - _LIST_LINES} more"


def _busy_share(summary: dict[str, Any]) -> str:
    span_ns, busy_ns = summary["span_ns"], summary["busy_ns"]
    return f" ({percent(busy_ns / span_ns).strip()})" if span_ns and busy_ns is not None else ""


def _n(value: int | None) -> str:
    return DASH if value is None else f"{value:,}"


def _ns(value: float | None) -> str:
    return duration(value).strip()
