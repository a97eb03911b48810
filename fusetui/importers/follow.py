"""Logs that are read while they grow: the importers of logs, a few lines at a time.

A log importer takes part by `follow() -> LogLines`, beside what every importer has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

import pyarrow as pa

from fusetui.importers.open import importers
from fusetui.importers.readings import Readings
from fusetui.telemetry.header import Header

_CHUNK_BYTES = 4 << 20


class LogLines(Protocol):
    """One growing log.

    name     the format
    local    its times are of some local clock, perhaps without a year, and must be placed by who knows when
             the lines were written
    bad      lines that belong to the format and could not be read
    """

    @property
    def name(self) -> str: ...
    @property
    def local(self) -> bool: ...
    @property
    def bad(self) -> int: ...

    def header(self) -> Header:
        """What the log has told so far."""
        ...

    def take(self, lines: bytes) -> list[pa.RecordBatch]:
        """Contract batches of the next whole lines; other programs' lines are passed over."""
        ...


class ReadingLines:
    """Lines that become counter readings. take: puts what is in some lines into the rows it is given."""

    local = True

    def __init__(
        self, name: str, take: Callable[[bytes, Readings], int], build: Callable[[], dict[str, str]], source: str
    ) -> None:
        """take returns how many readings were left out; build: what the header has of the server now."""
        self.name, self.bad = name, 0
        self._take, self._build, self._source = take, build, source

    def header(self) -> Header:
        return Header(source=self._source, build=self._build())

    def take(self, lines: bytes) -> list[pa.RecordBatch]:
        rows = Readings(self.name, _CHUNK_BYTES)
        self.bad += self._take(lines, rows)
        return list(rows.capture(self.header(), ()).batches) if len(rows) else []


def lines_of(head: bytes) -> LogLines | None:
    """How to read a log that begins, or goes on, with these whole lines; None when no importer knows it."""
    for importer in importers():
        follow = getattr(importer, "follow", None)
        if follow is not None and importer.sniff(head):
            return cast(LogLines, follow())
    return None
