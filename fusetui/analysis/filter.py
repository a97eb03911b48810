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

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NoReturn

import numpy as np
import pyarrow as pa

from fusetui.analysis.arrays import Bools, Ints
from fusetui.analysis.columns import NULL, dictionary_key, plain
from fusetui.analysis.durations import LATENCY, SERVICE, WAIT, durations
from fusetui.telemetry.text import safe_text

Mask = Callable[[pa.RecordBatch], Bools]

TEXT_FIELDS: Final = ("name", "stream", "host", "kind", "plan", "mapping", "shape")
NUMBER_FIELDS: Final = ("device", "core", "request")
DURATION_FIELDS: Final = (WAIT, SERVICE, LATENCY, "launch")
UNITS: Final = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
MAX_CHARS: Final = 2000
MAX_DEPTH: Final = 50

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<text>"[^"]*"|'[^']*')|(?P<op>!=|!~|<=|>=|=|~|<|>)|(?P<bracket>[()])"""
    r"""|(?P<number>-?\d+(?:\.\d+)?)(?P<unit>[a-zµ]*)(?![\w./*])|(?P<word>[^\s()"'=!<>~]+))"""
)
_COMPARE: Final[dict[str, Callable[[Ints, int | float], Bools]]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


class FilterError(ValueError):
    """A filter that is not understood; str() is three lines: what is wrong, the filter, a caret under the fault."""

    def __init__(self, what: str, text: str, at: int) -> None:
        self.what, self.at = what, at
        super().__init__(f"{what}\n{safe_text(text, MAX_CHARS)}\n{' ' * at}^")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    unit: str
    at: int


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
    if len(text) > MAX_CHARS:
        raise FilterError(f"a filter has at most {MAX_CHARS} characters", text[:40], 0)
    return Filter(text, _Parser(text).parse())


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._next = 0
        self._depth = 0

    def parse(self) -> Mask:
        mask = self._either()
        if self._here().kind != "end":
            self._fail("expected `and`, `or` or the end")
        return mask

    def _here(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._here()
        self._next += token.kind != "end"
        return token

    def _fail(self, what: str, token: _Token | None = None) -> NoReturn:
        raise FilterError(what, self._text, (token or self._here()).at)

    def _is_word(self, word: str) -> bool:
        return self._here().kind == "word" and self._here().text.lower() == word

    def _either(self) -> Mask:
        mask = self._both()
        while self._is_word("or"):
            self._take()
            mask = _joined(np.logical_or, mask, self._both())
        return mask

    def _both(self) -> Mask:
        mask = self._not()
        while self._is_word("and"):
            self._take()
            mask = _joined(np.logical_and, mask, self._not())
        return mask

    def _not(self) -> Mask:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._fail(f"nested more than {MAX_DEPTH} deep")
        try:
            if self._is_word("not"):
                self._take()
                inner = self._not()
                return lambda batch: ~inner(batch)
            if self._here().text == "(" and self._here().kind == "bracket":
                self._take()
                mask = self._either()
                if self._here().text != ")":
                    self._fail("expected )")
                self._take()
                return mask
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> Mask:
        field = self._take()
        if field.kind != "word":
            self._fail("expected a field, like stream or wait", field)
        name = field.text.lower()
        if name not in TEXT_FIELDS + NUMBER_FIELDS + DURATION_FIELDS:
            every = " ".join(TEXT_FIELDS + NUMBER_FIELDS + DURATION_FIELDS)
            self._fail(f"no field {safe_text(field.text, 40)}; there are: {every}", field)
        op = self._take()
        if op.kind != "op":
            self._fail("expected one of = != ~ !~ < <= > >=", op)
        value = self._take()
        if value.kind not in ("text", "word", "number"):
            self._fail("expected a value", value)
        if name in TEXT_FIELDS:
            return self._text_test(name, op, value)
        return self._number_test(name, op, value)

    def _text_test(self, name: str, op: _Token, value: _Token) -> Mask:
        if op.text not in ("=", "!=", "~", "!~"):
            self._fail(f"{name} is text: use = != ~ !~", op)
        wanted = value.text + value.unit
        test: Callable[[str], bool] = wanted.__eq__ if op.text.endswith("=") else _pattern(wanted)
        return _TextMask(name, test, negated=op.text.startswith("!"))

    def _number_test(self, name: str, op: _Token, value: _Token) -> Mask:
        if op.text not in _COMPARE:
            self._fail(f"{name} is a number: use = != < <= > >=", op)
        if value.kind != "number":
            self._fail("expected a number", value)
        number: int | float = float(value.text) if "." in value.text else int(value.text)
        if name in DURATION_FIELDS:
            if value.unit not in UNITS and number != 0:
                self._fail("a duration needs a unit: ns us ms s", value)
            number *= UNITS.get(value.unit, 1)
        elif value.unit:
            self._fail(f"{name} has no unit", value)
        return _NumberMask(name, op.text, number)


def _tokens(text: str) -> list[_Token]:
    found = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            fault = at + len(text[at:]) - len(text[at:].lstrip())
            what = "a quote is not closed" if text[fault] in "\"'" else "not understood"
            raise FilterError(what, text, fault)
        kind = match.lastgroup if match.lastgroup != "unit" else "number"
        assert kind is not None
        word = match.group(kind)
        unit = match.group("unit") or "" if kind == "number" else ""
        found.append(_Token(kind, word[1:-1] if kind == "text" else word, unit, match.start(kind)))
        at = match.end()
    return [*found, _Token("end", "", "", len(text.rstrip()))]


def _joined(how: Callable[[Bools, Bools], Bools], left: Mask, right: Mask) -> Mask:
    return lambda batch: how(left(batch), right(batch))


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
