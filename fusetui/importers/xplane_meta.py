"""What a plane of an XPlane profile says of itself: its name, the names of its events and statistics, its facts."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final

from fusetui.importers.protowire import FIXED64, LENGTH, VARINT, Spans
from fusetui.telemetry.text import safe_text

_NAME, _LINES, _EVENT_NAMES, _STAT_NAMES, _STATS = 2, 3, 4, 5, 6
_PROGRAMS: Final = "/host:metadata"
_MOST_NAMES: Final = 1 << 20
_LONGEST: Final = 1 << 16


@dataclass(slots=True)
class Plane:
    """One plane.

    lines        (start, size) of each line in the file
    event_names  by metadata id
    stat_names   by metadata id; a statistic may also point to one as its value
    facts        statistics of the plane itself
    full         there were more names than are kept
    """

    name: str = ""
    lines: list[tuple[int, int]] = field(default_factory=list)
    event_names: dict[int, str] = field(default_factory=dict)
    stat_names: dict[int, str] = field(default_factory=dict)
    facts: dict[str, str | int | float] = field(default_factory=dict)
    full: bool = False


def plane_at(spans: Spans, start: int, size: int, room: int) -> Plane:
    """The plane in a span of the file, its lines unread.

    room  bytes of names to keep at most
    """
    plane = Plane()
    facts: list[tuple[int, int]] = []
    for number, wire, at, length in spans.fields(start, start + size):
        if wire != LENGTH:
            continue
        if number == _NAME:
            plane.name = _text(spans, at, length)
        elif number == _LINES:
            plane.lines.append((at, length))
        elif number == _EVENT_NAMES and plane.name == _PROGRAMS:
            continue  # whole programs: there is no event to name
        elif number in (_EVENT_NAMES, _STAT_NAMES):
            names = plane.event_names if number == _EVENT_NAMES else plane.stat_names
            key, name = _entry(spans, at, length)
            room -= len(name) + 100
            if room < 0 or len(names) >= _MOST_NAMES:
                plane.full = True
            else:
                names[key] = name
        elif number == _STATS and len(facts) < 256:
            facts.append((at, length))
    for at, length in facts:
        name, value = _fact(spans, at, length, plane.stat_names)
        if value is not None:
            plane.facts[name] = value
    return plane


def line_at(spans: Spans, start: int, size: int) -> tuple[str, int]:
    """The name and the time base (ns) of the line in a span: what stands before its first event."""
    name, display, base_ns = "", "", 0
    for number, wire, value, length in spans.fields(start, start + size):
        if number == 2 and wire == LENGTH:
            name = _text(spans, value, length)
        elif number == 11 and wire == LENGTH:
            display = _text(spans, value, length)
        elif number == 3 and wire == VARINT:
            base_ns = value - (1 << 64) if value >= 1 << 63 else value
        elif number == 4:
            break
    return display or name, base_ns


def _entry(spans: Spans, start: int, size: int) -> tuple[int, str]:
    """Key and name of one entry of the maps from ids to metadata."""
    key, name, display = 0, "", ""
    for number, wire, value, length in spans.fields(start, start + size):
        if number == 1 and wire == VARINT:
            key = value
        elif number == 2 and wire == LENGTH:
            for inner, kind, at, extent in spans.fields(value, value + length):
                if inner == 2 and kind == LENGTH:
                    name = _text(spans, at, extent)
                elif inner == 4 and kind == LENGTH:
                    display = _text(spans, at, extent)
    return key, display or name


def _fact(spans: Spans, start: int, size: int, names: dict[int, str]) -> tuple[str, str | int | float | None]:
    key, found = 0, None
    for number, wire, value, length in spans.fields(start, start + size):
        if number == 1 and wire == VARINT:
            key = value
        elif number == 2 and wire == FIXED64:
            (found,) = struct.unpack("<d", spans.bytes_at(value, 8).ljust(8, b"\0"))
        elif number in (3, 4) and wire == VARINT:
            found = value
        elif number == 5 and wire == LENGTH:
            found = _text(spans, value, length)
        elif number == 7 and wire == VARINT:
            found = names.get(value)
    return names.get(key, ""), found


def _text(spans: Spans, at: int, size: int) -> str:
    return safe_text(spans.bytes_at(at, min(size, _LONGEST)).decode("utf-8", "replace"))
