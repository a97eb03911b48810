"""Comparisons joined by `not`, `and`, `or` (in falling strength) and brackets: what filters and rules share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from fusetui.analysis.expression.lexer import MAX_DEPTH, Cursor

T = TypeVar("T")


class BooleanParser(ABC, Generic[T]):
    """Parses from `cursor`; what a comparison is, and what joins become, is the subclass's."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor

    @abstractmethod
    def comparison(self) -> T:
        """One comparison."""

    @abstractmethod
    def joined(self, word: str, left: T, right: T) -> T:
        """`word` is and, or."""

    @abstractmethod
    def negated(self, inner: T) -> T:
        """The opposite."""

    def whole(self) -> T:
        """Everything up to the end of the text."""
        found = self.bracketed()
        if self.cursor.here().kind != "end":
            raise self.cursor.error("expected `and`, `or` or the end")
        return found

    def bracketed(self) -> T:
        """What may stand in brackets, and alone."""
        return self.either()

    def either(self) -> T:
        """Alternatives."""
        found = self._both()
        while self.cursor.is_word("or"):
            self.cursor.take()
            found = self.joined("or", found, self._both())
        return found

    def _both(self) -> T:
        found = self._not()
        while self.cursor.is_word("and"):
            self.cursor.take()
            found = self.joined("and", found, self._not())
        return found

    def _not(self) -> T:
        cursor = self.cursor
        cursor.depth += 1
        if cursor.depth > MAX_DEPTH:
            raise cursor.error(f"nested more than {MAX_DEPTH} deep")
        try:
            if cursor.is_word("not"):
                cursor.take()
                return self.negated(self._not())
            if cursor.is_bracket("("):
                cursor.take()
                found = self.bracketed()
                cursor.close()
                return found
            return self.comparison()
        finally:
            cursor.depth -= 1
