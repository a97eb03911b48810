"""A document before it has a form. Texts are safe to print but not escaped: each form escapes in its own way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list; ordered where its order is a rank."""

    items: tuple[str, ...]
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with their values."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts; numeric: places of columns that are set to the right."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """A value over time: None is a gap, never a bridge.

    times, values  (S,) ns; first_bad_ns, limit_ns: marked where they are known; labels: of the two ends of time
    """

    title: str
    times: Sequence[int]
    values: Sequence[float | None]
    limit_ns: int | None
    first_bad_ns: int | None
    labels: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Bars:
    """Shares 0..1 side by side: (label, first, second or None); names[1] is "" where no row has a second."""

    title: str
    names: tuple[str, str]
    rows: tuple[tuple[str, float, float | None], ...]


@dataclass(frozen=True, slots=True)
class Command:
    """What prints the figures before it again; at: where in its output they stand."""

    command: str
    at: str = ""


Block = Text | Bullets | Facts | Table | Line | Bars | Command


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, level 2 or 3, and what stands under it."""

    title: str
    blocks: tuple[Block, ...]
    level: int = 2


@dataclass(frozen=True, slots=True)
class Document:
    """state: as `content.verdict` has it."""

    title: str
    state: str
    verdict: str
    sections: tuple[Section, ...]
    footer: str
