"""Rows of the contract as CSV or JSON lines: what `fusetui export` writes, or anybody with the contract's columns.

`kind`, `name` and a time are needed, every other column is optional and unknown ones are passed over; a field that is
empty, missing or null is absent. Rows may stand in any order. Times after March 1973 count from the epoch.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.contract_table import ContractTable
from fusetui.importers.lines import CsvRows, header_fields, line_chunks
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import KINDS, REQUIRED, SCHEMA

NAME: Final = "rows of the contract (CSV, JSON lines)"

_FIRST: Final = re.compile(rb'\{[^{}\n]*"kind"\s*:\s*"(?:' + "|".join(KINDS).encode() + rb')"[^{}\n]*\}')
_TIME: Final = re.compile(rb'"(?:start|end|enqueue)_ns"\s*:\s*-?\d')
_WHOLE: Final = r"^\s*-?(\d{1,18}|[1-8]\d{18})\s*$"  # within 63 bits
_REAL: Final = r"^\s*-?(\d{1,20}\.?\d{0,20}|\.\d{1,20})([eE][-+]?\d{1,3})?\s*$"
_BOM: Final = b"\xef\xbb\xbf \t\r\n"
_TEXTS: Final = tuple(f.name for f in SCHEMA if isinstance(f.type, pa.DictionaryType))
_Record: Final = msgspec.defstruct(
    "_Record",
    [
        (f.name, str | None if f.name in _TEXTS else float | None if f.type == pa.float64() else int | None, None)
        for f in SCHEMA
    ],
)
_DECODER: Final = msgspec.json.Decoder(_Record)


def sniff(head: bytes) -> bool:
    """A CSV header with the columns that are needed, or a first line with a kind and a time."""
    first = head.lstrip(_BOM).partition(b"\n")[0][:8192]
    if first.startswith(b"{"):
        return bool(_FIRST.match(first) and _TIME.search(first) and b'"name"' in first)
    return set(header_fields(first)) >= set(REQUIRED)


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a file. Raises TelemetryError when no row in it is one."""
    table = ContractTable(memory_bytes)
    with ByteStream(path) as stream:
        bad = _take_csv(stream, table) if _is_csv(path) else _take_lines(stream, table)
        notes = [f"{stream.damage}; what came before was read"] if stream.damage else []
    if bad := bad + table.left_out:
        notes.append(f"rows left out, a value is impossible or of a wrong type: {bad:,}")
    if not len(table):
        raise TelemetryError(str(path), f"{NAME} without one readable row", "kind, name and a time are needed")
    return Capture(Header(source="contract-rows", clock=table.clock), table.batches(), [*notes, *table.notes()])


def _is_csv(path: Path) -> bool:
    with ByteStream(path) as stream:
        return not stream.read(4096).lstrip(_BOM).startswith(b"{")


def _take_csv(stream: ByteStream, table: ContractTable) -> int:
    """How many rows were no rows of the table or had fields of a wrong type."""
    rows, bad = CsvRows(stream, quoted=True), 0
    for columns in rows:
        typed = {name: _typed(name, column) for name, column in columns.items() if name in SCHEMA.names}
        good = np.ones(len(next(iter(columns.values()))), np.bool_)
        for _, wrong in typed.values():
            good &= ~wrong
        bad += int((~good).sum())
        kept = pa.array(good)
        table.take({name: values.filter(kept) for name, (values, _) in typed.items()})
    return bad + rows.skipped


def _typed(name: str, column: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """The values of a text column, null where empty, and which are no values of the contract's type."""
    empty = pc.equal(pc.utf8_trim_whitespace(column), "")
    texts = pc.if_else(empty, pa.scalar(None, pa.utf8()), column)
    if name in _TEXTS:
        return texts, np.zeros(len(column), np.bool_)
    kind = SCHEMA.field(name).type
    plain = pc.match_substring_regex(column, _REAL if kind == pa.float64() else _WHOLE)
    wrong = pc.and_not(pc.invert(plain), empty)
    values = pc.if_else(plain, pc.utf8_trim_whitespace(texts), pa.scalar(None, pa.utf8()))
    return values.cast(pa.float64() if kind == pa.float64() else pa.int64()), wrong.to_numpy(zero_copy_only=False)


def _take_lines(stream: ByteStream, table: ContractTable) -> int:
    """How many lines were none."""
    bad = 0
    for chunk in line_chunks(stream):
        records, failed = _decoded(chunk)
        bad += failed
        if records:
            table.take({name: _column(name, records) for name in SCHEMA.names})
    return bad


def _decoded(chunk: bytes) -> tuple[list[Any], int]:
    try:
        return _DECODER.decode_lines(chunk), 0
    except (msgspec.DecodeError, UnicodeDecodeError):
        records, bad = [], 0
    for line in io.BytesIO(chunk):
        try:
            records.append(_DECODER.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError):
            bad += bool(line.strip())
    return records, bad


def _column(name: str, records: list[Any]) -> pa.Array:
    kind = pa.utf8() if name in _TEXTS else pa.float64() if SCHEMA.field(name).type == pa.float64() else pa.int64()
    return pa.array(list(_values(name, records)), kind)


def _values(name: str, records: list[Any]) -> Iterator[Any]:
    limit = 1 << 63
    for record in records:
        value = getattr(record, name)
        # Beyond 64 bits it is no value of any column.
        yield None if type(value) is int and not -limit <= value < limit else value
