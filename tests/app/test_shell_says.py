"""What the two head lines, the footer and the scrubber say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from fake_snapshot import MS, T0, bare_snapshot, fake_snapshot
from hypothesis import given
from hypothesis import strategies as st

from fusetui.analysis.snapshot import Launch, Tail, TailCohort, TailSeries
from fusetui.app.footer import fit_hints, join_screens
from fusetui.app.frame import Frame
from fusetui.app.glyphs import BRAILLE
from fusetui.app.scrubber import column, heights
from fusetui.app.titlebar import fit_fields, title_fields
from fusetui.app.verdict import Verdict, verdict

SNAPSHOT = fake_snapshot(1)
BARE = bare_snapshot()


# Verdict


def with_p99(over: list[bool], **changes: object) -> Verdict:
    slots = np.where(np.array(over), 60.0 * MS, 20.0 * MS)
    series = TailSeries(np.full(len(over), 200), slots, slots, slots)
    starts = T0 + np.arange(len(over), dtype=np.int64) * 1000 * MS
    tail = Tail(12_400, 12 * MS, 31 * MS, 58_100_000)
    return verdict(replace(SNAPSHOT, latency=tail, latency_series=series, slot_start_ns=starts, **changes))  # type: ignore[arg-type]


def test_a_breach_says_since_when() -> None:
    says = with_p99([False, True, False, True, True])
    assert says.severity == "breach"
    assert says.text.startswith("p99 58.1 ms over SLO 50 ms since 03:10:44Z: queue wait is 62.9 % of the tail")
    assert with_p99([True, True]).text.startswith("p99 58.1 ms over SLO 50 ms all the window")
    assert with_p99([True, False]).text.startswith("p99 58.1 ms over SLO 50 ms, last at 03:10:41Z")


def test_the_stage_that_left_its_budget_first_is_that_of_the_attribution() -> None:
    time = SNAPSHOT.tail_time
    assert time is not None
    assert with_p99([True], tail_time=replace(time, first=2)).first_stage == 2
    assert with_p99([True], tail_time=replace(time, first=None)).first_stage is None
    under = Tail(12_400, MS, 2 * MS, 3 * MS)
    assert verdict(replace(SNAPSHOT, latency=under)).first_stage is None
    no_objective = replace(SNAPSHOT.header, slo_ns=None)
    assert verdict(replace(SNAPSHOT, latency=under, header=no_objective)).first_stage == 1


def test_without_budgets_the_queue_comes_first_only_when_most_of_the_growth_was_waited() -> None:
    assert with_p99([True], tail_time=None).first_stage == 1
    service = TailCohort("request", 620, 2.0 * MS, 40.0 * MS, 1.0 * MS, 10.0 * MS)
    assert with_p99([True], cohort=service, tail_time=None).first_stage is None
    assert with_p99([True], cohort=None, tail_time=None).first_stage is None


def calm(**changes: object) -> Verdict:
    changes = {"latency": Tail(12_400, MS, 2 * MS, 3 * MS), "launch": Launch(100, 100), "cohort": None, **changes}
    return verdict(replace(SNAPSHOT, **changes))  # type: ignore[arg-type]


def test_when_all_is_well_it_says_so_with_the_numbers() -> None:
    says = calm()
    assert says.severity == "ok"
    assert says.text.startswith("requests p99 3.00 ms, p95 2.00 ms, n 12.4k under SLO 50 ms: ")
    assert says.text.endswith("λ 0.31; nothing lost")


def test_without_an_objective_nothing_is_called_good() -> None:
    says = calm(header=replace(SNAPSHOT.header, slo_ns=None))
    assert says.severity == "calm"
    assert says.text.endswith("no SLO set")


def test_losses_contradictions_and_what_is_unknown_are_said() -> None:
    lossy = calm(health=replace(SNAPSHOT.health, dropped_rows=1200, rejected_batches=2))
    assert lossy.severity == "warn"
    assert "1.20k events dropped; 2 batches rejected" in lossy.text
    assert "nothing lost" not in lossy.text
    clocks = calm(launch=Launch(100, 100, clock_errors=3))
    assert clocks.severity == "warn"
    assert "clocks disagree" in clocks.text
    wait = calm(latency_of="execution", queue_wait=Tail(500, MS, 5 * MS, 9 * MS))
    assert "contradiction" in wait.text
    assert "queue wait unknown" in calm(launch=Launch(0, 100, orphans=100)).text
    assert "queue wait known for 40.0 % of executions" in calm(launch=Launch(40, 100, orphans=60)).text


def test_too_few_samples_are_not_judged() -> None:
    few = calm(latency=Tail(37, MS, 2 * MS, None, why="p99 needs n ≥ 100, have 37; p999 needs n ≥ 1000, have 37"))
    assert few.severity == "unknown"
    assert few.text == (
        "p95 2.00 ms under SLO 50 ms, but p99 needs n ≥ 100, have 37; "
        "queue wait longest on stream prefill, p99 59.4 ms; λ 0.31"
    )
    bound = calm(latency=Tail(500, MS, 2 * MS, 3 * MS, open_n=400, at_least=frozenset({"p99"})))
    assert bound.severity == "unknown"
    assert bound.text.startswith("p99 ≥ 3.00 ms, SLO 50 ms: work still open may pass it")


def test_no_data_and_trouble_with_the_source() -> None:
    assert verdict(None) == Verdict("unknown", "no data yet")
    assert verdict(BARE).text == "no executions and no requests in this window"
    assert verdict(replace(BARE, filter_text="core == 9")).text == "nothing matches the filter in this window"
    assert verdict(replace(BARE, open_waiting=3)).text == "nothing finished in this window; 3 still open"
    lost = calm(health=replace(SNAPSHOT.health, state="lost", last_error="socket: closed"))
    assert lost.severity == "breach"
    assert lost.text.startswith("source lost: socket: closed; requests p99 3.00 ms")


# Title bar, footer, scrubber


def frame(**changes: object) -> Frame:
    return replace(Frame(SNAPSHOT, 0.0, "bert.arrows", Verdict("ok", ""), window_ns=10_000 * MS), **changes)  # type: ignore[arg-type]


def test_the_title_bar_drops_the_least_important_first() -> None:
    alone = replace(SNAPSHOT, health=replace(SNAPSHOT.health, producers=()))
    fields = title_fields(frame(snapshot=alone, cpu=0.019, bytes_per_s=14_000.0), BRAILLE, brief=False)
    assert [field.text for field in fields] == [
        "fusetui", "bert.arrows", "live", "03:10:41.7Z", "window 10 s", " 121k ev/s", "lag 0.1s", "lost 0",
        "self  1.9%   14 kB/s",
    ]  # fmt: skip
    assert [field.text for field in fit_fields(fields, 60, 3)] == [
        "bert.arrows",
        "live",
        "03:10:41.7Z",
        "window 10 s",
        "lost 0",
    ]
    assert [field.text for field in fit_fields(fields, 1, 3)] == ["live"]


def test_losses_and_a_slow_terminal_stand_in_the_title_bar() -> None:
    lossy = replace(SNAPSHOT, health=replace(SNAPSHOT.health, dropped_batches=3, dropped_rows=4000))
    texts = [f.text for f in title_fields(frame(snapshot=lossy, slowed=True, hz=1.0, skipped=7), BRAILLE, brief=True)]
    assert "▲ lost 4.00k" in texts
    assert "slow terminal: 1 Hz, 7 skipped" in texts


def test_the_footer_keeps_quit_longest() -> None:
    entries = [("1", "Overview", 2), ("space", "pause", 1), ("t", "theme", 9), ("q", "quit", 1)]
    assert fit_hints(entries, 200) == entries
    assert [hint for _, hint, _ in fit_hints(entries, 24)] == ["pause", "quit"]
    assert fit_hints(entries, 3) == []


def test_a_narrow_footer_joins_the_screens() -> None:
    entries = [("1", "Overview", 2), ("2", "Tail", 2), ("space", "pause", 1)]
    assert join_screens(entries, "Tail") == [("1-2", "Tail", 1), ("space", "pause", 1)]
    assert join_screens([("esc", "back", 0)], "") == [("esc", "back", 0)]


def test_density_shows_quiet_times_and_only_what_is_there() -> None:
    rows = np.array([0, 1, 0, 10_000], np.int64)
    assert heights(rows, 4) == [0, 1, 0, 8]
    assert heights(rows, 2) == [1, 8]
    assert heights(np.empty(0, np.int64), 3) == [0, 0, 0]
    assert heights(rows, 8) == [0, 0, 1, 1, 0, 0, 8, 8]


@given(st.integers(-(2**62), 2**62), st.integers(-(2**62), 2**62), st.integers(0, 2**40), st.integers(1, 500))
def test_a_time_is_always_inside_the_bar(ns: int, first: int, span: int, width: int) -> None:
    assert 0 <= column(ns, first, first + span, width) < width
