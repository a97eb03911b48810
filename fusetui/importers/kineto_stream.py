"""Kineto JSON decoded in windows: a few hundred kilobytes at a time, cut between two events.

A window is decoded by msgspec into typed structs that hold only what the importer needs (small windows stay in the
processor's cache: 256 KiB decodes in about half the time of 8 MiB). Windows of nothing but skippable events are
counted and passed over. A window that does not decode is walked event by event (`kineto_tolerant`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.kineto_compiles import UNSKIPPABLE
from fusetui.importers.kineto_tolerant import Damage, kineto_event, parse_top, walk
from fusetui.importers.kineto_types import Event, ExactEvent, Usual
from fusetui.telemetry.errors import TelemetryError

WINDOW: Final = 256 << 10
MAX_EVENT: Final = 16 << 20
MAX_HEAD: Final = 64 << 20
"""Longest event and longest text before the events that is believed; both only bound the memory."""

_NESTED = re.compile(rb'(?:\{\s*"traceEvents"\s*:\s*)?\[\s*')
_CATEGORY = re.compile(rb'\s*,?\s*\{\s*("ph"\s*:\s*"X"\s*,\s*"cat"\s*:\s*"([^"\\]*)")')
_GAP = re.compile(rb"[\s,]*")
_ANNOTATION: Final = b"user_annotation"
_STEP: Final = b"ProfilerStep#"
_NEAR: Final = 80  # a name follows the category within this
_BRACE: Final = ord("{")
_CLOSING = re.compile(rb"\s*\}\s*,?")


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the events of one kind of Chrome trace are found and decoded.

    opening    what stands before the first event
    separator  the end of an event and, in group 1, the beginning of the next, its indentation in group 2
    usual      decoder of a window in which every event has one of the usual phases
    plain      decoder of any window
    exact      decoder that keeps times as text
    build      an event from the keys of one that had to be mended
    remedy     what to say when there is no event array
    """

    opening: re.Pattern[bytes]
    separator: re.Pattern[bytes]
    usual: msgspec.json.Decoder[Any]
    plain: msgspec.json.Decoder[Any]
    exact: msgspec.json.Decoder[Any]
    build: Callable[[dict[str, Any]], Any]
    remedy: str


KINETO: Final = Dialect(
    opening=re.compile(rb'"traceEvents"\s*:\s*\[\s*'),
    separator=re.compile(rb'\}(\s*,\s*\{(\s*)"(?:ph|name|cat)")'),
    usual=msgspec.json.Decoder(list[Usual]),
    plain=msgspec.json.Decoder(list[Event]),
    exact=msgspec.json.Decoder(list[ExactEvent]),
    build=kineto_event,
    remedy="is it a PyTorch profiler trace?",
)


class EventStream:
    """The events of one file, window by window, and the keys around them.

    top      top-level keys of the file; complete once `windows` is exhausted
    damage   counts of what was skipped or mended
    skip     categories, the commonest first, whose events may be passed over undecoded (annotations that mark no
             step may be too)
    passed   events passed over so
    exact    decode times as text from now on; see `again_exactly`
    """

    def __init__(self, source: ByteStream, skip: Sequence[bytes], dialect: Dialect = KINETO) -> None:
        self._dialect = dialect
        self.top: dict[str, Any] = {}
        self.damage = Damage()
        self.skip = skip
        self.passed = 0
        self.exact = False
        self._source = source
        self._separator = b""
        self._nesting = 0
        self._current = b"", 0

    def windows(self) -> Iterator[list[Any]]:
        """Lists of events in file order. Raises TelemetryError when the file has no event array."""
        carry = self._open_array()
        ended = False
        while not ended:
            # Reading as much as is held keeps an oversized event linear in time.
            chunk = self._source.read(max(WINDOW, len(carry)))
            data = carry + chunk
            cut = self._cut(data) if chunk else len(data)
            if cut < 0:
                oversized = len(data) > MAX_EVENT
                self.damage.broken += oversized
                carry = b"" if oversized else data
                continue
            events, used, ended = self._decode(data, cut, not chunk)
            carry = data[used:]
            if events:
                yield events
            if not chunk or self.damage.cut:
                break
        self._finish(carry, ended)

    def again_exactly(self) -> list[Any]:
        """The window last yielded once more, its times as text; later windows come so too."""
        self.exact = True
        data, cut = self._current
        try:
            return self._fast(data, cut)
        except (msgspec.DecodeError, RecursionError):
            return walk(data[:cut], Damage(), True, self._dialect.build)[0]

    def _open_array(self) -> bytes:
        head = b""
        while True:
            chunk = self._source.read(max(WINDOW, len(head)))
            head += chunk
            found = self._dialect.opening.search(head)
            if found and (found.end() < len(head) or not chunk):
                break
            if not chunk or len(head) > MAX_HEAD:
                why = f" ({self._source.damage})" if self._source.damage else ""
                raise TelemetryError(self._source.where, f"no event array in it{why}", self._dialect.remedy)
        self.top.update(parse_top(head[: found.start()]))
        at = found.end()
        while nested := _NESTED.match(head, at):
            at = nested.end()
            self._nesting += 1
        return head[at:]

    def _cut(self, data: bytes) -> int:
        """Where the last event that is surely whole ends, -1 when there is none."""
        at = data.rfind(self._separator) if self._separator else -1
        if at < 0:  # the first window, or a file whose events do not all begin alike
            found = self._dialect.separator.search(data)
            if not found:
                return -1
            # Pretty-printed files show the boundary by their indentation; compact ones need the first key too.
            self._separator = found.group(0) if not found.group(2) else found.group(0)[: found.end(2) - found.start()]
            at = data.rfind(self._separator)
        return at + 1

    def _decode(self, data: bytes, cut: int, last: bool) -> tuple[list[Any], int, bool]:
        """Events of data[:cut], how many bytes they used, and whether the array ended."""
        self._current = data, cut
        if not last:
            if self._passes(data, cut):
                return [], cut, False
            try:
                return self._fast(data, cut), cut, False
            except (msgspec.DecodeError, RecursionError):
                pass  # the tolerant walk below counts what it cannot read
        events, used, ended = walk(data[:cut], self.damage, last, self._dialect.build)
        while ended and self._nesting:
            self._nesting -= 1
            closing = _CLOSING.match(data, used)
            used = closing.end() if closing else used
            more, further, ended = walk(data[used:cut], self.damage, last, self._dialect.build)
            events += more
            used += further
        return events, used, ended

    def _fast(self, data: bytes, cut: int) -> list[Any]:
        start = _GAP.match(data).end()  # type: ignore[union-attr]
        text = b"".join((b"[", memoryview(data)[start:cut], b"]"))
        if self.exact:
            return list(self._dialect.exact.decode(text))
        try:
            return list(self._dialect.usual.decode(text))
        except msgspec.ValidationError:  # a phase beyond the usual ones, or none
            return list(self._dialect.plain.decode(text))

    def _passes(self, data: bytes, cut: int) -> bool:
        """Whether data[:cut] holds skippable events only; then they are counted and need no decoding."""
        first = _CATEGORY.match(data) if self.skip else None
        if not first or first.group(2) not in (*self.skip, _ANNOTATION):
            return False
        if b"cpu_op" in self.skip and UNSKIPPABLE.search(data, 0, cut):
            return False
        opening = first.group(1).removesuffix(first.group(2) + b'"')
        # Each skippable event has two braces, its own and that of its args; any other event adds more.
        braces = int(np.count_nonzero(np.frombuffer(data, np.uint8, cut) == _BRACE))
        known = 0
        for category in self.skip:
            known += data.count(opening + category + b'"', 0, cut)
            if 2 * known == braces:
                break
        else:
            known += _annotations(data, cut, opening + _ANNOTATION + b'"')
            if 2 * known != braces:
                return False
        self.passed += known
        return True

    def _finish(self, rest: bytes, ended: bool) -> None:
        if self._source.damage:
            self.damage.endings.append(self._source.damage)
        if not ended:
            if not self.damage.cut:
                self.damage.endings.append("the closing ] of the events is missing")
            return
        while len(rest) < MAX_HEAD and (chunk := self._source.read(WINDOW)):
            rest += chunk
        for key, value in parse_top(b'{"":0' + rest).items():
            self.top.setdefault(key, value)


def _annotations(data: bytes, cut: int, prefix: bytes) -> int:
    """How many events in data[:cut] begin like `prefix`; 0 when one of them marks a step, which must be read."""
    count = 0
    at = data.find(prefix, 0, cut)
    while at >= 0:
        if _STEP in data[at : at + len(prefix) + _NEAR]:
            return 0
        count += 1
        at = data.find(prefix, at + 1, cut)
    return count
