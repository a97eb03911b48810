"""Rules: comparisons of measures with limits, over all rows or those of a where-clause.

    p99(queue_wait) < 5ms and imbalance < 0.3 where stream ~ "prefill"
    (p95(latency) < 20ms where plan = a) and (p95(latency) < 30ms where plan = b)

`where` takes a filter (`analysis.filter`) and holds for everything before it in the same brackets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fusetui.analysis.expression.boolean import BooleanParser
from fusetui.analysis.expression.lexer import Cursor
from fusetui.analysis.expression.measures import Measure, parse_limit, parse_measure
from fusetui.analysis.filter import Filter, FilterParser

OPERATORS: Final = ("<", "<=", ">", ">=", "=", "!=")


@dataclass(frozen=True, slots=True)
class Comparison:
    """measure op limit; text: as written; where: the filters it is under, outermost last."""

    measure: Measure
    op: str
    limit: float
    text: str
    where: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class Joined:
    """`word` is and, or."""

    word: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Negated:
    """The opposite of `inner`."""

    inner: Node


Node = Comparison | Joined | Negated


@dataclass(frozen=True, slots=True)
class Rule:
    """A compiled rule."""

    text: str
    node: Node

    def comparisons(self) -> Iterator[Comparison]:
        """Every comparison in it, from left to right."""
        yield from _comparisons(self.node)

    @property
    def needs_baseline(self) -> bool:
        """It names a change."""
        return any(each.measure.change for each in self.comparisons())


def parse_rule(text: str) -> Rule:
    """The rule that `text` describes. Raises ExpressionError."""
    return Rule(text.strip(), _RuleParser(Cursor(text, "a rule")).whole())


class _RuleParser(BooleanParser[Node]):
    def bracketed(self) -> Node:
        found = self.either()
        if not self.cursor.is_word("where"):
            return found
        self.cursor.take()
        begin = self.cursor.here().at
        mask = FilterParser(self.cursor).either()
        text = self.cursor.text[begin : self.cursor.here().at].strip()
        return _under(found, Filter(text, mask))

    def comparison(self) -> Node:
        cursor = self.cursor
        begin = cursor.here().at
        measure = parse_measure(cursor)
        op = cursor.take()
        if op.kind != "op" or op.text not in OPERATORS:
            raise cursor.error("expected one of < <= > >= = !=", op)
        limit = parse_limit(cursor, measure)
        return Comparison(measure, op.text, limit, cursor.text[begin : cursor.here().at].strip())

    def joined(self, word: str, left: Node, right: Node) -> Node:
        return Joined(word, left, right)

    def negated(self, inner: Node) -> Node:
        return Negated(inner)


def _under(node: Node, where: Filter) -> Node:
    if isinstance(node, Comparison):
        return Comparison(node.measure, node.op, node.limit, node.text, (*node.where, where))
    if isinstance(node, Joined):
        return Joined(node.word, _under(node.left, where), _under(node.right, where))
    return Negated(_under(node.inner, where))


def _comparisons(node: Node) -> Iterator[Comparison]:
    if isinstance(node, Comparison):
        yield node
    elif isinstance(node, Joined):
        yield from _comparisons(node.left)
        yield from _comparisons(node.right)
    else:
        yield from _comparisons(node.inner)
