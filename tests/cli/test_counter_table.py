"""The counters of the headless summary: brackets, units, order, and nothing of what has ended."""

from __future__ import annotations

from typing import Any

from fusetui.commands.counter_table import counter_lines

S = 10**9


def one(name: str, last: float | None, unit: str = "", device: str = "", age_ns: int | None = 0) -> dict[str, Any]:
    return {"name": name, "device": device, "unit": unit, "last": last, "max": last, "age_ns": age_ns}


def lines(*counters: dict[str, Any]) -> list[str]:
    return [" ".join(line.split()) for line in counter_lines(counters, S // 10)]


def test_a_bracket_is_one_line_with_its_count_and_what_runs_comes_first() -> None:
    assert lines(
        one("ttft mean", 0.2, "s"),
        one("generation tokens", 1234.5, "/s"),
        one("kv cache used", 87.5, "%"),
        one("prefill p99 lo", 0.0, "s"), one("prefill p99 hi", 0.3, "s"), one("prefill n", 1.0),
        one("ttft p95 lo", 0.1, "s"), one("ttft p95 hi", 0.25, "s"),
        one("ttft p99 lo", 0.25, "s"), one("ttft p99 hi", 0.5, "s"), one("ttft n", 1340.0),
        one("requests waiting", 98.0), one("requests running", 12.0),
        one("power", 68.244, "W", "0"), one("device memory used", 5120 * 2.0**20, "B", "0"),
    ) == [
        "counters requests running 12",
        "requests waiting 98",
        "ttft p99 [250 ms, 500 ms], n 1,340",
        "ttft p95 [100 ms, 250 ms], n 1,340",
        "prefill p99 [0, 300 ms], n 1",
        "generation tokens 1.23k/s",
        "kv cache used 87.5 %",
        "ttft mean 200 ms",
        "device memory used [0] 5.37 GB",
        "power [0] 68.2 W",
    ]  # fmt: skip


def test_the_last_bucket_has_no_end_and_an_upper_bound_of_before_is_none() -> None:
    assert lines(one("ttft p99 lo", 30.0, "s"), one("ttft n", 11008.0)) == ["counters ttft p99 ≥ 30.0 s, n 11,008"]
    stale = one("ttft p99 hi", 20.0, "s", age_ns=S)
    assert lines(one("ttft p99 lo", 30.0, "s"), stale, one("ttft n", 5.0)) == ["counters ttft p99 ≥ 30.0 s, n 5"]


def test_a_bracket_that_ended_is_not_shown_and_a_gauge_is() -> None:
    gone = one("ttft p99 lo", 1.0, "s", age_ns=5 * S), one("ttft p99 hi", 2.0, "s", age_ns=5 * S)
    assert lines(*gone, one("ttft n", 0.0), one("power", 5.0, "W", age_ns=9 * S)) == [
        "counters ttft n 0", "power 5.00 W",
    ]  # fmt: skip


def test_servers_are_told_apart_and_absent_values_are_dashes() -> None:
    waiting = one("requests waiting", 1.0, device="a:8000"), one("requests waiting", None, device="b:8000", age_ns=None)
    assert lines(*waiting) == ["counters requests waiting [a:8000] 1", "requests waiting [b:8000] —"]


def test_many_are_cut_with_a_count() -> None:
    shown = lines(*(one(f"c{n:03}", 1.0) for n in range(100)))
    assert len(shown) == 41
    assert shown[-1] == "and 60 more: --json has all"
    assert lines() == []
