"""The evidence matrix: what each kind of evidence tells, what it does not prove, whether this trace has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fusetui.analysis.snapshot import Snapshot
from fusetui.triage.counters import counters
from fusetui.triage.finding import EvidenceRow, Presence
from fusetui.triage.measures import Measures
from fusetui.triage.text import many, pct

FULL: Final = 0.95
PACK: Final = 100


def evidence_matrix(measures: Measures) -> tuple[EvidenceRow, ...]:
    """Five kinds, always all of them, in the order in which they are asked for."""
    return (_timeline(measures), _traffic(measures), _aligned(measures), _power(measures), _pack(measures))


def _presence(coverage: float | None) -> Presence:
    if not coverage:
        return "none"
    return "full" if coverage >= FULL else "partial"


def _share(snapshot: Snapshot, column: str, of: int) -> float:
    """Share of `of` rows that carry a column; more rows than that carry those that others share."""
    seen: Mapping[str, int] = snapshot.columns_seen
    return min(seen.get(column, 0) / of, 1.0) if of else 0.0


def _timeline(m: Measures) -> EvidenceRow:
    snapshot = m.snapshot
    joined = snapshot.launch.joined / snapshot.executions if snapshot.executions else 0.0
    placed = min(_share(snapshot, "core", snapshot.executions) or _share(snapshot, "device", snapshot.executions), 1.0)
    occupancy = bool(counters(snapshot, "occupancy"))
    coverage = min(joined, placed)
    missing = [
        text
        for lacks, text in (
            (not snapshot.executions, "no executions"),
            (bool(snapshot.executions) and joined < FULL, f"enqueue times of {pct(joined)}"),
            (bool(snapshot.executions) and placed < FULL, f"a core or device of {pct(placed)}"),
            (not occupancy, "no occupancy counter"),
        )
        if lacks
    ]
    return EvidenceRow(
        "occupancy and timeline",
        "when work waited, ran and stood still, where, and on which stream",
        "why a kernel took as long as it did; a busy core may be doing nothing useful",
        "partial" if coverage >= FULL and not occupancy else _presence(coverage),
        coverage,
        "; ".join(missing) or f"{many(snapshot.executions)} executions with wait, core and occupancy",
        "record launches together with device work" if coverage < FULL else "sample occupancy beside the timeline"
        if not occupancy else "open the slowest items as a timeline",
    )  # fmt: skip


def _traffic(m: Measures) -> EvidenceRow:
    snapshot = m.snapshot
    dram = _share(snapshot, "dram_bytes", snapshot.executions)
    sram = _share(snapshot, "sram_bytes", snapshot.executions)
    read = [*counters(snapshot, "dram"), *counters(snapshot, "onchip"), *counters(snapshot, "burst")]
    rate = [row for row in snapshot.counter_rows if "dram" in row.name.lower() or "hbm" in row.name.lower()]
    devices = len(read) + len(rate)
    have = f"traffic of {pct(dram)} of executions, on chip {pct(sram)}; {devices} bandwidth counters"
    coverage = (dram + sram) / 2
    return EvidenceRow(
        "cache, SRAM and bandwidth",
        "whether a group moves more than it must, and how near the device is to its bandwidth",
        "that latency depends on it; modelled traffic proves nothing of the device",
        "partial" if not coverage and devices else _presence(coverage),
        coverage,
        have if dram or sram or devices else "no traffic per execution and no bandwidth counter",
        "profile the slowest group's memory counters" if coverage < FULL else "put the groups on the roofline",
    )


def _aligned(m: Measures) -> EvidenceRow:
    snapshot = m.snapshot
    ran = snapshot.rows_by_slot > 0
    device = [row for row in snapshot.counter_rows if row.device]
    covered = [float((row.by_slot[ran] == row.by_slot[ran]).mean()) for row in device] if ran.any() else []
    coverage = max(covered, default=0.0)
    errors = snapshot.launch.clock_errors
    have = (
        f"{len(device)} device counters, in {pct(coverage)} of the slots with work" if device else "no device counter"
    )
    presence = _presence(coverage)
    return EvidenceRow(
        "counter-profile alignment",
        "whether a counter moves in the moments in which the tail is made",
        "which kernel moved it: a counter is of the device, and is read far less often than kernels run",
        "partial" if presence == "full" and errors else presence,
        coverage,
        f"{have}; {many(errors)} clock errors" if errors else have,
        "record device counters on the same clock" if presence != "full" else "compare slow slots with calm ones",
    )


def _power(m: Measures) -> EvidenceRow:
    snapshot = m.snapshot
    kinds = [what for what in ("clock", "power", "temperature") if counters(snapshot, what)]
    coverage = len(kinds) / 3
    return EvidenceRow(
        "thermal and power",
        "whether the device slowed its clock, and whether power or heat was why",
        "that kernels are as fast as before at the same clock",
        _presence(coverage),
        coverage,
        f"counters of {', '.join(kinds)}" if kinds else "no counter of clock, power or temperature",
        "record clock, power and temperature beside the work"
        if coverage < 1
        else "compare kernel times at equal clocks",
    )


def _pack(m: Measures) -> EvidenceRow:
    base = m.baseline
    if base is None:
        coverage, have = 0.0, "no baseline"
    else:
        coverage = min(1.0, min(base.latency.n, m.snapshot.latency.n) / PACK)
        have = f"{many(base.latency.n)} items before, {many(m.snapshot.latency.n)} after"
    return EvidenceRow(
        "before/after scenario pack",
        "whether it got better or worse, and for which streams and shapes",
        "what changed: load, shapes and clocks change between runs too",
        _presence(coverage),
        coverage,
        have,
        "compare with a capture of the last good build" if base is None else "compare within one shape and stream",
    )
