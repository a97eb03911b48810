"""The operators of a capture as a graph of the model, from the names and input shapes of what ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusetui.analysis.planned import Captured

if TYPE_CHECKING:
    import polars as pl

    from fusetui.telemetry.header import Header


def captured_from(frame: pl.DataFrame, header: Header) -> Captured | str:
    """A graph of what ran with the time each operator took, or why there is none and what to do, in one line.

    frame   executions with at least the contract columns name, start_ns, end_ns, shape and request, any order, as
            `Ingest.rows(RowQuery(kind="execution", order="time", limit=...))` returns them
    header  of the capture
    """
    from fusetui.analysis.recover.recovery import recover

    found = recover(frame, header)
    return found if isinstance(found, str) else found.captured
