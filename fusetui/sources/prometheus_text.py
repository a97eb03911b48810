"""Text exposition (Prometheus 0.0.4, OpenMetrics 1.0) into one number per series.

The text before a value is the same in every scrape, so it is the key of a cache: names and labels are parsed once.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import numpy as np

from fusetui.telemetry.text import safe_text

MAX_SERIES: Final = 50_000
MAX_KEPT_CHARS: Final = 32 << 20
_MAX_LINE: Final = 1 << 16
_MAX_LABELS: Final = 64
_MAX_TEXT: Final = 200

_SAMPLE: Final = re.compile(
    r'[ \t]*+([a-zA-Z_:][a-zA-Z0-9_:]*+)[ \t]*+(\{(?:[^"{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+\})?+'
    r"[ \t]*+([^ \t{#]++)(?:[ \t]++(-?[0-9][0-9.eE+-]*+))?+[ \t]*+(?:#[^\n]*+)?\r?"
)
_PAIR: Final = r'[a-zA-Z_][a-zA-Z0-9_]*+[ \t]*+=[ \t]*+"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_LABELS: Final = re.compile(rf"\{{[ \t]*+(?:{_PAIR}[ \t]*+(?:,[ \t]*+|(?=\}})))*+\}}")
_LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*+)[ \t]*+=[ \t]*+"([^"\\]*+(?:\\.[^"\\]*+)*+)"')
_ESCAPE: Final = re.compile(r"\\(.)")
_NATIVE: Final = re.compile(r"[a-zA-Z_:][^ ]*+ \{[^}]*\bschema:")


class Series(NamedTuple):
    """A sample's name and its labels, safe to print."""

    name: str
    labels: dict[str, str]


class SeriesTable:
    """Every series seen, by number, within MAX_SERIES and MAX_KEPT_CHARS; when most of them are gone all are forgotten.

    series      by number
    types       metric family -> counter, gauge, histogram, summary … as the page says
    generation  grows when all was forgotten: numbers from before mean nothing
    ended       the last page had its `# EOF` (OpenMetrics)
    malformed, duplicates, over_limit, native  lines not taken in, counted since the start
    """

    def __init__(self, max_series: int = MAX_SERIES, max_chars: int = MAX_KEPT_CHARS) -> None:
        self.series: list[Series] = []
        self.types: dict[str, str] = {}
        self.generation = 0
        self.ended = False
        self.malformed = self.duplicates = self.over_limit = self.native = 0
        self._max, self._room = max_series, max_chars
        self._max_chars = max_chars
        self._ids: dict[str, int] = {}
        self._same: dict[tuple[str, frozenset[tuple[str, str]]], int] = {}
        self._stamps: list[int] = []
        self._pages = 0
        self._forget = False

    def read(self, text: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Value per series [series], NaN where the page has none; of a series that is there twice, the first."""
        if self._forget:
            self._clear()
        self._pages += 1
        self.ended = False
        page, ids, stamps = self._pages, self._ids, self._stamps
        over = self.over_limit
        values = [np.nan] * len(self.series)
        taken = 0
        for line in text.split("\n"):
            head, _, tail = line.rpartition(" ")
            at = ids.get(head)
            if at is None:
                at, tail = self._first(line)
                if at < 0:
                    continue
                values += [np.nan] * (at + 1 - len(values))
            if stamps[at] == page:
                self.duplicates += 1
                continue
            try:
                values[at] = float(tail) if "_" not in tail else _not_a_number(tail)
            except ValueError:
                self.malformed += 1
                continue
            stamps[at] = page
            taken += 1
        self._forget = self.over_limit > over and taken < len(self.series) // 2
        return np.array(values, np.float64)

    def there(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether each series [series] was on the last page, whatever its value."""
        return np.asarray(np.fromiter(self._stamps, np.int64, len(self._stamps)) == self._pages)

    def _first(self, line: str) -> tuple[int, str]:
        """Number of the series and text of the value; -1 for a line that is no sample."""
        bare = line.strip()
        if not bare or bare[0] == "#":
            self._comment(bare)
            return -1, ""
        match = _SAMPLE.fullmatch(line) if len(line) <= _MAX_LINE else None
        body = match[2] if match else None
        if match is None or (body is not None and not _LABELS.fullmatch(body)):
            if len(line) <= _MAX_LINE and _NATIVE.match(line):
                self.native += 1
            else:
                self.malformed += 1
            return -1, ""
        key = line[match.start(1) : match.end(2) if body else match.end(1)]
        at = self._ids.get(key)
        return (self._new(key, match[1], body or "") if at is None else at), match[3]

    def _new(self, key: str, name: str, body: str) -> int:
        pairs = _LABEL.findall(body)
        same = (name, frozenset(pairs))
        at = self._same.get(same, len(self.series))
        if at == len(self.series):
            if at >= self._max or self._room < len(key):
                self.over_limit += 1
                return -1
            self.series.append(Series(name[:_MAX_TEXT], _safe(pairs[:_MAX_LABELS])))
            self._stamps.append(0)
            self._same[same] = at
        if len(self._ids) < 2 * self._max and self._room >= len(key):
            self._ids[key] = at
            self._room -= len(key)
        return at

    def _comment(self, line: str) -> None:
        if line.startswith("# TYPE ") and len(line) <= 2 * _MAX_TEXT:
            words = line.split(None, 4)
            if len(words) == 4 and (len(self.types) < self._max or words[2] in self.types):
                self.types[words[2]] = words[3]
        elif line == "# EOF":
            self.ended = True

    def _clear(self) -> None:
        self.series, self._stamps = [], []
        self.types, self._ids, self._same = {}, {}, {}
        self._room = self._max_chars
        self.generation += 1
        self._forget = False


def _safe(pairs: list[tuple[str, str]]) -> dict[str, str]:
    return {label[:_MAX_TEXT]: safe_text(_ESCAPE.sub(_unescape, value[:_MAX_TEXT])) for label, value in pairs}


def _not_a_number(text: str) -> float:
    raise ValueError(text)  # float() would take 1_000


def _unescape(match: re.Match[str]) -> str:
    return {"n": "\n", '"': '"', "\\": "\\"}.get(match[1], match[0])
