"""Whole lines of a text file, many at a time, and what stands in their fields."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from fusetui.importers.bytestream import ByteStream
from fusetui.telemetry.errors import TelemetryError

CHUNK_BYTES: Final = 1 << 20
_NUMBER: Final = r"^\s*-?\d{1,15}(\.\d{1,20})?(e-\d{1,2})?\s*$"


def line_chunks(stream: ByteStream) -> Iterator[bytes]:
    """Chunks of about CHUNK_BYTES that end with a line; raises TelemetryError for a line that is longer."""
    rest = b""
    while part := stream.read(CHUNK_BYTES):
        rest += part
        cut = rest.rfind(b"\n") + 1
        if cut:
            yield rest[:cut]
            rest = rest[cut:]
        elif len(rest) > 2 * CHUNK_BYTES:
            raise TelemetryError(stream.where, "a line of over 2 MiB", "is it really a text file of rows?")
    if rest:
        yield rest


class CsvRows:
    """Columns of a CSV file as text, a chunk of lines at a time.

    skipped  rows with another number of fields than the header
    """

    def __init__(self, stream: ByteStream, *, quoted: bool = False) -> None:
        """Reads the header line; `header` has its names without surrounding blanks and quotes.

        quoted  fields may stand in double quotes and then hold commas
        Raises TelemetryError when a name occurs twice.
        """
        self._quote: str | bool = '"' if quoted else False
        self._chunks = line_chunks(stream)
        first, _, self._rest = next(self._chunks, b"").partition(b"\n")
        self.header = header_fields(first)
        if len(set(self.header)) < len(self.header):
            raise TelemetryError(stream.where, "two columns of the table have the same name")
        self.skipped = 0

    def __iter__(self) -> Iterator[dict[str, pa.Array]]:
        yield from self._rows(self._rest)
        for chunk in self._chunks:
            yield from self._rows(chunk)

    def _rows(self, chunk: bytes) -> Iterator[dict[str, pa.Array]]:
        if not chunk.strip():
            return
        text = chunk.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}").encode()
        table = pyarrow.csv.read_csv(
            io.BytesIO(text),
            pyarrow.csv.ReadOptions(use_threads=False, column_names=self.header, block_size=4 * CHUNK_BYTES),
            pyarrow.csv.ParseOptions(invalid_row_handler=self._skip, quote_char=self._quote),
            pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(self.header, pa.utf8()), strings_can_be_null=False),
        ).combine_chunks()
        if table.num_rows:
            yield {name: table.column(name).chunk(0) for name in self.header}

    def _skip(self, _row: object) -> str:
        self.skipped += 1
        return "skip"


def header_fields(line: bytes) -> list[str]:
    """The names in the first line of a CSV file."""
    text = line.decode("utf-8", "replace").lstrip("\ufeff")
    return [name.strip(' "\r\n\t') for name in text.split(",")]


def numbers(column: pa.Array) -> npt.NDArray[np.float64]:
    """Plain decimal numbers of a text column, shape (rows,); NaN where there is none."""
    plain = pc.match_substring_regex(column, _NUMBER)
    texts = pc.if_else(plain, pc.utf8_trim_whitespace(column), pa.scalar("nan"))
    found: npt.NDArray[np.float64] = texts.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return found


def words_in(column: pa.Array, known: Sequence[str]) -> npt.NDArray[np.int64]:
    """Position of each text in `known`, -1 where it is none of them."""
    found = pc.index_in(column, pa.array(known, pa.utf8()))
    positions: npt.NDArray[np.int64] = pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return positions
