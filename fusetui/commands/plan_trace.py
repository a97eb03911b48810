"""The operators of a capture, for `fusetui plan --trace` and `fusetui calibrate`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fusetui.analysis.recover.recovery import Recovery, recover
from fusetui.analysis.rows import RowQuery, rows
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from fusetui.analysis.planned import Captured
    from fusetui.telemetry.source import Trace

MAX_ROWS: Final = 200_000
_MEMORY_BYTES: Final = 256 << 20
_WAIT_S: Final = 0.02
_QUIET_S: Final = 5.0


def captured_of(path: Path) -> Captured:
    """The graph of what ran in a capture. TelemetryError when it cannot be opened or shows no operators."""
    return recovery_of(path).captured


def recovery_of(path: Path) -> Recovery:
    """`captured_of` with the single times; looks at the newest MAX_ROWS executions."""
    from fusetui.importers.open import open_capture

    trace = open_capture([path], memory_bytes=_MEMORY_BYTES)
    try:
        frame = rows(_batches(trace), RowQuery(kind="execution", order="time", limit=MAX_ROWS))
        found = recover(frame, trace.header)
    finally:
        trace.close()
    if isinstance(found, str):
        what, _, remedy = found.partition(": ")
        raise TelemetryError(safe_text(str(path)), what, remedy)
    return found


def _batches(trace: Trace) -> Iterator[pa.RecordBatch]:
    """Every batch; those of an import that still goes on are waited for, a recording that has gone quiet is not."""
    number, quiet_s = 0, 0.0
    while True:
        complete = trace.complete
        while number < len(trace.index().rows):
            yield trace.read(number)
            number, quiet_s = number + 1, 0.0
        if complete or quiet_s > _QUIET_S:
            return
        if not trace.refresh():
            time.sleep(_WAIT_S)
            quiet_s += _WAIT_S
