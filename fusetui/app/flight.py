"""The flight recorder: the rows that are still in memory, saved as a capture that can be replayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from fusetui.app.state_file import state_folder
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.eventtime import event_time_ns
from fusetui.telemetry.header import Header
from fusetui.telemetry.recording import Recorder

if TYPE_CHECKING:
    import pyarrow as pa

MAX_TRIES: Final = 100


@dataclass(frozen=True, slots=True)
class Saved:
    """rows, and the span of their event times."""

    path: Path
    rows: int
    span_ns: int


def folders() -> tuple[Path, ...]:
    """Where to save, the first that can be written to: here, else the state folder."""
    return Path.cwd(), state_folder() / "flights"


def save_flight(raw: Callable[[], Sequence[pa.RecordBatch]], header: Header, where: Sequence[Path]) -> Saved:
    """Write the raw rows to `fusetui-20261130T031041Z.arrows`; nothing that is there is ever replaced.

    Errors: TelemetryError when there is nothing to save, or no folder takes it: with the reason of the last one.
    """
    batches = [batch for batch in raw() if len(batch)]
    if not batches:
        raise TelemetryError("flight recorder", "no rows are kept yet")
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    refused = TelemetryError("flight recorder", "there is no folder to save to")
    for folder in where:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            recorder, path = _begun(folder, stamp, header)
        except OSError as error:
            refused = TelemetryError(str(folder), f"cannot be written: {error.strerror}")
        except TelemetryError as error:
            refused = error
        else:
            return _written(recorder, path, batches)
    raise refused


def _begun(folder: Path, stamp: str, header: Header) -> tuple[Recorder, Path]:
    """A recorder under a name that is free: another one of the same second, or another person's, stays."""
    for number in range(MAX_TRIES):
        path = folder / f"fusetui-{stamp}{f'-{number}' if number else ''}.arrows"
        if not path.exists():
            return Recorder(path, header, max_bytes=1 << 40), path
    raise TelemetryError(str(folder), f"has {MAX_TRIES} flights of this second already")


def _written(recorder: Recorder, path: Path, batches: Sequence[pa.RecordBatch]) -> Saved:
    with recorder:
        for batch in batches:
            recorder.write(batch)
    if recorder.failed:
        raise TelemetryError(str(path), f"only {recorder.rows:,} rows were saved", recorder.failed)
    times = np.concatenate([event_time_ns(batch) for batch in batches])
    known = times[times != 0]
    return Saved(path, recorder.rows, int(known.max() - known.min()) if known.size else 0)
