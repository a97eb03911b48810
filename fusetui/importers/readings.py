"""Counter readings and marks gathered from a log while it is read, and the capture they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.capture import Capture
from fusetui.importers.kineto_batches import ABSENT, Columns, Section, merged_batches
from fusetui.importers.rows import Rows, Words
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import COUNTER, MAPPINGS, MARK

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_WORDS: Final = ("name", "unit", "host", "stream", "shape")
_DTYPE: Final = np.dtype(
    [("at", "i8"), ("value", "f8"), ("request", "i8"), ("mapping", "i1"), *((name, "i4") for name in _WORDS)]
)
_FARTHEST_NS: Final = 4 * 10**18
_FEW: Final = {"host": 30_000, "unit": 100}
"""Most different words of the columns whose codes are narrow."""
_WORD_BYTES: Final = 120  # that a word counts in Words at least


class Readings:
    """Rows of kind counter; those without a value are marks."""

    def __init__(self, where: str, memory_bytes: int) -> None:
        self._where = where
        self._rows = Rows(_DTYPE, memory_bytes // 2)
        room = memory_bytes // 16
        self._words = {name: Words(min(room, _FEW.get(name, room) * _WORD_BYTES)) for name in _WORDS}

    def __len__(self) -> int:
        return len(self._rows)

    def add(
        self,
        at_ns: Ints,
        value: Floats | None,
        *,
        mapping: npt.NDArray[np.int8] | int = -1,
        request: Ints | int = int(ABSENT),
        **words: Sequence[str | None] | str | None,
    ) -> int:
        """Take in rows, all (rows,): readings that are not finite are left out, rows without `value` are marks.

        at_ns    ABSENT where the log has no time: left out
        mapping  position in MAPPINGS; -1: none
        words    name, unit, host, stream, shape: a text per row, or one for all; None is null
        Returns how many rows were left out.
        """
        good = (at_ns != ABSENT) & (np.abs(np.where(at_ns == ABSENT, 0, at_ns)) < _FARTHEST_NS)
        if value is not None:
            good &= np.isfinite(value)
        codes = {name: self._codes(name, words.get(name), len(at_ns))[good] for name in _WORDS}
        self._rows.add(
            at=at_ns[good],
            value=np.full(int(good.sum()), np.nan) if value is None else value[good],
            request=np.broadcast_to(request, at_ns.shape)[good],
            mapping=np.broadcast_to(mapping, at_ns.shape)[good],
            **codes,
        )
        return int((~good).sum())

    def _codes(self, column: str, texts: Sequence[str | None] | str | None, rows: int) -> npt.NDArray[np.int32]:
        words = self._words[column]
        if texts is None or isinstance(texts, str):
            return np.full(rows, -1 if texts is None else words[texts], np.int32)
        return np.fromiter((-1 if text is None else words[text] for text in texts), np.int32, rows)

    def capture(self, header: Header, notes: Sequence[str], *, shared_clock: bool = False) -> Capture:
        """All rows in time order; with clock `trace` the first stands at 0. Raises TelemetryError when there is none.

        shared_clock  whether other logs of the same run have the same clock, so that they open together
        """
        table = self._rows.table()
        if not len(table):
            raise TelemetryError(self._where, f"a {header.source} log without one readable line")
        zero = int(table["at"].min()) if header.clock == "trace" else 0
        counted = np.isfinite(table["value"])
        sections = [
            _section(kind, table, np.flatnonzero(which), zero)
            for kind, which in ((COUNTER, counted), (MARK, ~counted))
            if which.any()
        ]
        full = [f"more different {name}s than fit: the rest are …" for name, words in self._words.items() if words.full]
        texts: Mapping[str, list[str | None]] = {name: list(words.texts()) for name, words in self._words.items()}
        batches = merged_batches(sections, {**texts, "mapping": list(MAPPINGS)})
        return Capture(header, batches, [*notes, *full], origin_ns=zero if shared_clock else None)


def _section(kind: str, table: npt.NDArray[Any], which: Ints, zero: int) -> Section:
    def columns(rows: Ints) -> Columns:
        part = table[which[rows]]
        at = part["at"] - zero
        found: dict[str, npt.NDArray[Any]] = {name: part[name].astype(np.int64) for name in (*_WORDS, "mapping")}
        return {**found, "start_ns": at, "end_ns": at, "request": part["request"], "value": part["value"]}

    return Section(kind, table["at"][which] - zero, columns)
