"""A hash of what rows say: the same for the same rows however they are cut into batches, encoded, packed or dated."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fusetui.telemetry.schema import SCHEMA

_VERSION: Final = b"fusetui-rows-1\n"


class ContentHash:
    """sha256 over canonical rows in their order; columns without any value do not count.

    Of each column two streams are hashed: which rows have a value, and the values one after the other (integers and
    floats as 8 little-endian bytes, texts as their UTF-8 bytes with all lengths in a third stream).
    """

    def __init__(self) -> None:
        self.rows = 0
        self._columns = {name: (sha256(), sha256(), sha256()) for name in SCHEMA.names}
        self._told = dict.fromkeys(SCHEMA.names, 0)

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in one canonical batch."""
        self.rows += len(batch)
        for field in SCHEMA:
            column = batch.column(field.name)
            valid, values, lengths = self._columns[field.name]
            present = pc.is_valid(column).to_numpy(zero_copy_only=False)
            valid.update(present.astype(np.uint8).tobytes())
            self._told[field.name] += int(present.sum())
            column = column.drop_null()
            if isinstance(field.type, pa.DictionaryType):
                text = column.cast(pa.utf8())
                lengths.update(pc.binary_length(text).to_numpy(zero_copy_only=False).astype("<i8").tobytes())
                values.update("".join(text.to_pylist()).encode("utf-8", "surrogatepass"))
            else:
                values.update(_eight_bytes(column))

    def digest(self) -> str:
        """`sha256:` and 64 hexadecimal digits."""
        whole = sha256(_VERSION + f"{self.rows}\n".encode())
        for name, hashes in self._columns.items():
            if self._told[name]:
                whole.update(f"{name} {' '.join(part.hexdigest() for part in hashes)}\n".encode())
        return f"sha256:{whole.hexdigest()}"


def _eight_bytes(column: pa.Array) -> bytes:
    values: Any = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind == "f":
        # Minus zero is zero.
        return bytes((values.astype("<f8") + 0.0).tobytes())
    return bytes(values.astype("<i8").tobytes())
