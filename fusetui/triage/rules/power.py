"""Power and thermal capping: clocks that fall behind a regression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fusetui.triage.counters import Series, counters
from fusetui.triage.finding import Fact
from fusetui.triage.measures import Measures
from fusetui.triage.rule import Rule, Seen
from fusetui.triage.text import name, num, pct

FELL: Final = 0.08
AT_LIMIT: Final = 0.95
HOT: Final = 83.0
LEAST_SLOTS: Final = 4
_COUNTER: Final = ("value", "unit", "name")


def fallen(series: Series) -> tuple[float, float, int] | None:
    """(usual clock, lowest lasting clock, slot from which it is down); None where it did not fall by FELL."""
    known = np.flatnonzero(~np.isnan(series.by_slot))
    values = series.by_slot[known]
    if len(values) < 2 * LEAST_SLOTS:
        return None
    usual = float(np.quantile(values, 0.9, method="lower"))
    low = values < usual * (1 - FELL)
    if low.sum() < LEAST_SLOTS:
        return None
    return usual, float(np.median(values[low])), int(known[np.argmax(low)])


def _capped(m: Measures) -> Iterator[Seen]:
    hot = [one for one in counters(m.snapshot, "temperature") if one.row.max >= HOT]
    for clock in counters(m.snapshot, "clock"):
        found = fallen(clock)
        if found is None:
            continue
        usual, low, at = found
        down = clock.by_slot < usual * (1 - FELL)
        power = next((p for p in counters(m.snapshot, "power") if p.row.device == clock.row.device), None)
        at_limit = power is not None and bool(np.nanmean(power.by_slot[down]) >= AT_LIMIT * power.row.max)
        why = "at the power limit" if at_limit else f"at {num(hot[0].row.max)} °C" if hot else ""
        start = int(m.snapshot.slot_start_ns[at])
        yield Seen(
            f"{name(clock.label)} fell {pct(1 - low / usual)}, from {num(usual)} to {num(low)} {name(clock.row.unit)}"
            + (f", {why}" if why else ", the reason is not in the counters"),
            "warn" if why or m.trouble else "info",
            "likely" if why else "possible",
            "clock and power are read together" if at_limit else "clock and temperature" if hot else "clock alone",
            (
                Fact("usual clock", usual, clock.row.unit, _COUNTER),
                Fact("lasting low", low, clock.row.unit, _COUNTER),
            ),
            subject=clock.label,
            from_ns=start,
            since_ns=start,
        )


def _told(m: Measures) -> Iterator[Seen]:
    for series in counters(m.snapshot, "capped"):
        share = float(np.nanmean(series.by_slot > 0)) if series.row.max > 0 else 0.0
        if share > 0:
            yield Seen(
                f"the device says it is capped: {name(series.label)} in {pct(share)} of the slots", "warn", "sure",
                "the device reports it", (Fact(name(series.label), series.row.max, series.row.unit, _COUNTER),),
                subject=series.label,
            )  # fmt: skip


_LIMITS: Final = ("that kernels got slower by themselves", "that the cap is wrong: it may be set on purpose")
RULES: Final = (
    Rule(
        id="power/clock", about="counter", look=_capped, inputs=("counter_rows: clock, power, temperature",),
        threshold=f"clock {FELL:.0%} under its usual in ≥ {LEAST_SLOTS} slots", why="boost wanders by a few per cent",
        does_not_prove=_LIMITS, next_action="compare kernel times at equal clocks before blaming a kernel",
        topic="device", stage="core placement", fix="lower the load or raise the cap on one device",
        rollback="restore the cap", screen="cores", pane="counters",
    ),
    Rule(
        id="power/reported", about="counter", look=_told, inputs=("counter_rows: throttle reasons",), threshold="any",
        why="a device reports it only when it happens",
        does_not_prove=_LIMITS,
        next_action="see whether clocks fell with it", topic="device", stage="core placement",
        fix="lower the load or raise the cap on one device", rollback="restore the cap",
        screen="cores", pane="counters",
    ),
)  # fmt: skip
