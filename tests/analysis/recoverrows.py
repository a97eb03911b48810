"""Executions written by hand, as rows of the contract."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from fusetui.analysis.planned import Captured
from fusetui.analysis.recover import captured_from
from fusetui.telemetry.header import Header

Run = tuple[str, str | None, int]
"""Name, shape key, duration in ns."""


def frame_of(runs: Sequence[Run], requests: Sequence[int | None] | None = None) -> pl.DataFrame:
    """The runs one after the other, 10 ns apart, newest first as a row query gives them."""
    start, rows = 1000, []
    for i, (name, shape, took) in enumerate(runs):
        request = requests[i] if requests else None
        rows.append((name, shape, start, start + took, request))
        start += took + 10
    schema = {
        "name": pl.String,
        "shape": pl.String,
        "start_ns": pl.Int64,
        "end_ns": pl.Int64,
        "request": pl.Int64,
    }
    return pl.DataFrame(rows[::-1], schema=schema, orient="row")


def recovered(runs: Sequence[Run], requests: Sequence[int | None] | None = None) -> Captured:
    found = captured_from(frame_of(runs, requests), Header(source="test"))
    assert isinstance(found, Captured), found
    return found


def inputs_of(captured: Captured, name: str) -> list[str]:
    """What an operator reads, looking through views."""
    ops = {op.name: op for op in captured.graph.operators}

    def source(tensor: str) -> str:
        while tensor in ops and ops[tensor].is_view:
            tensor = ops[tensor].inputs[0]
        return tensor

    return [source(tensor) for tensor in ops[name].inputs]
