"""All producers of one source: who they are, how they do, and what they add up to."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from fusetui.sources.arrow_conn import Producer
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.source import ProducerHealth

MAX_PRODUCERS: Final = 64
_MAX_GONE: Final = 32
_MAX_ORIGINS: Final = 1024
_MAX_MARKS: Final = 64


class Mark(NamedTuple):
    """Something that happened to a producer, ns since 1970 on our clock."""

    time_ns: int
    text: str
    host: str


class Crowd:
    """At most 64 producers at a time; of those that went, the last 32 stay listed and all stay counted.

    header   of the first producer; once another kind joins, of both in what they share
    several  producers of different origin have been here: rows that name no host get that of their producer
    refused  connections turned away (crowded out, or without the right token)
    """

    def __init__(self) -> None:
        self.header = Header(source="arrow")
        self.several = False
        self.refused = 0
        self._lock = threading.Lock()
        self._producers: list[Producer] = []
        self._origins: set[str] = set()
        self._sources: list[str] = []
        self._forgotten = [0, 0, 0]
        self._last_error = ""
        self._marks: list[Mark] = []

    def join(self, producer: Producer) -> bool:
        """Take one in; False when it is too crowded."""
        with self._lock:
            if sum(not p.gone for p in self._producers) >= MAX_PRODUCERS:
                self.refused += 1
                return False
            self._producers.append(producer)
            self._trim()
            return True

    def refuse(self) -> None:
        """Count a connection that was turned away."""
        with self._lock:
            self.refused += 1

    def admit(self, producer: Producer, header: Header) -> None:
        """Its header has come. Raises TelemetryError when its clock is not that of the others."""
        with self._lock:
            if self._sources and header.clock != self.header.clock:
                raise TelemetryError(
                    producer.name,
                    f"its times are {_CLOCKS[header.clock]}, those of the others {_CLOCKS[self.header.clock]}",
                    "send epoch times",
                )
            producer.origin = header.host or header.source
            self._name(producer, f"{header.source}@{header.host}" if header.host else header.source)
            self._join_headers(header)
            if len(self._origins) < _MAX_ORIGINS:
                self._origins.add(producer.origin)
            self.several = len(self._origins) > 1

    def left(self, producer: Producer) -> None:
        """Its connection is over."""
        with self._lock:
            if producer.watch.lost_ns is not None:
                self._mark(producer.watch.lost_ns, f"lost {producer.name}", producer.origin)

    def marks(self) -> list[Mark]:
        """Those made since the last call: producers lost, producers back."""
        with self._lock:
            made, self._marks = self._marks, []
            return made

    def health(self) -> tuple[ProducerHealth, ...]:
        """Every producer listed."""
        with self._lock:
            self._trim()
            return tuple(producer.health() for producer in self._producers)

    def sums(self) -> tuple[int, int, int]:
        """Rejected batches, rows dropped as impossible and bytes read, of all producers there ever were."""
        with self._lock:
            rejected, bad_rows, bytes_in = self._forgotten
            for reader in (p.reader for p in self._producers if p.reader is not None):
                rejected += reader.rejected
                bad_rows += reader.bad_rows
                bytes_in += reader.bytes_in
            return rejected, bad_rows, bytes_in

    def last_error(self) -> str:
        """The newest complaint about a producer that is still listed, else of any."""
        with self._lock:
            for producer in reversed(self._producers):
                said = producer.detail if producer.state == "failed" else ""
                said = said or (producer.reader.last_error if producer.reader else "")
                if said:
                    return said
            return self._last_error

    def _name(self, producer: Producer, name: str) -> None:
        same = [p for p in self._producers if p is not producer and p.name == name]
        for old in same:
            # A half-open connection: its machine is back before its loss was noticed.
            if not old.gone and (
                old.state in ("hung", "lost") or (old.watch.run and old.watch.run == producer.watch.run)
            ):
                old.watch.lost()
                old.drop()
            elif not old.gone:
                producer.name = f"{name} ({producer.name})"
                return
        producer.name = name
        for old in same:
            producer.earlier_rows += old.earlier_rows + old.rows
            producer.connections += old.connections
            producer.watch.follow(old.watch)
            self._forget(old)
            if old.watch.lost_ns is not None and producer.watch.gap is not None:
                start, end = producer.watch.gap
                self._mark(end, f"{name} is back after {(end - start) / 1e9:.1f} s", producer.origin)

    def _mark(self, time_ns: int, text: str, host: str) -> None:
        if self.header.clock == "epoch":
            self._marks = [*self._marks[-_MAX_MARKS:], Mark(time_ns, text, host)]

    def _trim(self) -> None:
        gone = [p for p in self._producers if p.gone]
        for old in gone[: max(0, len(gone) - _MAX_GONE)]:
            self._forget(old)

    def _forget(self, producer: Producer) -> None:
        self._producers.remove(producer)
        if producer.reader is not None:
            reader = producer.reader
            for i, count in enumerate((reader.rejected, reader.bad_rows, reader.bytes_in)):
                self._forgotten[i] += count
            self._last_error = reader.last_error or self._last_error
        if producer.state == "failed":
            self._last_error = producer.detail

    def _join_headers(self, header: Header) -> None:
        if not self._sources:
            self.header = header
        elif self.header.host != header.host:
            self.header = replace(self.header, host=None)
        if header.source not in self._sources and len(self._sources) < 4:
            self._sources.append(header.source)
            self.header = replace(self.header, source=", ".join(self._sources))


_CLOCKS: Final = {"epoch": "since 1970", "trace": "since the trace began"}


def living(producers: Sequence[ProducerHealth]) -> int:
    """How many are connected."""
    return sum(p.state in ("waiting", "live") for p in producers)
