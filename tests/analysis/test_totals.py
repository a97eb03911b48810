"""Totals since a start: every row counted once, in the bucket and the stream it belongs to."""

from __future__ import annotations

import numpy as np

from fusetui.analysis.durations import LATENCY, SERVICE, WAIT
from fusetui.analysis.loghist import bucket_of
from fusetui.analysis.totals import MAX_STREAMS, Totals
from fusetui.telemetry.schema import build_batch


def of(totals: Totals, measure: str, stream: str) -> dict[int, int]:
    """bucket -> count of one stream."""
    counts = totals.counts[measure][totals.streams.index(stream)]
    return {int(at): int(counts[at]) for at in np.flatnonzero(counts)}


def bucket(value: int) -> int:
    return int(bucket_of(np.array([value]))[0])


def test_waits_and_service_are_of_executions_and_latency_of_requests() -> None:
    totals = Totals()
    totals.add(
        build_batch(
            {
                "kind": ["execution", "execution", "request", "counter", "mark"],
                "name": "n",
                "stream": ["a", "b", "a", None, None],
                "enqueue_ns": [0, 100, 0, None, None],
                "start_ns": [40, 300, 0, 5, 6],
                "end_ns": [1040, 310, 5000, 5, 6],
                "mapping": ["planned", "fallback", None, None, None],
            }
        )
    )
    assert totals.rows.tolist() == [2, 1, 1, 1]
    assert totals.mappings.tolist() == [1, 0, 1]
    assert of(totals, WAIT, "a") == {bucket(40): 1}
    assert of(totals, WAIT, "b") == {bucket(200): 1}
    assert of(totals, SERVICE, "a") == {bucket(1000): 1}
    assert of(totals, LATENCY, "a") == {bucket(5000): 1}
    assert of(totals, LATENCY, "b") == {}
    at = totals.streams.index("a")
    assert [int(totals.sums_ns[m][at]) for m in (WAIT, SERVICE, LATENCY)] == [40, 1000, 5000]


def test_open_work_is_counted_when_it_ends_and_only_then() -> None:
    totals = Totals()
    for end in (None, 900):
        totals.add(
            build_batch(
                {
                    "kind": ["execution"],
                    "name": "n",
                    "stream": "a",
                    "enqueue_ns": [0],
                    "start_ns": [40],
                    "end_ns": [end],
                }
            )
        )
    assert totals.rows.tolist() == [1, 0, 0, 0]
    assert of(totals, WAIT, "a") == {bucket(40): 1}


def test_streams_beyond_the_limit_share_a_row_and_rows_without_one_have_their_own() -> None:
    totals = Totals()
    streams = [f"s{k}" for k in range(MAX_STREAMS + 3)]
    for name in streams:
        totals.add(build_batch({"kind": ["execution"], "name": "n", "stream": name, "start_ns": [0], "end_ns": [7]}))
    totals.add(build_batch({"kind": ["execution"], "name": "n", "start_ns": [0], "end_ns": [7]}))
    assert [of(totals, SERVICE, name) for name in streams[:MAX_STREAMS]] == [{bucket(7): 1}] * MAX_STREAMS
    assert of(totals, SERVICE, "(others)") == {bucket(7): 3}
    assert totals.counts[SERVICE][-1].sum() == 1
    assert totals.streams[-1] == ""


def test_sums_of_ns_stay_exact_beyond_what_a_float_holds() -> None:
    totals = Totals()
    for end in (2**61, 1, 1):
        totals.add(build_batch({"kind": ["execution"], "name": "n", "stream": "a", "start_ns": [0], "end_ns": [end]}))
    assert int(totals.sums_ns[SERVICE][totals.streams.index("a")]) == 2**61 + 2
