"""Quality from a table, CSV with a header line, in one of two forms:

    name,before,after            one reading a side, e.g. of an evaluation of both builds
    accuracy,0.764,0.761

    time,name,value              readings over time: those within the time of a capture are its own
    2026-03-01T03:10:00Z,error rate,0.2%

A column `better` says "higher" or "lower" where the name does not; other columns are ignored. `;` and tabs divide
too, `%` is a hundredth, an empty cell is no reading. Times are ISO 8601 (UTC unless told), or seconds, ms, µs or ns
since 1970.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from fusetui.analysis.columns import NULL
from fusetui.analysis.expression.rows import Scope
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.text import safe_text
from fusetui.triage.quality import Better, Series, better_of

MAX_BYTES: Final = 16 << 20
MAX_NAMES: Final = 200
_FORMS: Final = "write a header line name,before,after or time,name,value"
_SCALES: Final = ((1e11, 1e9), (1e14, 1e6), (1e17, 1e3))
"""(below, ns of one): by its size a number is s, ms or µs; else ns."""


class _Row(NamedTuple):
    name: str
    side: int
    at_ns: int
    value: float


def series_from(path: str | Path, before: Scope, after: Scope) -> tuple[dict[str, Series], tuple[str, ...]]:
    """(series by name, what to know of the reading). Raises TelemetryError naming the line."""
    lines = csv.reader(StringIO(text := _text(path)), delimiter=_delimiter(text))
    try:
        head = [cell.strip().lower() for cell in next(lines, [])]
        records = [(lines.line_num, dict(zip(head, row, strict=False))) for row in lines if any(map(str.strip, row))]
    except csv.Error as error:
        raise TelemetryError(f"{path}: line {lines.line_num}", f"no CSV ({error})", _FORMS) from None
    if {"name", "before", "after"} <= set(head):
        rows = [row for number, record in records for row in _pair(record, f"{path}: line {number}")]
        spans, outside = None, 0
    elif {"time", "name", "value"} <= set(head):
        spans = _spans(str(path), before, after)
        timed = [row for number, record in records for row in _timed(record, f"{path}: line {number}", spans)]
        rows = sorted((row for row in timed if row.side >= 0), key=lambda row: row.at_ns)
        outside = len(timed) - len(rows)
    else:
        told = safe_text(",".join(head), 60) or "nothing"
        raise TelemetryError(f"{path}: line 1", f"the header is {told}", _FORMS)
    if not rows:
        why = "no reading is within the time of either capture" if outside else "no readings"
        raise TelemetryError(str(path), why, _FORMS)
    notes = (f"quality: {outside:,} readings are outside of both captures, left out",) if outside else ()
    return _series(rows, _told(records, str(path)), str(path)), notes


def _text(path: str | Path) -> str:
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise TelemetryError(str(path), f"cannot be read ({error.strerror})") from None
    if len(raw) > MAX_BYTES:
        raise TelemetryError(str(path), "over the limit of 16 MiB", "give fewer readings")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TelemetryError(str(path), "not UTF-8 text", _FORMS) from None


def _delimiter(text: str) -> str:
    head = text.partition("\n")[0]
    return max(",;\t", key=head.count)


def _pair(record: Mapping[str, str], where: str) -> list[_Row]:
    name = _name(record, where)
    found = [(side, _number(record.get(key, ""), f"{where}: {key}")) for side, key in enumerate(("before", "after"))]
    return [_Row(name, side, 0, value) for side, value in found if value is not None]


def _timed(record: Mapping[str, str], where: str, spans: tuple[tuple[int, int], tuple[int, int]]) -> list[_Row]:
    value = _number(record.get("value", ""), f"{where}: value")
    if value is None:
        return []
    at_ns = _time(record.get("time", ""), f"{where}: time")
    side = next((place for place, (low, high) in enumerate(spans) if low <= at_ns <= high), -1)
    return [_Row(_name(record, where), side, at_ns, value)]


def _spans(where: str, before: Scope, after: Scope) -> tuple[tuple[int, int], tuple[int, int]]:
    instead = "write name,before,after"
    if "trace" in (before.header.clock, after.header.clock):
        raise TelemetryError(where, "a capture has no wall-clock time that readings could be of", instead)
    spans = []
    for scope in (before, after):
        known = scope.columns.event[scope.columns.event != NULL]
        spans.append((int(known.min()), int(known.max())) if known.size else (1, 0))
    if max(low for low, _ in spans) <= min(high for _, high in spans):
        raise TelemetryError(where, "the captures are of the same time: whose a reading is cannot be told", instead)
    return spans[0], spans[1]


def _name(record: Mapping[str, str], where: str) -> str:
    name = safe_text((record.get("name") or "").strip(), 100)
    if not name:
        raise TelemetryError(where, "no name")
    return name


def _number(text: str | None, where: str) -> float | None:
    """None for an empty cell and for what is no finite number by its own word."""
    plain = (text or "").strip()
    if plain.lower() in ("", "nan", "null", "none", "n/a", "-"):
        return None
    try:
        value = float(plain.removesuffix("%")) / (100.0 if plain.endswith("%") else 1.0)
    except ValueError:
        raise TelemetryError(where, f"{safe_text(plain, 40)!r} is not a number") from None
    return value if math.isfinite(value) else None


def _time(text: str | None, where: str) -> int:
    plain = (text or "").strip()
    try:
        value = float(plain)
    except ValueError:
        value = math.nan
    if math.isfinite(value):
        return int(value * next((ns for below, ns in _SCALES if abs(value) < below), 1.0))
    try:
        when = datetime.fromisoformat(plain)
    except ValueError:
        raise TelemetryError(where, f"{safe_text(plain, 40)!r} is no time", "write 2026-03-01T03:10:00Z") from None
    return round((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1e9)


def _told(records: list[tuple[int, dict[str, str]]], path: str) -> dict[str, Better]:
    """What the column `better` says, by name."""
    found: dict[str, Better] = {}
    for number, record in records:
        word = (record.get("better") or "").strip().lower()
        if word in ("higher", "lower"):
            found[_name(record, f"{path}: line {number}")] = "higher" if word == "higher" else "lower"
        elif word:
            raise TelemetryError(
                f"{path}: line {number}", f"better is {safe_text(word, 20)!r}", "write higher or lower"
            )
    return found


def _series(rows: list[_Row], told: Mapping[str, Better], path: str) -> dict[str, Series]:
    values: dict[str, tuple[list[float], list[float]]] = {}
    for row in rows:
        values.setdefault(row.name, ([], []))[row.side].append(row.value)
    if len(values) > MAX_NAMES:
        raise TelemetryError(path, f"{len(values):,} names", f"at most {MAX_NAMES} are judged")
    return {
        name: Series(np.array(before), np.array(after), told.get(name, better_of(name)), "file")
        for name, (before, after) in values.items()
    }
