"""The operators of a capture, for `fusetui plan --trace` and `fusetui calibrate`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fusetui.analysis.recover.recovery import Recovery, recover
from fusetui.analysis.rows import RowQuery, rows
from fusetui.importers import kineto
from fusetui.importers.bytestream import head_of
from fusetui.importers.open import open_capture
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.text import safe_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from fusetui.analysis.planned import Captured
    from fusetui.importers.capture import Capture
    from fusetui.telemetry.source import Trace

MAX_ROWS: Final = 200_000
_MEMORY_BYTES: Final = 256 << 20
_ALL: Final = RowQuery(kind="execution", order="time", limit=MAX_ROWS)
_WAIT_S: Final = 0.02
_QUIET_S: Final = 5.0


def captured_of(path: Path) -> Captured:
    """The graph of what ran in a capture. TelemetryError when it cannot be opened or shows no operators."""
    return recovery_of(path).captured


def recovery_of(path: Path) -> Recovery:
    """`captured_of` with the single times; looks at the newest MAX_ROWS executions."""
    inner = _inner_of(path)
    if inner is not None:
        found = recover(rows(inner.batches, _ALL), inner.header, opened=True)
    else:
        trace = open_capture([path], memory_bytes=_MEMORY_BYTES)
        try:
            found = recover(rows(_batches(trace), _ALL), trace.header)
        finally:
            trace.close()
    if isinstance(found, str):
        what, _, remedy = found.partition(": ")
        raise TelemetryError(safe_text(str(path)), what, remedy)
    return found


def _inner_of(path: Path) -> Capture | None:
    """A PyTorch profile with the operators inside compiled regions and backward nodes; None for any other file."""
    try:
        known = path.is_file() and kineto.sniff(head_of(path))
    except OSError:
        known = False
    return kineto.read_inner(path, _MEMORY_BYTES) if known else None


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
