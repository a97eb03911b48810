"""Events of an ONNX Runtime profile, a few hundred kilobytes at a time, cut between two events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from fusetui.importers.bytestream import ByteStream

_WINDOW: Final = 256 << 10
_MAX_EVENT: Final = 4 << 20
_MAX_BROKEN: Final = 20_000
_BOUNDARY = re.compile(rb'\}\s*,\s*(?=\{\s*"(?:cat|pid|tid|dur|ts|ph|name|args)"\s*:)')
_OPENING = re.compile(rb"\s*\[\s*")
_TYPES: Final = {
    "float": "f32",
    "double": "f64",
    "float16": "f16",
    "bfloat16": "bf16",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint8": "u8",
    "bool": "bool",
}
_MAX_OPERANDS: Final = 16


class MainThread(msgspec.Struct, gc=False):
    """Where the thread that ran a node was."""

    core: Any = None


class Scheduling(msgspec.Struct, gc=False):
    """`thread_scheduling_stats`."""

    main_thread: MainThread | None = None


class Args(msgspec.Struct, gc=False):
    """Arguments of an event. Numbers are untyped: an odd one must not cost the event."""

    op_name: str = ""
    provider: str = ""
    inputs: Any = msgspec.field(default=None, name="input_type_shape")
    outputs: Any = msgspec.field(default=None, name="output_type_shape")
    scheduling: Scheduling | None = msgspec.field(default=None, name="thread_scheduling_stats")


class Event(msgspec.Struct, gc=False):
    """One event; ts and dur in microseconds."""

    cat: str = ""
    name: str = ""
    ts: Any = None
    dur: Any = None
    tid: Any = None
    args: Args = msgspec.field(default_factory=Args)


class EventPieces:
    """The events of one file.

    broken   events that could not be read
    endings  remarks about how the file ends
    """

    def __init__(self, source: ByteStream, kind: type[Any] = Event) -> None:
        """kind: the msgspec struct of an event."""
        self._many, self._one = msgspec.json.Decoder(list[kind]), msgspec.json.Decoder(kind)  # type: ignore[valid-type]
        self.broken = 0
        self.endings: list[str] = []
        self._source = source

    def windows(self) -> Iterator[list[Any]]:
        """Lists of events in file order."""
        opening = True
        carry = b""
        while self.broken <= _MAX_BROKEN:
            chunk = self._source.read(max(_WINDOW, len(carry)))
            data = carry + chunk
            if opening and data:
                data, opening = data.removeprefix(b"\xef\xbb\xbf"), False
                data = data[found.end() :] if (found := _OPENING.match(data)) else data
            if not chunk:
                yield self._last(data)
                break
            cut = _last_boundary(data)
            if cut < 0:
                self.broken += len(data) > _MAX_EVENT
                carry = b"" if len(data) > _MAX_EVENT else data
                continue
            yield self._decode(data[:cut])
            carry = data[cut:].lstrip(b", \t\r\n")
        else:
            self.endings.append(f"reading stopped after {_MAX_BROKEN:,} unreadable events")
        if self._source.damage:
            self.endings.append(self._source.damage)

    def _last(self, data: bytes) -> list[Any]:
        text = data.rstrip()
        closed = text.endswith(b"]")
        text = text[:-1] if closed else text
        if not closed:
            self.endings.append("the closing ] of the events is missing: was the session ended before the copy?")
        return self._decode(text.rstrip().rstrip(b","))

    def _decode(self, text: bytes) -> list[Any]:
        if not text.strip():
            return []
        try:
            return self._many.decode(b"".join((b"[", text, b"]")))
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            pass  # one by one below, counting what cannot be read
        found: list[Any] = []
        for piece in _pieces(text):
            try:
                found.append(self._one.decode(piece))
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                self.broken += 1
        return found


def _pieces(text: bytes) -> Iterator[bytes]:
    at = 0
    for boundary in _BOUNDARY.finditer(text):
        yield text[at : boundary.start() + 1]
        at = boundary.end()
    yield text[at:]


def _last_boundary(data: bytes) -> int:
    """Where the last event that is surely whole ends, -1 when there is none."""
    reach = len(data)
    while reach > 0:
        low = max(0, reach - (64 << 10))
        found = [match.start() for match in _BOUNDARY.finditer(data, low)]
        if found:
            return found[-1] + 1
        reach = low
    return -1


def shape_key(inputs: Any, outputs: Any) -> str | None:
    """`4x64x256 256 > 4x64x256 f32` from the lists of {type: sizes} of a node; None without any tensor.

    The result is what a weight that was packed ahead, and is no input then, can be told from.
    """
    left, right = _operands(inputs), _operands(outputs)[:1]
    if not left:
        return None
    cut = left[:_MAX_OPERANDS]
    kinds = {kind for _, kind in (*cut, *right)}
    if len(kinds) == 1:
        (kind,) = kinds
        words = [size for size, _ in cut] + [f"> {size}" for size, _ in right] + [kind]
    else:
        words = [_typed(part) for part in cut] + [f"> {_typed(part)}" for part in right]
    return " ".join(word for word in words if word)


def _typed(part: tuple[str, str]) -> str:
    size, kind = part
    return f"{size}:{kind}" if kind else size


def _operands(value: Any) -> list[tuple[str, str]]:
    found = []
    for entry in value[: 4 * _MAX_OPERANDS] if isinstance(value, list) else ():
        for kind, sizes in entry.items() if isinstance(entry, dict) else ():
            if isinstance(sizes, list) and 0 < len(sizes) <= _MAX_OPERANDS and all(type(s) is int for s in sizes):
                found.append(("x".join(map(str, sizes)), _TYPES.get(kind, "")))
    return found
