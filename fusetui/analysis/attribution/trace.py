"""The causes of a whole trace, or of the end of it."""

from __future__ import annotations

from fusetui.analysis.attribution.causes import Causes, causes_of
from fusetui.analysis.filter import parse_filter
from fusetui.analysis.twin import MAX_ROWS, twin_of
from fusetui.telemetry.source import Trace


def causes_of_trace(trace: Trace, *, window_ns: int | None = None, filter: str | None = None) -> Causes | str:
    """As `causes_of`, of the batches with rows in the last window_ns. Raises FilterError, TelemetryError."""
    index = trace.index()
    if not len(index.rows):
        return "no rows in this trace"
    from_ns = int(index.first_ns.min()) if window_ns is None else int(index.last_ns.max()) - window_ns + 1
    wanted = [i for i, last in enumerate(index.last_ns.tolist()) if last >= from_ns]
    rows = int(index.rows[wanted].sum())
    if rows > MAX_ROWS:
        return f"{rows:,} rows are more than the {MAX_ROWS:,} a model is made of: choose a shorter --window"
    only = parse_filter(filter or "")
    batches = (trace.read(i) for i in wanted)
    twin = twin_of((batch if only is None else only.apply(batch) for batch in batches), trace.header)
    return twin if isinstance(twin, str) else causes_of(twin)
