"""Drill-down tables against sorting everything."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tracerows import MS, S, batch_of, random_batch

from fusetui.analysis.filter import parse_filter
from fusetui.analysis.rows import RowQuery, rows
from fusetui.telemetry.schema import SCHEMA


@settings(max_examples=30)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["latency", "wait", "service", "time"]),
    st.integers(1, 40),
    st.sampled_from([None, "s1"]),
    st.sampled_from([None, "0/2"]),
)
def test_rows_are_the_top_of_everything_sorted(
    seed: int, order: str, limit: int, stream: str | None, core: str | None
) -> None:
    rng = np.random.default_rng(seed)
    batches = [random_batch(rng, int(rng.integers(1, 60)), S) for _ in range(8)]
    found = rows(batches, RowQuery(order=order, stream=stream, core_label=core, limit=limit))  # type: ignore[arg-type]
    everything = rows(batches, RowQuery(limit=10**6))
    if stream:
        everything = everything.filter(pl.col("stream") == stream)
    if core:
        everything = everything.filter((pl.col("device") == 0) & (pl.col("core") == 2))
    column = "end_ns" if order == "time" else f"{order}_ns"
    expected = everything[column].sort(descending=True, nulls_last=True).head(limit)
    assert found[column].to_list() == expected.to_list()


def test_columns_are_those_of_the_contract_and_the_durations() -> None:
    batch = batch_of(
        [
            {"enqueue_ns": 5, "start_ns": 3, "end_ns": 9, "stream": "a"},
            {"enqueue_ns": 1, "start_ns": 3, "end_ns": 9, "node": 2},
            {"start_ns": 3, "end_ns": 9},
            {"enqueue_ns": 1},
            {"kind": "counter", "name": "c", "value": 1.0, "start_ns": 3, "end_ns": 3},
        ]
    )
    found = rows([batch], RowQuery(order="time"))
    assert found.columns == [*SCHEMA.names, "wait_ns", "service_ns", "latency_ns"]
    durations = {(row["wait_ns"], row["service_ns"], row["latency_ns"]) for row in found.to_dicts()}
    assert durations == {(0, 6, 4), (None, 6, 8), (None, 6, 6), (None, None, None)}
    assert found["stream"].dtype == pl.String


def test_kind_time_and_filter_narrow_the_rows() -> None:
    batch = batch_of(
        [
            {"kind": kind, "name": f"{kind} {at}", "start_ns": at * MS, "end_ns": at * MS}
            for at in range(5)
            for kind in ("execution", "request", "mark")
        ]
    )
    query = RowQuery(order="time", kind="request", from_ns=MS, to_ns=3 * MS)
    assert rows([batch], query)["name"].to_list() == ["request 3", "request 2", "request 1"]
    only = parse_filter("name ~ 2")
    assert rows([batch], query, only)["name"].to_list() == ["request 2"]
    assert len(rows([batch], RowQuery())) == 15


@pytest.mark.parametrize("label", ["s", "h1/s"])
def test_streams_are_found_with_and_without_their_host(label: str) -> None:
    batch = batch_of([{"host": h, "stream": "s", "start_ns": 0, "end_ns": 1} for h in ("h1", "h2")])
    found = rows([batch], RowQuery(stream=label))
    assert found["host"].to_list() == (["h1"] if "/" in label else ["h2", "h1"])


def test_rows_of_a_plan_and_a_shape() -> None:
    kinds = [("p1", "n=1"), ("p1", "n=2"), (None, "n=1"), ("p2", None)]
    batch = batch_of([{"plan": p, "shape": s, "start_ns": 0, "end_ns": 1 + i} for i, (p, s) in enumerate(kinds)])

    def ends(**query: str) -> list[int]:
        return [int(end) for end in rows([batch], RowQuery(**query))["end_ns"].sort().to_list()]  # type: ignore[arg-type]

    assert ends(plan="p1") == [1, 2]
    assert ends(shape="n=1") == [1, 3]
    assert ends(plan="p1", shape="n=1") == [1]
    assert ends(plan="") == [3]
    assert ends(plan="p2", shape="") == [4]
    assert ends(plan="p3") == []


def test_nothing_fits() -> None:
    empty = rows([], RowQuery())
    assert (len(empty), empty.columns[-1]) == (0, "latency_ns")
    batch = batch_of([{"start_ns": 0, "end_ns": 1}])
    assert len(rows([batch], RowQuery(stream="x"))) == 0
    assert len(rows([batch], RowQuery(limit=0))) == 0
