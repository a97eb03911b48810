"""Words, numbers with units, quoted texts and operators of an expression; errors point at the fault."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from fusetui.telemetry.text import safe_text

MAX_CHARS: Final = 2000
MAX_DEPTH: Final = 50
DURATIONS: Final = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
"""Units of time, ns each."""
SIZES: Final = {
    "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}  # fmt: skip
"""Units of size, bytes each."""

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<text>"[^"]*"|'[^']*')|(?P<op>!=|!~|<=|>=|=|~|<|>)|(?P<bracket>[()])"""
    r"""|(?P<number>[-+]?\d+(?:\.\d+)?)(?P<unit>%|[A-Za-zµ]*(?:/s)?)(?![\w./*%])|(?P<word>[^\s()"'=!<>~]+))"""
)


class ExpressionError(ValueError):
    """An expression that is not understood; str() is three lines: what is wrong, the text, a caret under the fault."""

    def __init__(self, what: str, text: str, at: int) -> None:
        self.what, self.at = what, at
        super().__init__(f"{what}\n{safe_text(text, MAX_CHARS)}\n{' ' * at}^")


@dataclass(frozen=True, slots=True)
class Token:
    """kind: text, op, bracket, number, word or end; unit: what follows a number at once; at: where it begins."""

    kind: str
    text: str
    unit: str
    at: int


def tokens(text: str, what: str = "an expression") -> list[Token]:
    """The tokens of `text`, the last of kind end. Raises ExpressionError."""
    if len(text) > MAX_CHARS:
        raise ExpressionError(f"{what} has at most {MAX_CHARS} characters", text[:40], 0)
    found = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            fault = at + len(text[at:]) - len(text[at:].lstrip())
            fault_is = "a quote is not closed" if text[fault] in "\"'" else "not understood"
            raise ExpressionError(fault_is, text, fault)
        kind = match.lastgroup if match.lastgroup != "unit" else "number"
        assert kind is not None
        word = match.group(kind)
        unit = match.group("unit") or "" if kind == "number" else ""
        found.append(Token(kind, word[1:-1] if kind == "text" else word, unit, match.start(kind)))
        at = match.end()
    return [*found, Token("end", "", "", len(text.rstrip()))]


class Cursor:
    """Where a parser stands in the tokens of a text; parsers of one expression share it."""

    def __init__(self, text: str, what: str = "an expression") -> None:
        self.text = text
        self.depth = 0
        self._tokens = tokens(text, what)
        self._next = 0

    def here(self) -> Token:
        """The next token."""
        return self._tokens[self._next]

    def take(self) -> Token:
        """The next token, and step over it."""
        token = self.here()
        self._next += token.kind != "end"
        return token

    def is_word(self, word: str) -> bool:
        """The next token is this word, in any case."""
        return self.here().kind == "word" and self.here().text.lower() == word

    def is_bracket(self, bracket: str) -> bool:
        """The next token is this bracket."""
        return self.here().kind == "bracket" and self.here().text == bracket

    def error(self, what: str, token: Token | None = None) -> ExpressionError:
        """An error at `token`, by default the next one."""
        return ExpressionError(what, self.text, (token or self.here()).at)

    def close(self) -> None:
        """Step over a closing bracket."""
        if not self.is_bracket(")"):
            raise self.error("expected )")
        self.take()
