"""The protobuf wire format, written: one small message at a time, or the same message for many rows at once.

A `Ragged` is one piece of many messages: a table of bytes with a row each, of which only some places count. Pieces
side by side make a message, so that tens of thousands of packets are written without a loop over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

VARINT: Final = 0
FIXED64: Final = 1
LENGTH: Final = 2
FIXED32: Final = 5
MAX_TAG: Final = (1 << 29) - 1

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_SHIFTS: Final = np.arange(10, dtype=np.uint64) * np.uint64(7)


def varint(value: int) -> bytes:
    """One number; a negative one as 64 bits of two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    """A field that is a number."""
    return varint(field << 3 | VARINT) + varint(value)


def content(field: int, value: bytes | str) -> bytes:
    """A field that is a text or a message."""
    raw = value.encode("utf-8", "replace") if isinstance(value, str) else value
    return varint(field << 3 | LENGTH) + varint(len(raw)) + raw


@dataclass(frozen=True, slots=True)
class Ragged:
    """One piece of each of n messages: octets [n, width] uint8, used [n, width] bool."""

    octets: npt.NDArray[np.uint8]
    used: Bools

    def sizes(self) -> Ints:
        """Bytes of each row, (n,)."""
        sizes: Ints = self.used.sum(axis=1, dtype=np.int64)
        return sizes

    def where(self, present: Bools) -> Ragged:
        """The same, with nothing in the rows that are not `present`."""
        return Ragged(self.octets, self.used & present[:, None])

    def tobytes(self) -> bytes:
        """All rows, one after the other."""
        return self.octets[self.used].tobytes()


def side_by_side(parts: Sequence[Ragged]) -> Ragged:
    """Each row the rows of all parts in turn."""
    return Ragged(np.hstack([p.octets for p in parts]), np.hstack([p.used for p in parts]))


def varints_of(values: Ints) -> Ragged:
    """The numbers (n,) without a tag; negative ones as 64 bits of two's complement."""
    groups = values.astype(np.uint64)[:, None] >> _SHIFTS
    used = groups != 0
    used[:, :1] = True
    width = int(used.any(axis=0).sum()) if len(values) else 1
    octets = (groups[:, :width] & np.uint64(0x7F)).astype(np.uint8)
    octets[:, :-1] |= used[:, 1:width].astype(np.uint8) << 7
    return Ragged(octets, used[:, :width])


def numbers(field: int, values: Ints) -> Ragged:
    """A field that is a number, for each of (n,) rows."""
    return side_by_side([_same(varint(field << 3 | VARINT), len(values)), varints_of(values)])


def doubles(field: int, values: npt.NDArray[np.float64]) -> Ragged:
    """A field that is a double, for each of (n,) rows."""
    return _eight_bytes(field, values.astype("<f8"))


def fixed(field: int, values: Ints) -> Ragged:
    """A field of fixed 64 bits, for each of (n,) rows."""
    return _eight_bytes(field, values.astype("<i8"))


def messages(field: int, parts: Sequence[Ragged]) -> Ragged:
    """A field that is a message of `parts`, for each row."""
    inner = side_by_side(parts)
    head = _same(varint(field << 3 | LENGTH), len(inner.octets))
    return side_by_side([head, varints_of(inner.sizes()), inner])


def _eight_bytes(field: int, values: npt.NDArray[np.generic]) -> Ragged:
    octets = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), 8)
    return side_by_side([_same(varint(field << 3 | FIXED64), len(values)), Ragged(octets, np.ones_like(octets, bool))])


def _same(raw: bytes, rows: int) -> Ragged:
    octets = np.tile(np.frombuffer(raw, np.uint8), (rows, 1))
    return Ragged(octets, np.ones_like(octets, bool))
