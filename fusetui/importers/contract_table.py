"""Rows of the contract gathered in any order, and handed over in order of their time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fusetui.importers.kineto_batches import ABSENT, Columns, Section, merged_batches
from fusetui.importers.rows import Rows, Words
from fusetui.telemetry.eventtime import event_time_ns
from fusetui.telemetry.gate import Gate
from fusetui.telemetry.header import Clock
from fusetui.telemetry.schema import KINDS, SCHEMA

_EPOCH_SINCE_NS: Final = 10**17
_WORDS: Final = tuple(f.name for f in SCHEMA if isinstance(f.type, pa.DictionaryType) and f.name != "kind")
_REALS: Final = tuple(f.name for f in SCHEMA if f.type == pa.float64())
_WHOLE: Final = tuple(name for name in SCHEMA.names if name not in ("kind", *_WORDS, *_REALS))
_DTYPE: Final = np.dtype(
    [
        ("kind", "i1"),
        ("time", "i8"),
        *((name, "i8") for name in _WHOLE),
        *((name, "f8") for name in _REALS),
        *((name, "i4") for name in _WORDS),
    ]
)
_FEW: Final = {"host": 30_000, "unit": 100, "mapping": 100}
"""Most different words of the columns whose codes are narrow."""
_WORD_BYTES: Final = 120  # that a word counts in Words at least

Ints = npt.NDArray[np.int64]


class ContractTable:
    """Takes columns of any accepted type; `left_out` counts the rows that the contract does not allow."""

    def __init__(self, memory_bytes: int) -> None:
        self._rows = Rows(_DTYPE, memory_bytes // 2)
        room = memory_bytes // 16
        self._words = {name: Words(min(room, _FEW.get(name, room) * _WORD_BYTES)) for name in _WORDS}
        self._earliest: int | None = None
        self.left_out = 0

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, columns: dict[str, pa.Array]) -> None:
        """Add rows: kind, name, start_ns and end_ns must be among the columns, which are of one length."""
        timed = [columns[name] for name in ("end_ns", "start_ns", "enqueue_ns") if name in columns]
        known = pc.and_(pc.is_in(columns["kind"], pa.array(KINDS)), pc.is_valid(pc.coalesce(*timed)))
        known = pc.and_(known, pc.is_valid(columns["name"]))
        chosen = {name: values.filter(known) for name, values in columns.items()}
        raw = pa.RecordBatch.from_pydict(chosen)
        gate = Gate(raw.schema, "rows")
        batch, dropped = gate.conform(raw.select([raw.schema.names[at] for at in gate.fields]), "rows")
        self.left_out += len(columns["kind"]) - len(raw) + dropped
        if len(batch):
            self._add(batch)

    def _add(self, batch: pa.RecordBatch) -> None:
        time = event_time_ns(batch)
        first = int(time.min())
        self._earliest = first if self._earliest is None else min(first, self._earliest)
        columns: dict[str, npt.NDArray[Any]] = {"time": time, "kind": _codes(batch.column("kind"))}
        for name in _WHOLE:
            columns[name] = pc.fill_null(batch.column(name).cast(pa.int64()), int(ABSENT)).to_numpy()
        for name in _REALS:
            columns[name] = pc.fill_null(batch.column(name), float("nan")).to_numpy()
        for name in _WORDS:
            column = batch.column(name)
            own = np.append(self._words[name].codes(column.dictionary.to_pylist()), np.int32(-1))
            columns[name] = own[_codes(column)]
        self._rows.add(**columns)

    @property
    def clock(self) -> Clock:
        """What the times count from, by their size."""
        return "epoch" if (self._earliest or 0) >= _EPOCH_SINCE_NS else "trace"

    def notes(self) -> list[str]:
        """Columns with more different words than fit."""
        full = [name for name, words in self._words.items() if words.full]
        return [f"more different {name}s than fit: the rest are …" for name in full]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows by their time; can be walked once."""
        table = self._rows.table()
        sections = [
            _section(kind, table, np.flatnonzero(table["kind"] == code))
            for code, kind in enumerate(KINDS)
            if (table["kind"] == code).any()
        ]
        return merged_batches(sections, {name: words.texts() for name, words in self._words.items()})


def _codes(column: pa.DictionaryArray) -> Ints:
    codes: Ints = pc.fill_null(column.indices.cast(pa.int64()), -1).to_numpy()
    return codes


def _section(kind: str, table: npt.NDArray[Any], which: Ints) -> Section:
    def columns(rows: Ints) -> Columns:
        part = table[which[rows]]
        return {
            name: part[name] if name in _REALS else part[name].astype(np.int64) for name in (*_WHOLE, *_REALS, *_WORDS)
        }

    return Section(kind, table["time"][which], columns)
