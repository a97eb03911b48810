"""A capture in Parquet as a Trace: each row group is a batch."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.eventtime import event_time_ns
from fusetui.telemetry.gate import MAX_COLUMNS, TIME_LIMIT, Gate, dropped_rows_note
from fusetui.telemetry.guard import Limits
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import SCHEMA
from fusetui.telemetry.source import BatchIndex

_MAX_ROW_GROUPS: Final = 1_000_000
_TEXT_COLUMNS: Final = [f.name for f in SCHEMA if isinstance(f.type, pa.DictionaryType)]
_ERRORS: Final = (pa.ArrowException, OSError, ValueError, MemoryError, LookupError, OverflowError, RuntimeError)


class ParquetTrace:
    """Row groups of one Parquet file; see `fusetui.telemetry.source.Trace`. Thread-safe."""

    complete = True

    def __init__(self, path: Path, limits: Limits) -> None:
        """Raises TelemetryError when the file is damaged or does not fit the contract."""
        self._where = path.name
        self._limits = limits
        self._lock = threading.RLock()
        self._bad: dict[int, str] = {}
        self._dropped: dict[int, int] = {}
        self._index: BatchIndex | None = None
        try:
            self._file = _open(path, [])
            self._metadata = self._file.metadata
            if self._metadata.num_columns > MAX_COLUMNS:
                raise TelemetryError(self._where, f"{self._metadata.num_columns} columns are over the limit")
            leaves = self._metadata.schema
            self._leaf = {leaves.column(i).path: i for i in range(self._metadata.num_columns)}
            texts = [
                name
                for name in _TEXT_COLUMNS
                if name in self._leaf and leaves.column(self._leaf[name]).physical_type == "BYTE_ARRAY"
            ]
            self._file.close()
            self._file = _open(path, texts)
            schema = self._file.schema_arrow
        except _ERRORS as error:
            raise TelemetryError(self._where, f"not a whole Parquet file ({error})") from None
        self._gate = Gate(schema, self._where, limits)
        self._columns = [schema.field(number).name for number in self._gate.fields]
        self.header = Header.from_metadata(schema.metadata, self._where)

    @property
    def notes(self) -> Sequence[str]:
        with self._lock:
            dropped = sum(self._dropped.values())
            return (*([dropped_rows_note(self._where, dropped)] if dropped else []), *self._bad.values())

    def index(self) -> BatchIndex:
        with self._lock:
            if self._index is None:
                rows: list[tuple[int, int, int]] = []
                for number in range(self._metadata.num_row_groups):
                    rows.append(self._locate(number, rows[-1][1] if rows else 0))
                table = np.array(rows, np.int64).reshape(len(rows), 3)
                self._index = BatchIndex(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy())
            return self._index

    def read(self, number: int) -> pa.RecordBatch:
        where = f"{self._where} row group {number}"
        with self._lock:
            if not 0 <= number < self._metadata.num_row_groups:
                raise TelemetryError(where, f"there are {self._metadata.num_row_groups} row groups")
            try:
                self._check_size(number, where)
                batch, dropped = self._gate.conform(self._decode(number), where)
            except TelemetryError as error:
                self._bad[number] = str(error)
                raise
            except _ERRORS as error:
                failure = TelemetryError(where, f"damaged ({error or type(error).__name__})")
                self._bad[number] = str(failure)
                raise failure from None
            if dropped:
                self._dropped[number] = dropped
            return batch

    def refresh(self) -> bool:
        return False

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def _decode(self, number: int) -> pa.RecordBatch:
        table = self._file.read_row_group(number, columns=self._columns, use_threads=False)
        batches = table.select(self._columns).combine_chunks().to_batches()
        if not batches:
            return pa.RecordBatch.from_pylist([], schema=table.schema)
        return batches[0] if len(batches) == 1 else pa.concat_batches(batches)

    def _check_size(self, number: int, where: str) -> None:
        group = self._metadata.row_group(number)
        size = sum(group.column(i).total_uncompressed_size for i in range(group.num_columns))
        if group.num_rows > self._limits.rows or size > self._limits.batch:
            raise TelemetryError(
                where,
                f"{group.num_rows} rows, {size} bytes are over the limits",
                "write it again with row groups of at most 250000 rows",
            )

    def _locate(self, number: int, before: int) -> tuple[int, int, int]:
        """First and last event time and rows: from the statistics of end_ns when every row has it."""
        try:
            group = self._metadata.row_group(number)
            at = self._leaf.get("end_ns")
            statistics: Any = group.column(at).statistics if at is not None else None
            if statistics is not None and statistics.has_min_max and statistics.null_count == 0:
                low, high = statistics.min, statistics.max
                if isinstance(low, int) and isinstance(high, int) and -TIME_LIMIT <= low <= high <= TIME_LIMIT:
                    return low, high, group.num_rows
            times = event_time_ns(self.read(number))
        except (TelemetryError, *_ERRORS):
            # read() has put it into the notes.
            return before, before, 0
        return (int(times.min()), int(times.max()), len(times)) if len(times) else (before, before, 0)


def _open(path: Path, dictionaries: list[str]) -> pq.ParquetFile:
    return pq.ParquetFile(
        str(path),
        memory_map=False,
        read_dictionary=dictionaries,
        thrift_string_size_limit=16 << 20,
        thrift_container_size_limit=_MAX_ROW_GROUPS,
    )
