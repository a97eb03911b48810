"""What one importer hands over, and what the package asks of an importer module."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from fusetui.telemetry.header import Header


@dataclass(slots=True)
class Capture:
    """A foreign capture as contract batches.

    header   of the whole capture
    notes    what is missing, broken or cut in it, one line each
    batches  canonical batches of at most 65,536 rows in order of end_ns; can be walked once
    rank     the rank it says it is in a distributed job (None: it does not say)
    origin_ns  where its time 0 lies on the clock it shares with other logs of the same run: such logs open together
             as one view of that run, not as ranks (None: no such clock)
    """

    header: Header
    batches: Iterator[pa.RecordBatch]
    notes: list[str] = field(default_factory=list)
    rank: int | None = None
    origin_ns: int | None = None


class Importer(Protocol):
    """A module of this package that opens one foreign format; found by these three names.

    It may have more. `GENERIC = True`: the format is a general one, others are asked first. `read_together(paths,
    memory_bytes) -> Capture`: a run is several files of the format, which are opened at once (a folder of tables).
    `read` and `read_together` have read their files when they return: those may lie in an archive that was unpacked.
    """

    NAME: str
    """Format as a person calls it."""

    @staticmethod
    def sniff(head: bytes) -> bool:
        """Whether a file that begins with these bytes (decompressed, up to 1 MiB) is of this format."""
        ...

    @staticmethod
    def read(path: Path, memory_bytes: int) -> Capture:
        """Open it, holding about `memory_bytes` at most. Raises TelemetryError when nothing can be read."""
        ...
