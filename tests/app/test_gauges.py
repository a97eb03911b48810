"""Counters read as brackets, stale ones told, and an overview for sources that send nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_feed import FakeFeed
from fake_snapshot import bare_snapshot
from shell_app import make_app
from test_shell_screens import screen_text, settle

from fusetui.analysis.counters_stale import stale_of
from fusetui.analysis.snapshot import CounterRow, Snapshot
from fusetui.app.gauges import in_words, latest, only_counters, readings
from fusetui.app.verdict import verdict

SLOTS = 60


def row(name: str, value: float, unit: str = "", *, until: int = SLOTS, every: int = 5, device: str = "") -> CounterRow:
    """Read in every `every`-th slot up to `until`."""
    by_slot = np.full(SLOTS, np.nan)
    by_slot[4:until:every] = value
    return CounterRow(name, device, unit, value, value, by_slot)


ENGINE = (
    row("e2e n", 340.0),
    row("e2e p50 hi", 0.5, "s"),
    row("e2e p50 lo", 0.25, "s"),
    row("e2e p99 hi", 10.0, "s", until=40),
    row("e2e p99 lo", 10.0, "s"),
    row("generation tokens", 740.0, "/s"),
    row("kv cache used", 43.0, "%"),
    row("requests running", 12.0),
    row("requests waiting", 3.0),
    row("ttft p99 hi", 0.25, "s"),
    row("ttft p99 lo", 0.0, "s"),
)


def counted(*rows: CounterRow) -> Snapshot:
    """With what has ended told, as in a window."""
    ended = stale_of([(one.name, one.device) for one in rows], np.isfinite([one.by_slot for one in rows])).tolist()
    told = tuple(replace(one, stale=stale) for one, stale in zip(rows, ended, strict=True))
    return replace(bare_snapshot(), counter_rows=told, counters=len(rows) * 12)


def test_what_one_asks_first_comes_first_and_bounds_are_one_line() -> None:
    told = [(one.name, one.text, one.n) for one in readings(counted(*ENGINE))]
    assert told == [
        ("requests running", "12", None),
        ("requests waiting", "3", None),
        ("e2e p99", "≥ 10.0 s", 340.0),
        ("ttft p99", "[0, 250 ms]", None),
        ("e2e p50", "[250 ms, 500 ms]", 340.0),
        ("generation tokens", "740 /s", None),
        ("kv cache used", "43.0 %", None),
    ]


def test_line_two_says_what_counters_alone_tell() -> None:
    shown = counted(*ENGINE)
    assert only_counters(shown)
    assert in_words(shown) == "counters only: 12 running, 3 waiting; e2e p99 ≥ 10.0 s, n 340"
    assert verdict(shown).text.startswith("counters only: 12 running, 3 waiting; e2e p99 ≥ 10.0 s, n 340")
    device = counted(row("gpu busy", 93.0, "%", device="0"), row("power", 310.0, "W", device="0"))
    assert in_words(device) == "counters only: gpu busy 0 93.0 %; power 0 310 W"
    assert not only_counters(bare_snapshot())


def test_what_waits_is_not_told_from_a_stale_counter() -> None:
    rows = (row("requests waiting", 3.0, until=20), row("requests running", 1.0))
    assert latest(counted(*rows), ("requests waiting",)) is None
    assert latest(counted(*rows), ("requests running",)) == 1.0


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
async def test_the_overview_of_counters_alone(tmp_path: Path, size: tuple[int, int]) -> None:
    app = make_app(FakeFeed(counted(*ENGINE)), tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        text = screen_text(app)
        assert "In flight, brackets and rates" in text
        assert "[0, 250 ms]" in text
        assert "Tail latency" not in text
        lines = text.split("\n")
        assert "waiting" in lines[2] + lines[3]
        assert "p99 ≥ 10.0 s" in "".join(lines[2:5])


async def test_a_stale_counter_is_told_in_the_counters_pane(tmp_path: Path) -> None:
    app = make_app(FakeFeed(counted(*ENGINE)), tmp_path)
    async with app.run_test(size=(200, 60)) as pilot:
        await settle(pilot)
        (line,) = [line for line in screen_text(app).split("\n") if "e2e p99 hi" in line]
        assert "— stale" in line
