"""Launch counts and exposed launch overhead, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tracerows import batch_of

from fusetui.analysis.arrays import Ints
from fusetui.analysis.busy import by_key_and_end
from fusetui.analysis.columns import Reader
from fusetui.analysis.launch import NEVER, call_times, exposed_gaps, flags
from fusetui.analysis.work import Work, executions


def work_of(*rows: dict[str, Any]) -> Work:
    return executions(Reader().read(batch_of(rows)))


def gaps_of(work: Work, before: int = NEVER) -> Ints:
    order = by_key_and_end(work.rows.stream, work.rows.end)
    rows = work.rows
    columns = (rows.stream, rows.start, rows.end, rows.enqueue, rows.launch, work.waited)
    return exposed_gaps(*(column[order] for column in columns), np.full(4, before, np.int64))


def exposed(*rows: dict[str, Any]) -> int:
    return int(gaps_of(work_of(*rows)).sum())


def run(enqueue: int | None, start: int, end: int, **more: Any) -> dict[str, Any]:
    return {"enqueue_ns": enqueue, "start_ns": start, "end_ns": end, "stream": "s", **more}


@pytest.mark.parametrize(
    ("row", "names"),
    [
        (run(None, 10, 20), set()),
        (run(5, 10, 20), {"joined"}),
        (run(12, 10, 20, launch_ns=5), {"joined", "clipped"}),
        (run(16, 10, 20, launch_ns=5), {"joined", "clipped", "clock_errors"}),
        (run(15, 10, 20, launch_ns=5), {"joined", "clipped"}),
        (run(12, 10, 20), {"joined", "clipped"}),
        (run(5, 10, 20, launch_ns=11), {"joined", "short"}),
        (run(5, 10, 20, launch_ns=10), {"joined"}),
        (run(0, 100_001, 300_000, launch_ns=50_001), {"joined", "delay_outliers", "runtime_outliers"}),
        (run(0, 100_000, 300_000, launch_ns=50_000), {"joined"}),
        (run(0, 100_001, 300_000, node=0), {"joined", "delay_outliers"}),
        (run(0, 100_001, 300_000, node=1), {"joined", "nodes"}),
        (run(20, 10, 30, node=3), {"joined", "nodes"}),
    ],
)
def test_what_an_execution_counts_as(row: dict[str, Any], names: set[str]) -> None:
    assert {name for name, chosen in flags(work_of(row)).items() if chosen[0]} == names


def test_calls_of_later_nodes_are_not_counted_again() -> None:
    own, call = call_times(work_of(run(5, 10, 20, launch_ns=3), run(5, 20, 30, launch_ns=3, node=1), run(5, 30, 40)))
    assert call[own].tolist() == [3]


def launched(enqueue: int | None, start: int, end: int, **more: Any) -> dict[str, Any]:
    """Work whose launch call began long before."""
    return run(enqueue, start, end, launch_ns=100, **more)


def test_a_device_that_waits_for_the_host_is_exposed() -> None:
    # Ends at 20, the next launch returns at 25, it starts at 30: 10 ns nobody could have filled.
    assert exposed(launched(5, 10, 20), launched(25, 30, 40)) == 10


def test_work_queued_in_time_exposes_nothing() -> None:
    assert exposed(launched(5, 10, 20), launched(15, 30, 40)) == 0
    assert exposed(launched(5, 10, 20), launched(20, 30, 40)) == 0


def test_back_to_back_overlapping_first_and_unjoined_work_exposes_nothing() -> None:
    assert exposed(launched(5, 10, 20), launched(25, 20, 40)) == 0
    assert exposed(launched(5, 10, 50), launched(25, 30, 60)) == 0
    assert exposed(launched(5, 10, 20)) == 0
    assert exposed(launched(5, 10, 20), launched(None, 30, 40)) == 0
    assert exposed(launched(5, 10, 20), launched(25, 30, 40, node=2)) == 0


def test_streams_have_their_own_gaps() -> None:
    other = {**launched(25, 30, 40), "stream": "t"}
    assert exposed(launched(5, 10, 20), other) == 0
    assert exposed(launched(5, 10, 20), other, launched(45, 50, 60), {**launched(50, 55, 70), "stream": "t"}) == 30 + 15


def test_gaps_go_on_from_the_rows_before() -> None:
    assert gaps_of(work_of(launched(25, 30, 40)), before=12).tolist() == [18]


def test_only_the_launch_is_exposed_not_the_hosts_own_time_before_it() -> None:
    # Ends at 20, the call begins at 24 and returns at 27, the work starts at 30: 6 ns.
    assert exposed(run(5, 10, 20, launch_ns=3), run(27, 30, 40, launch_ns=3)) == 6


def test_without_a_launch_call_nothing_is_known() -> None:
    assert exposed(run(5, 10, 20), run(25, 30, 40)) == 0
