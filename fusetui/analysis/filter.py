"""The filter language of `/`: which rows of a batch to look at.

    stream ~ "prefill" and wait > 5ms or core = 3

    expression   comparisons joined by `not`, `and`, `or` (in falling strength) and parentheses
    text fields  name stream host kind plan mapping shape: = != (exact), ~ !~ (part of it, any case; `*` matches
                 anything, and then the pattern covers the whole text)
    numbers      device core request: = != < <= > >=
    durations    wait service latency launch: the same, with a unit: ns us µs ms s

An absent value satisfies `!=` and `!~` and nothing else. Wait, service and latency are as in `analysis.work`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from fusetui.analysis.arrays import Bools, Ints
from fusetui.analysis.columns import NULL, dictionary_key, plain
from fusetui.analysis.durations import LATENCY, SERVICE, WAIT, durations
from fusetui.analysis.expression.boolean import BooleanParser
from fusetui.analysis.expression.lexer import DURATIONS as UNITS
from fusetui.analysis.expression.lexer import Cursor, Token
from fusetui.analysis.expression.lexer import ExpressionError as FilterError
from fusetui.telemetry.text import safe_text

__all__ = ["Filter", "FilterError", "FilterParser", "parse_filter"]

Mask = Callable[[pa.RecordBatch], Bools]

TEXT_FIELDS: Final = ("name", "stream", "host", "kind", "plan", "mapping", "shape")
NUMBER_FIELDS: Final = ("device", "core", "request")
DURATION_FIELDS: Final = (WAIT, SERVICE, LATENCY, "launch")

_COMPARE: Final[dict[str, Callable[[Ints, int | float], Bools]]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


@dataclass(frozen=True, slots=True)
class Filter:
    """A compiled filter; `mask(batch)` tells which of its rows pass, (n,) bool."""

    text: str
    mask: Mask

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that pass."""
        chosen = self.mask(batch)
        if chosen.all():
            return batch
        return batch.filter(pa.array(chosen))


def parse_filter(text: str) -> Filter | None:
    """The filter that `text` describes; None when it is blank. Raises FilterError."""
    if not text.strip():
        return None
    return Filter(text, FilterParser(Cursor(text, "a filter")).whole())


class FilterParser(BooleanParser[Mask]):
    """Comparisons of the fields of a row."""

    def joined(self, word: str, left: Mask, right: Mask) -> Mask:
        """Both masks, or either."""
        how = np.logical_and if word == "and" else np.logical_or
        return lambda batch: how(left(batch), right(batch))

    def negated(self, inner: Mask) -> Mask:
        """The other rows."""
        return lambda batch: ~inner(batch)

    def comparison(self) -> Mask:
        """Field, operator, value."""
        cursor = self.cursor
        field = cursor.take()
        if field.kind != "word":
            raise cursor.error("expected a field, like stream or wait", field)
        name = field.text.lower()
        if name not in TEXT_FIELDS + NUMBER_FIELDS + DURATION_FIELDS:
            every = " ".join(TEXT_FIELDS + NUMBER_FIELDS + DURATION_FIELDS)
            raise cursor.error(f"no field {safe_text(field.text, 40)}; there are: {every}", field)
        op = cursor.take()
        if op.kind != "op":
            raise cursor.error("expected one of = != ~ !~ < <= > >=", op)
        value = cursor.take()
        if value.kind not in ("text", "word", "number"):
            raise cursor.error("expected a value", value)
        if name in TEXT_FIELDS:
            return self._text_test(name, op, value)
        return self._number_test(name, op, value)

    def _text_test(self, name: str, op: Token, value: Token) -> Mask:
        if op.text not in ("=", "!=", "~", "!~"):
            raise self.cursor.error(f"{name} is text: use = != ~ !~", op)
        wanted = value.text + value.unit
        test: Callable[[str], bool] = wanted.__eq__ if op.text.endswith("=") else _pattern(wanted)
        return _TextMask(name, test, negated=op.text.startswith("!"))

    def _number_test(self, name: str, op: Token, value: Token) -> Mask:
        if op.text not in _COMPARE:
            raise self.cursor.error(f"{name} is a number: use = != < <= > >=", op)
        if value.kind != "number":
            raise self.cursor.error("expected a number", value)
        number: int | float = float(value.text) if "." in value.text else int(value.text)
        if name in DURATION_FIELDS:
            if value.unit not in UNITS and number != 0:
                raise self.cursor.error("a duration needs a unit: ns us ms s", value)
            number *= UNITS.get(value.unit, 1)
        elif value.unit:
            raise self.cursor.error(f"{name} has no unit", value)
        return _NumberMask(name, op.text, number)


def _pattern(wanted: str) -> Callable[[str], bool]:
    """A test in linear time: `wanted` is part of the text, or with `*` covers it."""
    folded = wanted.casefold()
    if "*" not in folded:
        return lambda text: folded in text.casefold()
    head, *middle, tail = folded.split("*")

    def matches(text: str) -> bool:
        text = text.casefold()
        if len(text) < len(head) + len(tail) or not text.startswith(head) or not text.endswith(tail):
            return False
        at, stop = len(head), len(text) - len(tail)
        for part in middle:
            at = text.find(part, at, stop)
            if at < 0:
                return False
            at += len(part)
        return True

    return matches


class _TextMask:
    """A test of a dictionary column, made once per word."""

    def __init__(self, column: str, test: Callable[[str], bool], *, negated: bool) -> None:
        self._column, self._test, self._negated = column, test, negated
        self._last: tuple[int, int, int] | None = None
        self._held: pa.Array | None = None
        self._passes: Bools = np.zeros(1, np.bool_)

    def __call__(self, batch: pa.RecordBatch) -> Bools:
        at = batch.schema.get_field_index(self._column)
        if at < 0 or batch.column(at).null_count == len(batch):
            return np.full(len(batch), self._negated)
        column = batch.column(at)
        key = dictionary_key(column.dictionary)
        if key != self._last:
            words = column.dictionary.to_pylist()
            passes = [(word is not None and self._test(word)) != self._negated for word in words]
            self._passes = np.array([*passes, self._negated], np.bool_)
            self._last, self._held = key, column.dictionary
        return self._passes[plain(column.indices, -1)]


class _NumberMask:
    def __init__(self, column: str, op: str, number: int | float) -> None:
        self._column, self._op, self._number = column, op, number

    def __call__(self, batch: pa.RecordBatch) -> Bools:
        values = self._values(batch)
        absent = values == NULL
        return np.where(absent, self._op == "!=", _COMPARE[self._op](values, self._number))

    def _values(self, batch: pa.RecordBatch) -> Ints:
        if self._column in (WAIT, SERVICE, LATENCY):
            return durations(batch)[self._column]
        at = batch.schema.get_field_index("launch_ns" if self._column == "launch" else self._column)
        if at < 0:
            return np.full(len(batch), NULL)
        column = batch.column(at)
        return plain(column.cast(pa.int64()), NULL)
