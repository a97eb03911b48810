"""From sums to rows: what is exact stays exact, and what is laid out never overlaps."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fusetui.sources.host_layout import Laid, lay_out
from fusetui.sources.host_tasks import TaskDelta

S = 1_000_000_000
TICK = 10_000_000
T0 = 1_700_000_000 * S


def task(run: int, wait: int = 0, slices: int = 1, cpu: int = 0) -> TaskDelta:
    return TaskDelta("t", "p", cpu, run, wait, slices)


def run_on(laid: Laid, cpu: int) -> int:
    return int((laid.end_ns - laid.start_ns)[laid.cpu == cpu].sum())


def assert_never_overlaps(laid: Laid, to_ns: int) -> None:
    for cpu in set(laid.cpu.tolist()):
        mine = laid.cpu == cpu
        order = np.argsort(laid.start_ns[mine])
        start, end = laid.start_ns[mine][order], laid.end_ns[mine][order]
        assert (start[1:] >= end[:-1]).all()
        assert start[0] >= T0
        assert end[-1] <= to_ns


def test_a_task_becomes_its_slices() -> None:
    laid = lay_out([task(300_000_000, 60_000_000, 6)], {0: 300_000_000}, T0, T0 + S, tick_ns=TICK)
    assert (laid.end_ns - laid.start_ns).tolist() == [50_000_000] * 6
    assert laid.wait_ns.tolist() == [10_000_000] * 6
    assert laid.slices.tolist() == [1] * 6
    assert np.abs(np.diff(laid.start_ns) - S / 6).max() <= 1, "idle time lies between them"
    assert run_on(laid, 0) == 300_000_000


def test_a_task_that_kept_its_cpu_has_no_wait() -> None:
    laid = lay_out([task(S, 0, 0)], {0: S}, T0, T0 + S, tick_ns=TICK)
    assert (laid.start_ns.tolist(), laid.end_ns.tolist()) == ([T0], [T0 + S])
    assert (laid.wait_ns.tolist(), laid.slices.tolist()) == ([-1], [0])


def test_busy_time_nobody_accounts_for_is_other() -> None:
    laid = lay_out([task(100_000_000)], {0: 400_000_000, 1: 5_000_000}, T0, T0 + S, tick_ns=TICK)
    assert run_on(laid, 0) == 400_000_000
    assert run_on(laid, 1) == 0, "less than a tick proves nothing"
    assert sorted(laid.task.tolist()) == [-1, 0]


def test_a_migrated_task_goes_where_busy_time_is_unaccounted_for() -> None:
    laid = lay_out([task(800_000_000, 80, 8, cpu=1)], {0: 400_000_000, 1: 400_000_000}, T0, T0 + S, tick_ns=0)
    assert (run_on(laid, 0), run_on(laid, 1)) == (400_000_000, 400_000_000)
    assert set(laid.task.tolist()) == {0}
    assert laid.slices.sum() == 8
    assert laid.wait_ns.tolist() == [10] * 8


def test_more_run_than_busy_is_clipped_to_a_tick() -> None:
    laid = lay_out([task(900_000_000)], {0: 100_000_000}, T0, T0 + S, tick_ns=TICK)
    assert run_on(laid, 0) == 110_000_000


def test_many_slices_share_rows_and_say_so() -> None:
    laid = lay_out([task(S // 2, 5_000_000, 5000)], {0: S // 2}, T0, T0 + S, tick_ns=TICK, max_rows=100)
    assert len(laid.task) == 100
    assert laid.slices.sum() == 5000
    assert set(laid.wait_ns.tolist()) == {1000}
    assert run_on(laid, 0) == S // 2


def test_a_wait_longer_than_the_interval_stays_whole() -> None:
    laid = lay_out([task(1000, 5 * S, 1)], {0: 0}, T0, T0 + S, tick_ns=TICK)
    assert laid.wait_ns.tolist() == [5 * S]


def test_nothing_ran() -> None:
    assert len(lay_out([], {0: 0, 1: 0}, T0, T0 + S, tick_ns=TICK).task) == 0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, S), st.integers(0, 2 * S), st.integers(0, 300), st.integers(0, 4)), max_size=20
    ),
    st.lists(st.integers(0, S), min_size=1, max_size=4),
    st.sampled_from([0, TICK]),
)  # fmt: skip
def test_busy_time_agrees_and_rows_never_overlap(
    tasks: list[tuple[int, int, int, int]], busy: list[int], tick: int
) -> None:
    deltas = [task(run, wait, slices, cpu) for run, wait, slices, cpu in tasks]
    laid = lay_out(deltas, dict(enumerate(busy)), T0, T0 + S, tick_ns=tick, max_rows=500)
    for cpu, ns in enumerate(busy):
        assert abs(run_on(laid, cpu) - ns) <= tick
    for number, delta in enumerate(deltas):
        mine = laid.task == number
        assert (laid.end_ns - laid.start_ns)[mine].sum() <= delta.run_ns
        if delta.slices and mine.any():
            assert set(laid.wait_ns[mine].tolist()) <= {delta.wait_ns // delta.slices, -1}
    assert (np.diff(laid.end_ns) >= 0).all()
    if len(laid.task):
        assert_never_overlaps(laid, T0 + S)
