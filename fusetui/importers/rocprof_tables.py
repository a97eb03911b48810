"""Rows of the CSV tables that AMD's profilers write, with one spelling of their columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.devicework import DeviceWork, Ints
from fusetui.importers.lines import CsvRows, header_fields, numbers
from fusetui.importers.sqlitefile import NULL
from fusetui.telemetry.errors import TelemetryError

_MOST_DIGITS: Final = 18
_INTEGER: Final = r"^\s*\d{1,18}\s*$"
_AGENT: Final = r"^\s*(?:Agent\s+)?(?P<number>\d{1,9})\s*$"
_CORRELATION_BITS: Final = 44
_ALIASES: Final = {"correlationid": "correlation_id", "pid": "process_id", "tid": "thread_id", "gpu_id": "agent_id"}

Columns = dict[str, pa.Array]


def columns_of(head: bytes) -> frozenset[str]:
    """The columns that a table beginning with `head` has, in one spelling: lower case with underscores."""
    line = head[: 1 << 18].partition(b"\n")[0]
    return frozenset(map(_spelling, header_fields(line))) if line.count(b",") >= 2 else frozenset()


def _spelling(name: str) -> str:
    plain = name.strip().lower().replace("-", "_")
    return _ALIASES.get(plain, plain)


class Table:
    """One CSV table, walked once.

    columns  its columns in one spelling, and as the file spells them
    skipped  rows that were no rows of it
    damage   what ended it early, "" for nothing
    """

    def __init__(self, path: Path) -> None:
        self.path, self.skipped, self.damage = path, 0, ""
        with ByteStream(path) as stream:
            head = stream.read(1 << 18)
        known = columns_of(head)
        names = header_fields(head.partition(b"\n")[0]) if known else []
        self.columns = {_spelling(name): name for name in names}

    def chunks(self, *wanted: str) -> Iterator[Columns]:
        """The wanted columns that it has, as text, some ten thousand rows at a time."""
        with ByteStream(self.path) as stream:
            try:
                rows = CsvRows(stream, quoted=True)
                picked = {name: self.columns[name] for name in wanted if name in self.columns}
                for chunk in rows:
                    yield {name: chunk[own] for name, own in picked.items()}
            except pa.ArrowInvalid as error:
                raise TelemetryError(stream.where, f"no table can be read in it ({error})") from None
            self.skipped, self.damage = rows.skipped, stream.damage


def integers(columns: Columns, name: str) -> Ints:
    """Whole numbers of a column, shape (rows,); NULL where there is none."""
    column = columns.get(name)
    if column is None:
        return np.full(len(next(iter(columns.values()))), NULL)
    if pc.all(pc.ascii_is_decimal(column)).as_py() and pc.max(pc.binary_length(column)).as_py() <= _MOST_DIGITS:
        every: Ints = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return every
    plain = pc.match_substring_regex(column, _INTEGER)
    texts = pc.if_else(plain, pc.utf8_trim_whitespace(column), pa.scalar(str(NULL)))
    found: Ints = texts.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return found


def agents(columns: Columns, name: str) -> Ints:
    """Numbers of agents, written `Agent 4` or 4, shape (rows,); -1 where there is none."""
    column = columns.get(name)
    if column is None:
        return np.full(len(next(iter(columns.values()))), -1)
    found = pc.struct_field(pc.extract_regex(column, _AGENT), "number")
    values: Ints = pc.fill_null(found.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    return np.where(values < 1 << 31, values, -1)


def words(column: pa.Array) -> tuple[list[str], Ints]:
    """The different texts of a column, and which of them each row has."""
    encoded = column.dictionary_encode()
    index: Ints = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return encoded.dictionary.to_pylist(), index


def key_of(process: int, correlation: Ints) -> Ints:
    """One correlation key of process number and id."""
    good = (correlation > 0) & (correlation < 1 << _CORRELATION_BITS)
    return np.where(good, (process << _CORRELATION_BITS) | correlation, 0)


def take_counted(table: Table, found: DeviceWork, prefix: str) -> int:
    """A table with one row per dispatch and counter, with times: each run is an execution, its counts are counters.

    Returns the number of runs. A kernel is run again for every pass of counters, under the same dispatch number.
    """
    seen: set[tuple[int, int]] = set()
    wanted = (
        "kernel_name",
        "start_timestamp",
        "end_timestamp",
        "agent_id",
        "queue_id",
        "counter_name",
        "counter_value",
    )
    for columns in table.chunks(*wanted):
        start, end = integers(columns, "start_timestamp"), integers(columns, "end_timestamp")
        device = agents(columns, "agent_id")
        runs, first = np.unique(np.stack([start, device]), axis=1, return_index=True)
        new = np.array([pair not in seen for pair in zip(*runs.tolist(), strict=True)], np.bool_)
        seen.update(zip(*runs.tolist(), strict=True))
        rows = first[new]
        texts, index = words(columns["kernel_name"])
        found.add_work(
            start[rows],
            end[rows],
            correlation=0,
            device=device[rows],
            stream=queue_codes(found, columns, prefix)[rows],
            name=found.names.codes(texts)[index][rows],
        )
        counters, which = words(columns["counter_name"])
        values = numbers(columns["counter_value"])
        found.add_readings(end, values, name=found.names.codes(counters)[which], unit=-1, device=device)
    return len(seen)


def queue_codes(found: DeviceWork, columns: Columns, prefix: str) -> npt.NDArray[np.int64]:
    """Stream code of each row: its queue, behind `prefix`; -1 where it has none."""
    queue = integers(columns, "queue_id")
    different, index = np.unique(queue, return_inverse=True)
    own = [-1 if value == NULL else found.streams[f"{prefix}{value}"] for value in different.tolist()]
    return np.array(own, np.int64)[index]
