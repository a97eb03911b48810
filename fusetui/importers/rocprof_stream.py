"""The record arrays of a rocprofv3 JSON file, a few hundred kilobytes at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.rocprof_types import KINDS, WHOLE

_WINDOW: Final = 256 << 10
_MAX_RECORD: Final = 4 << 20
_MAX_WHOLE: Final = 8 << 20
_MAX_BROKEN: Final = 20_000
_LONGEST_KEY: Final = 64
_JSON: Final = json.JSONDecoder()
_KEY = re.compile(rb'"(' + b"|".join(key.encode() for key in (*KINDS, *WHOLE)) + rb')"\s*:\s*([\[{])')
_BOUNDARY = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:size|kind|key)"\s*:)')


class ArrayStream:
    """Arrays of one file by their key.

    broken   records that could not be read
    endings  remarks about how the file ends
    """

    def __init__(self, source: ByteStream) -> None:
        self.broken = 0
        self.endings: list[str] = []
        self._source = source
        self._data = b""
        self._done = False

    def arrays(self) -> Iterator[tuple[str, Any]]:
        """(key, records) in file order, a long array in several parts; of the keys in WHOLE the value as it is."""
        while (found := self._next_key()) is not None:
            key, opening = found
            if key in WHOLE:
                if (key == "metadata") == (opening == b"{"):
                    yield key, self._whole(opening)
            elif opening == b"[":
                yield from ((key, part) for part in self._parts(key))
            if self.broken > _MAX_BROKEN:
                self.endings.append(f"reading stopped after {_MAX_BROKEN:,} unreadable records")
                break
        if self._source.damage:
            self.endings.append(self._source.damage)

    def _more(self) -> bool:
        chunk = b"" if self._done else self._source.read(max(_WINDOW, len(self._data)))
        self._done = not chunk
        self._data += chunk
        return bool(chunk)

    def _next_key(self) -> tuple[str, bytes] | None:
        while True:
            if found := _KEY.search(self._data):
                self._data = self._data[found.end() :]
                return found[1].decode(), found[2]
            # A key may be cut in two at the end of the window.
            self._data = self._data[-_LONGEST_KEY:]
            if not self._more():
                return None

    def _whole(self, opening: bytes) -> Any:
        """The value after a key that is decoded at once; None when it cannot be."""
        self._data = opening + self._data
        while True:
            try:
                text = self._data[:_MAX_WHOLE].decode("utf-8", "surrogateescape")
                value, end = _JSON.raw_decode(text)
            except (ValueError, RecursionError):
                if len(self._data) >= _MAX_WHOLE or not self._more():
                    self.broken += 1
                    self._data = self._data[1:]
                    return None
                continue
            self._data = self._data[len(text[:end].encode("utf-8", "surrogateescape")) :]
            return value

    def _parts(self, key: str) -> Iterator[list[Any]]:
        many, one = KINDS[key]
        while True:
            end = self._end_of_array()
            cut = end if end >= 0 else _last_boundary(self._data)
            if cut < 0:
                if len(self._data) > _MAX_RECORD or not self._more():
                    self._break_off(key)
                    return
                continue
            piece = self._data[:cut].strip(b", \t\r\n")
            if piece:
                yield self._decode(piece, many, one)
            self._data = self._data[cut:]
            if end >= 0:
                return

    def _break_off(self, key: str) -> None:
        if len(self._data) <= _MAX_RECORD:
            self.endings.append(f"the file ends inside {key}")
        else:
            self.broken += 1

    def _end_of_array(self) -> int:
        """Where the `]` that closes the array stands when it is in the window, else -1."""
        at = 0
        while (end := self._data.find(b"]", at)) >= 0:
            before = self._data[:end].rstrip()[-1:]
            after = self._data[end + 1 : end + 64].lstrip()[:1]
            # Records hold no arrays of objects, so a `]` between a `}` (or nothing) and the next key closes it.
            if before in (b"}", b"") and after in (b",", b"}", b""):
                return end
            at = end + 1
        return -1

    def _decode(self, piece: bytes, many: Any, one: Any) -> list[Any]:
        try:
            found: list[Any] = many.decode(b"".join((b"[", piece, b"]")))
            return found
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            pass  # one by one below, counting what cannot be read
        found, at = [], 0
        for stop in [*(m.start() + 1 for m in _BOUNDARY.finditer(piece)), len(piece)]:
            try:
                found.append(one.decode(piece[at:stop].lstrip(b", \t\r\n")))
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                self.broken += 1
            at = stop
        return found


def _last_boundary(data: bytes) -> int:
    """Where the last record that is surely whole ends, -1 when there is none."""
    reach = len(data)
    while reach > 0:
        low = max(0, reach - (64 << 10))
        found = [match.start() for match in _BOUNDARY.finditer(data, low)]
        if found:
            return found[-1] + 1
        reach = low
    return -1
