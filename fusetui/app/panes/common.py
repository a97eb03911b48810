"""What several panes say in the same way."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fusetui.analysis.snapshot import Snapshot, Tail
from fusetui.app import fmt
from fusetui.app.charts.histogram import QuantileMark
from fusetui.app.charts.resample import Floats
from fusetui.app.palette import Ink, stream_ink

QUEUE_TEACHES = (
    "No queue wait: no row in this window says when work was enqueued (column enqueue_ns).\n"
    "PyTorch profiler: record with activities=[CPU, CUDA]. Nsight Systems: trace cuda. "
    "Own producer: send enqueue_ns with each execution."
)
CORES_TEACH = (
    "No execution in this window has a start and an end (columns start_ns, end_ns): nothing is known about cores.\n"
    "Name the core in columns device and core to see their balance."
)


def first_slot(snapshot: Snapshot) -> int:
    """The slot that time axes begin with: a window that fills is shown by halves, so that charts seldom rescale."""
    filled = np.flatnonzero(snapshot.rows_by_slot)
    slots = len(snapshot.rows_by_slot)
    empty = int(filled[0]) if len(filled) else 0
    return next((slots - slots // part for part in (8, 4, 2) if slots - slots // part <= empty), 0)


def shown(snapshot: Snapshot, by_slot: Floats) -> Floats:
    """The part of an array over slots (last axis) that is on the time axis."""
    if by_slot.shape[-1] != len(snapshot.rows_by_slot):
        return by_slot
    return by_slot[..., first_slot(snapshot) :]


def time_span(snapshot: Snapshot) -> tuple[int, int, str]:
    """(start, end, clock) of the time axis under `shown` arrays."""
    slots = snapshot.slot_start_ns
    if not len(slots):
        return snapshot.window_start_ns, snapshot.now_ns, snapshot.header.clock
    first = first_slot(snapshot) if len(slots) == len(snapshot.rows_by_slot) else 0
    return int(slots[first]), int(slots[-1]) + snapshot.slot_ns, snapshot.header.clock


def unit_of(values: Iterable[float | None]) -> tuple[float, str]:
    """The unit that suits the largest of some durations in ns: (ns per unit, name)."""
    known = [v for v in values if v is not None and np.isfinite(v)]
    return fmt.duration_unit(max(known, default=None))


def samples(tail: Tail) -> str:
    """The trust mark of a tail: `n 12.4k`, with `≈` when it comes from histograms."""
    mark = "" if tail.exact else "≈ "
    return f"{mark}n {fmt.count(tail.n).strip()}"


def quantile(tail: Tail, name: str) -> tuple[int | None, bool]:
    """(value in ns, is it a lower bound) of `p50`, `p95`, `p99` or `p999`."""
    values = {"p50": tail.p50_ns, "p95": tail.p95_ns, "p99": tail.p99_ns, "p999": tail.p999_ns}
    return values[name], name in tail.at_least


def quantile_text(tail: Tail, name: str) -> str:
    """8 cells: a bound mark or blank, number, unit."""
    return fmt.bounded(*quantile(tail, name))


def over(value: float | None, limit: float | None) -> bool:
    """Is a limit known and crossed?"""
    return value is not None and limit is not None and value > limit


def histogram_marks(tail: Tail, slo_ns: int | None) -> list[QuantileMark]:
    """Marks of the quantiles that are known and of the objective."""
    marks = [
        QuantileMark(float(value), f"{name} {fmt.duration(value, at_least=bound).strip()}", ink)
        for name, ink in (("p50", Ink.DIM), ("p95", Ink.FG), ("p99", Ink.STRONG))
        for value, bound in (quantile(tail, name),)
        if value
    ]
    if slo_ns:
        marks.append(QuantileMark(float(slo_ns), f"SLO {fmt.duration(slo_ns).strip()}", Ink.WARN))
    return marks


def stream_inks(snapshot: Snapshot) -> dict[str, int]:
    """A colour for every stream that does not depend on the order they come in."""
    return {name: stream_ink(i) for i, name in enumerate(sorted(row.name for row in snapshot.streams))}
