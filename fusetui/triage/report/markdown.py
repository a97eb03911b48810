"""A document as Markdown that fits a GitHub issue. Texts from data can make no markup, link or mention."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from fusetui.telemetry.text import safe_text
from fusetui.triage.report.blocks import Bars, Block, Bullets, Command, Document, Facts, Line, Section, Table, Text
from fusetui.triage.report.textchart import chart_lines

MAX_CHARS: Final = 65_536
"""Most characters in the body of an issue."""
_FITS: Final = ((400, 2000), (40, 400), (20, 200), (8, 120), (3, 60))
"""(rows of a table or list, characters of a cell): the first that fits."""
_MARKUP: Final = re.compile(r"([\\`*_\[\]#|~$])")
_ENTITIES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_ACTIVE: Final = re.compile(r"@|://|www\.|#\d|\bGH-\d", re.IGNORECASE)
"""What GitHub makes a mention, a link or a reference of, whatever stands before it."""


def as_markdown(document: Document, max_chars: int = MAX_CHARS) -> str:
    """At most max_chars characters; what is left out is said where it would have been."""
    for rows, chars in _FITS:
        text = "\n".join(_lines(document, rows, chars)) + "\n"
        if len(text) <= max_chars:
            return text
    end = "\n\n*cut here: too long for an issue; the HTML and JSON forms have all of it*\n"
    kept = text[: max_chars - len(end) - 5]
    # Never cut inside a fence: what follows would be taken for code.
    fence = "\n```" if kept.count("\n```") % 2 else ""
    return kept + fence + end


def escaped(text: str) -> str:
    """As it stands, in running text or in a cell."""
    return " ".join(_word(word) for word in safe_text(text).split(" "))


def _begun(text: str) -> str:
    """The same where a line begins with it: a dash there would make a list, or a heading of the line before."""
    found = escaped(text)
    return f"\\{found}" if found[:1] in ("-", "+", "=") else found


def _word(word: str) -> str:
    if _ACTIVE.search(word):
        # A backslash does not stop a mention; code does.
        return f"`{word.replace('`', chr(39)).replace('|', '¦')}`"
    return _MARKUP.sub(r"\\\1", word).translate(_ENTITIES)


def _lines(document: Document, rows: int, chars: int) -> Iterator[str]:
    yield f"# {escaped(document.title)}"
    yield ""
    yield f"**{escaped(_cut(document.verdict, chars))}**"
    for section in document.sections:
        yield from _section(section, rows, chars)
    yield ""
    yield f"---\n*{escaped(document.footer)}*"


def _section(section: Section, rows: int, chars: int) -> Iterator[str]:
    yield ""
    yield f"{'#' * section.level} {escaped(section.title)}"
    for block in section.blocks:
        yield ""
        yield from _block(block, rows, chars)


def _block(block: Block, rows: int, chars: int) -> Iterator[str]:
    match block:
        case Text(text):
            yield _begun(_cut(text, max(chars, 400)))
        case Bullets(items, ordered):
            for item in items[:rows]:
                yield f"{'1.' if ordered else '-'} {_begun(_cut(item, max(chars, 120)))}"
            yield from (f"- {line}" for line in _left(len(items), rows))
        case Facts(facts):
            for name, value in facts[:rows]:
                yield f"- **{escaped(_cut(name, chars))}**: {escaped(_cut(value, max(chars, 120)))}"
            yield from (f"- {line}" for line in _left(len(facts), rows))
        case Table():
            yield from _table(block, rows, chars)
        case Line():
            yield from ("```text", block.title, *chart_lines(block), " … ".join(block.labels), "```")
        case Bars():
            yield from _bars(block, rows)
        case Command(command, at):
            yield from ("```sh", safe_text(command), "```", *(("", f"at `{at}`") if at else ()))


def _table(table: Table, rows: int, chars: int) -> Iterator[str]:
    rule = tuple("---:" if place in table.numeric else "---" for place in range(len(table.head)))
    yield f"| {' | '.join(escaped(cell) for cell in table.head)} |"
    yield f"| {' | '.join(rule)} |"
    for cells in table.rows[:rows]:
        yield f"| {' | '.join(escaped(_cut(cell, chars)) for cell in cells)} |"
    yield from (f"\n{line}" for line in _left(len(table.rows), rows))


def _bars(bars: Bars, rows: int) -> Iterator[str]:
    width = max((len(label) for label, _, _ in bars.rows), default=0)
    yield "```text"
    yield f"{bars.title}: █ {bars.names[0]}" + (f", ▒ {bars.names[1]}" if bars.names[1] else "")
    for label, first, second in bars.rows[:rows]:
        yield f"{label.ljust(width)} {'█' * _cells(first)} {first * 100:.0f} %"
        if second is not None:
            yield f"{' ' * width} {'▒' * _cells(second)} {second * 100:.0f} %"
    yield "```"


def _cells(share: float) -> int:
    return round(min(max(share, 0.0), 1.0) * 40)


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - 1] + "…"


def _left(count: int, rows: int) -> Iterator[str]:
    if count > rows:
        yield f"*and {count - rows:,} more, see the JSON form*"
