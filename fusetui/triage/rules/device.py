"""What the device was short of: bandwidth, units, on-chip memory, registers; from contention and from counters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from fusetui.analysis.attribution import parts
from fusetui.triage.blame import growth
from fusetui.triage.counters import counters, level
from fusetui.triage.finding import Bottleneck, Fact
from fusetui.triage.measures import NAMED, Measures
from fusetui.triage.rule import Rule, Seen
from fusetui.triage.text import name, num, pct, since, tail_text

FULL: Final = 0.8
ROSE: Final = 1.25
_COUNTER: Final = ("value", "unit", "name")


def _bandwidth(m: Measures) -> Iterator[Seen]:
    blame = m.blamed("DRAM bandwidth")
    if blame.cause < NAMED:
        return
    confidence, why = m.confidence("DRAM bandwidth")
    start = m.since("core placement")
    yield Seen(
        f"work that shares a device slows each other: {pct(blame.cause)} of the tail, {tail_text(m)}{since(m, start)}",
        m.severity("DRAM bandwidth"), confidence, why,
        (Fact("share of the slowest's latency above running alone", blame.time, "share", ("device", "start_ns")),),
        blame.time, blame.cause, since_ns=start,
    )  # fmt: skip


def _burst(m: Measures) -> Iterator[Seen]:
    blame = m.blamed("memory burst")
    named = m.causes is not None and "memory burst" in (m.causes.p95.named, m.causes.p99.named)
    if named and m.causes is not None:
        notes = [note for note in m.causes.notes if "busiest" in note]
        yield Seen(
            f"the plan's traffic comes in bursts: {pct(blame.cause)} of the tail; {tail_text(m)}"
            + (f"; {name(notes[0]) if len(notes[0]) < 48 else notes[0]}" if notes else ""),
            "info" if not m.trouble else "breach" if m.trouble == "breach" else "warn",
            "likely", f"simulated with this plan and with the best known; {m.causes.fit}",
            (Fact("share of the quantile without it", blame.cause, "share", ("dram_bytes", "start_ns", "end_ns")),),
            None, blame.cause,
        )  # fmt: skip
        return
    for series in counters(m.snapshot, "burst"):
        bad, calm = level(series, m.contrast)
        if calm is None or bad < 1 or bad < ROSE * calm or m.blamed("DRAM bandwidth").cause < NAMED:
            continue
        yield Seen(
            f"{name(series.label)} is {num(bad)}× the bandwidth in slow slots, {num(calm)}× in calm ones",
            "warn" if m.trouble else "info", "possible", "the counter rises with the tail; no twin was asked",
            (Fact(f"{name(series.label)}, slow slots", bad, "", _COUNTER),),
            None, m.blamed("DRAM bandwidth").cause, subject=series.label,
        )  # fmt: skip


def _full(what: str, of: Bottleneck, said: str) -> Callable[[Measures], Iterable[Seen]]:
    """Speaks where a share stays full while the tail is made."""

    def look(m: Measures) -> Iterator[Seen]:
        grown = growth(m.snapshot.tail_time, parts.PLANNED) + growth(m.snapshot.tail_time, parts.REST)
        for series in counters(m.snapshot, what):
            if series.row.unit.strip() != "%" and float(series.row.max) > 1.0:
                continue
            bad, calm = level(series, m.contrast)
            if bad < FULL:
                continue
            rose = calm is not None and bad >= ROSE * calm
            named = bool(m.trouble) and grown >= NAMED
            yield Seen(
                f"{said} {pct(bad)} full ({name(series.label)})"
                + (f", {pct(calm)} in calm slots" if calm is not None else ""),
                "warn" if named else "info", "likely" if rose and named else "possible",
                "it fills as the tail grows" if rose else "it is full, but no less so when latency is low",
                (Fact(f"{name(series.label)} while slow", bad, "share", _COUNTER),),
                None, grown if rose else grown / 2, subject=series.label,
            )  # fmt: skip

    return look


def _spill(m: Measures) -> Iterator[Seen]:
    for series in counters(m.snapshot, "spill"):
        if series.row.max <= 0:
            continue
        bad, calm = level(series, m.contrast)
        if bad <= 0:
            continue
        grown = growth(m.snapshot.tail_time, parts.PLANNED) + growth(m.snapshot.tail_time, parts.REST)
        rose = calm is not None and bad >= ROSE * calm
        yield Seen(
            f"registers spill: {name(series.label)} {num(bad)} {name(series.row.unit)} while slow"
            + ("" if calm is None else f", {num(calm)} in calm slots"),
            "warn" if m.trouble and grown >= NAMED and rose else "info", "likely" if rose else "possible",
            "spills go with the slow slots" if rose else "there are spills, no more of them when it is slow",
            (Fact(f"{name(series.label)} while slow", bad, series.row.unit, _COUNTER),),
            None, grown, subject=series.label,
        )  # fmt: skip


def _counter_rule(id: str, what: str, of: Bottleneck, said: str, fix: str, rollback: str) -> Rule:
    return Rule(
        id=id, about="counter", look=_full(what, of, said), inputs=("counter_rows", "tail_time", "latency_series"),
        threshold=f"{FULL:.0%} in the slots of the tail; a warning where service grew by {NAMED:.0%} of the tail too",
        why="sustained rates seldom pass 90 % of the peak; utilisation alone is no trouble",
        does_not_prove=("that latency depends on it: a device can be full and on time",
                        "which kernel: a counter is of the whole device"),
        next_action="see which groups the roofline puts against that limit",
        bottleneck=of, stage="completion", fix=fix, rollback=rollback, screen="fusion", pane="plan_roofline",
    )  # fmt: skip


_PLAN: Final = "restore the plan before"
RULES: Final = (
    Rule(
        id="bandwidth/tail", look=_bandwidth, inputs=("tail_time", "causes"), threshold="cause ≥ 10 % of the tail",
        why="taking less away does not show beside the spread of p99",
        does_not_prove=("that it is bandwidth: caches and clocks are shared as well",),
        next_action="run the slowest shape alone and beside others",
        bottleneck="DRAM bandwidth", stage="core placement", fix="keep heavy streams on different devices",
        rollback="restore the placement", screen="cores", pane="cores_busy",
    ),
    Rule(
        id="burst/plan", about="counter", look=_burst, inputs=("causes", "counter_rows: peak demand"),
        threshold=f"named by the twin; or peaks ≥ 1 and {ROSE}× those of calm slots with ≥ 10 % contention",
        why="only the simulation of another plan tells a burst from load",
        does_not_prove=("that another plan is better: it was simulated, not run",),
        next_action="compare the plan with one that fuses less", bottleneck="memory burst", stage="compile plan",
        fix="plan the longest shapes with the balanced policy", rollback=_PLAN, screen="fusion", pane="plan_policies",
    ),
    Rule(
        id="spill/counter", about="counter", look=_spill, inputs=("counter_rows", "tail_time"),
        threshold=f"spills {ROSE}× those of calm slots", why="some spilling is normal; more of it with the tail is not",
        does_not_prove=("which kernel spills",), next_action="compile the slowest kernel with its register report",
        bottleneck="register/spill", stage="compile plan", fix="a smaller tile, or fewer stages", rollback=_PLAN,
        screen="fusion", pane="plan_groups",
    ),
    _counter_rule("compute/counter", "compute", "compute", "compute units", "a smaller batch for the long shapes",
                  "restore the batch"),
    _counter_rule("bandwidth/counter", "dram", "DRAM bandwidth", "device memory bandwidth",
                  "fuse the groups that move most, within the memory limit", _PLAN),
    _counter_rule("onchip/counter", "onchip", "on-chip bandwidth", "on-chip memory", "another tile or layout", _PLAN),
)  # fmt: skip
