"""A recording that begins with the first batch: only then is the header of a socket's first producer known."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.recording import Recorder
from fusetui.telemetry.source import Source


class Tape:
    """Where the batches of a source are recorded; see `Recorder` for the files and for what a failure means.

    failed  why it stopped, one line; "" while all is well
    rows    rows handed to the operating system
    """

    def __init__(
        self,
        path: Path,
        source: Source,
        *,
        max_bytes: int = 256 << 20,
        max_seconds: float = 3600.0,
        overwrite: bool = False,
    ) -> None:
        """Errors: TelemetryError when a file is in the way."""
        if path.exists() and not overwrite:
            raise TelemetryError(str(path), "exists already", "choose another name, or --force to overwrite it")
        self._path = path
        self._source = source
        self._max_bytes = max_bytes
        self._max_seconds = max_seconds
        self._overwrite = overwrite
        self._recorder: Recorder | None = None
        self._refused = ""

    @property
    def failed(self) -> str:
        return self._recorder.failed if self._recorder is not None else self._refused

    @property
    def rows(self) -> int:
        return self._recorder.rows if self._recorder is not None else 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Take a canonical batch; never raises."""
        self._begin()
        if self._recorder is not None:
            self._recorder.write(batch)

    def close(self) -> None:
        """Write what is pending and the end; a tape that got no batch becomes an empty recording."""
        self._begin()
        if self._recorder is not None:
            self._recorder.close()

    def _begin(self) -> None:
        if self._recorder is not None or self._refused:
            return
        try:
            self._recorder = Recorder(
                self._path,
                self._source.header,
                max_bytes=self._max_bytes,
                max_seconds=self._max_seconds,
                overwrite=self._overwrite,
            )
        except TelemetryError as error:
            self._refused = str(error)
