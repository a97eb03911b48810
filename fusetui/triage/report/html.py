"""A document as one HTML file: no script, nothing fetched, readable in print and in the dark."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from fusetui.telemetry.text import safe_text
from fusetui.triage.report.blocks import Bars, Block, Bullets, Command, Document, Facts, Line, Section, Table, Text
from fusetui.triage.report.svg import bars_svg, line_svg

_STYLE: Final = """\
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --soft: #57606a; --rule: #d0d7de; --fill: #f6f8fa;
  --a: #0969da; --b: #9a6700; --bad: #b42318; --good: #1a7f37; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --soft: #9198a1;
  --rule: #3d444d; --fill: #151b23; --a: #58a6ff; --b: #d29922; --bad: #ff7b72; --good: #3fb950; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 60rem; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin-bottom: .5rem; } h2 { border-bottom: 1px solid var(--rule); margin-top: 2rem; }
.verdict { border-left: .4rem solid var(--soft); padding: .6rem 1rem; background: var(--fill); font-weight: 600; }
.verdict.breach { border-color: var(--bad); } .verdict.warn { border-color: var(--b); }
.verdict.quiet { border-color: var(--good); }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--rule); padding: .25rem .6rem; text-align: left; vertical-align: top;
  overflow-wrap: break-word; }
td:first-child:not(.number) { overflow-wrap: anywhere; min-width: 8em; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th.number { white-space: normal; }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: .15rem 1rem; }
dt { color: var(--soft); } dd { margin: 0; }
pre { background: var(--fill); border: 1px solid var(--rule); padding: .5rem .8rem; white-space: pre-wrap; }
figure { margin: 1rem 0; } figcaption, .at, footer { color: var(--soft); font-size: .9em; }
svg { width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
.grid { stroke: var(--rule); } .line { fill: none; stroke: var(--a); stroke-width: 1.8; }
.dot, .first { fill: var(--a); }
.second { fill: var(--b); } .limit { stroke: var(--bad); stroke-dasharray: 6 4; } .bad { stroke: var(--bad); }
@media print { body { max-width: none; margin: 0; font-size: 10.5px; } th, td { padding: .15rem .35rem; }
  h2, h3 { break-after: avoid; }
  figure, pre, tr { break-inside: avoid; }
  .wide { overflow: visible; } }
"""


def as_html(document: Document) -> str:
    """The whole page; every text of it is escaped here."""
    title = _text(document.title)
    body = "\n".join(line for section in document.sections for line in _section(section))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{title}</title>\n<style>\n{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        f'<p class="verdict {document.state.split()[0]}">{_text(document.verdict)}</p>\n{body}\n'
        f"<footer>{_text(document.footer)}</footer>\n</body>\n</html>\n"
    )


def _text(text: str) -> str:
    return escape(safe_text(text), quote=True)


def _section(section: Section) -> Iterator[str]:
    yield f"<h{section.level}>{_text(section.title)}</h{section.level}>"
    for block in section.blocks:
        yield from _block(block)


def _block(block: Block) -> Iterator[str]:
    match block:
        case Text(text):
            yield f"<p>{_text(text)}</p>"
        case Bullets(items, ordered):
            tag = "ol" if ordered else "ul"
            yield f"<{tag}>{''.join(f'<li>{_text(item)}</li>' for item in items)}</{tag}>"
        case Facts(rows):
            yield f"<dl>{''.join(f'<dt>{_text(name)}</dt><dd>{_text(value)}</dd>' for name, value in rows)}</dl>"
        case Table():
            yield from _table(block)
        case Line():
            yield f"<figure>{line_svg(block)}<figcaption>{_text(block.title)}</figcaption></figure>"
        case Bars():
            yield f"<figure>{bars_svg(block)}<figcaption>{_text(block.title)}</figcaption></figure>"
        case Command(command, at):
            yield f"<pre><code>{_text(command)}</code></pre>"
            if at:
                yield f'<p class="at">at <code>{_text(at)}</code></p>'


def _table(table: Table) -> Iterator[str]:
    kind = ['class="number"' if place in table.numeric else "" for place in range(len(table.head))]
    yield '<div class="wide"><table><thead><tr>'
    yield "".join(f"<th {k}>{_text(cell)}</th>" for k, cell in zip(kind, table.head, strict=True))
    yield "</tr></thead><tbody>"
    for row in table.rows:
        cells = "".join(f"<td {k}>{_text(cell)}</td>" for k, cell in zip(kind, row, strict=True))
        yield f"<tr>{cells}</tr>"
    yield "</tbody></table></div>"
