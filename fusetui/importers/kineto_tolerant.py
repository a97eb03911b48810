"""The slow way through a window that is not proper JSON: event by event, mending what can be mended.

Profilers have written raw control characters, inf and NaN, trailing commas, single backslashes, unescaped quotes
and half files. Each event is tried as it stands, then mended, then skipped and counted; reading goes on at the next.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec

from fusetui.importers.kineto_types import EMPTY, NO_ARGS, Args, Event

MAX_DIGITS: Final = 40
MAX_BROKEN: Final = 20_000
"""More unreadable events than this and the file is not worth reading on."""
_RETRIES: Final = 32  # per window, so that hostile files stay linear
_SLICE: Final = 64 << 10

_GAP = re.compile(r"[\s,]*")
_BOUNDARY = re.compile(r'\}\s*,\s*(?=\{\s*"(?:ph|name|cat|args|pid|tid|ts|id|s)"\s*:)')
_ARRAY_END = re.compile(r'\}\s*(?=\]\s*(?:,\s*"[^"]*"\s*:|\}|\Z))')
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|,(?=\s*[}\]])|[-+]?\b(?:nan|inf(?:inity)?)\b', re.IGNORECASE | re.DOTALL)
_BAD_ESCAPE = re.compile(r'\\(\\|["/bfnrt]|u[0-9a-fA-F]{4})|\\')
_TOP_KEY = re.compile(r'"(baseTimeNanoseconds|schemaVersion|host_name|rank)"\s*:\s*("?)([^",}\]\s]{1,200})\2')

Built = TypeVar("Built")


@dataclass(slots=True)
class Damage:
    """What was wrong with a file.

    broken   events skipped as unreadable
    mended   events read after a repair
    cut      the file ends in the middle of an event
    endings  remarks about how the file ends
    """

    broken: int = 0
    mended: int = 0
    cut: bool = False
    endings: list[str] = field(default_factory=list)


def _as_written(text: str) -> str:
    """Fractions stay text, so that times stay exact."""
    return text


def _integer(text: str) -> int | None:
    return int(text) if len(text) <= MAX_DIGITS else None


_JSON: Final = json.JSONDecoder(
    strict=False, parse_float=_as_written, parse_int=_integer, parse_constant=lambda _: None
)


def walk(
    data: bytes, damage: Damage, last: bool, build: Callable[[dict[str, Any]], Built]
) -> tuple[list[Built], int, bool]:
    """Events of a window, the bytes used up, and whether the events array ended there.

    last   nothing follows: an unfinished event is a cut, not something to look at again with more bytes
    build  an event from its decoded keys
    """
    text = data.decode("latin-1")  # one character per byte, so that positions are byte offsets
    events: list[Built] = []
    at, end, retries = 0, 0, _RETRIES
    while damage.broken <= MAX_BROKEN:
        at = _GAP.match(text, at).end()  # type: ignore[union-attr]
        if at >= len(text):
            return events, at, False
        if text[at] == "]":
            return events, at + 1, True
        if end <= at:
            end = _piece_end(text, at)
        found, after = _decoded(text, at, end)
        if after < 0 and end < len(text) and retries:
            retries -= 1
            found, after = _decoded(text, at, len(text))  # what looked like a boundary may lie inside the event
        if after < 0 and end > len(text):
            return (events, *_unfinished(text, at, damage, last))
        if after < 0:
            found, after = _mended(_utf8(text[at:end])), end
            damage.mended += found is not None
        elif not text.isascii() and not text[at:after].isascii():
            found, _ = _decoded(whole := _utf8(text[at:after]), 0, len(whole))
        at = after
        if isinstance(found, dict):
            events.append(build(found))
        else:
            damage.broken += 1
    damage.cut = True
    damage.endings.append(f"reading stopped after {MAX_BROKEN:,} unreadable events")
    return events, len(text), False


def _decoded(text: str, at: int, end: int) -> tuple[Any, int]:
    """The JSON value at `at` and where it ends, -1 when there is none."""
    try:
        if end - at > _SLICE:
            return _JSON.raw_decode(text, at)
        # A slice keeps a failure cheap: the error counts the lines of all the text it was given.
        found, length = _JSON.raw_decode(text[at:end])
        return found, at + length
    except (ValueError, RecursionError):
        return None, -1


def _utf8(piece: str) -> str:
    """A piece that has one character per byte as the text it is; undecodable bytes become the replacement character."""
    return piece.encode("latin-1").decode("utf-8", "replace")


def _unfinished(text: str, at: int, damage: Damage, last: bool) -> tuple[int, bool]:
    if not last:
        return at, False
    damage.cut = True
    damage.endings.append("the file ends in the middle of an event")
    return len(text), False


def _piece_end(text: str, at: int) -> int:
    """End of the event that begins at `at`: before the next one or the end of the array; beyond the text if neither."""
    boundary = _BOUNDARY.search(text, at)
    closing = _ARRAY_END.search(text, at, boundary.start() + 1 if boundary else len(text))
    nearest = closing or boundary
    return nearest.start() + 1 if nearest else len(text) + 1


def _mended(piece: str) -> Any:
    """The event after the known repairs, None when it still is not JSON."""
    piece = _TOKEN.sub(_mend_token, piece)
    found, end = _decoded(piece, 0, len(piece))
    return found if end >= 0 and not piece[end:].strip() else None


def _mend_token(match: re.Match[str]) -> str:
    token = match.group(0)
    if token.startswith('"'):
        return _BAD_ESCAPE.sub(lambda m: m.group(0) if m.group(1) else "\\\\", token)
    return "" if token == "," else "null"


def text_of(value: Any) -> str:
    """A string field; "" when it is absent."""
    return "" if value is None else str(value)


def kineto_event(found: dict[str, Any]) -> Event:
    """The event from its decoded keys."""
    args = found.get("args")
    return Event(
        ph=text_of(found.get("ph")),
        cat=text_of(found.get("cat")),
        name=text_of(found.get("name")),
        ts=found.get("ts"),
        dur=found.get("dur"),
        pid=found.get("pid"),
        tid=found.get("tid"),
        args=_args(args) if isinstance(args, dict) else NO_ARGS,
    )


def _args(args: dict[str, Any]) -> Args:
    return Args(
        correlation=args.get("correlation"),
        stream=args.get("stream"),
        device=args.get("device"),
        external=args.get("External id"),
        external_2021=args.get("external id"),
        dims=msgspec.Raw(json.dumps(args["Input Dims"]).encode()) if "Input Dims" in args else EMPTY,
        dtypes=msgspec.Raw(json.dumps(args["Input type"]).encode()) if "Input type" in args else EMPTY,
        allocated=args.get("Total Allocated"),
        device_id=args.get("Device Id"),
    )


def parse_top(text: bytes) -> dict[str, Any]:
    """Top-level keys from the part of a file before or after its events, as many as can be read."""
    body = text.decode("utf-8", "replace").strip().rstrip(",")
    if not body.startswith("{"):
        return {}
    for candidate in (body, body + "}", body.rstrip("}")):
        try:
            found, _ = _JSON.raw_decode(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            found.pop("", None)
            return found
    return {key: value for key, _, value in _TOP_KEY.findall(body)}
