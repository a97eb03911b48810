"""Markdown and HTML: what data says never becomes markup, and a report always fits."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from reportmaterial import MS, requests, stepped, told

from fusetui.analysis.compare import compare
from fusetui.telemetry.header import Header
from fusetui.triage.quality import Series, readings_of
from fusetui.triage.report.blocks import Bullets, Command, Document, Facts, Line, Section, Table, Text
from fusetui.triage.report.html import as_html
from fusetui.triage.report.markdown import MAX_CHARS, as_markdown, escaped
from fusetui.triage.report.sections import document_of
from fusetui.triage.report.svg import line_svg
from fusetui.triage.report.textchart import chart_lines

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "\x1b]0;owned\x07\x1b[31mred",
    "\u202eevil\u2066",
    "[click](javascript:alert(1)) ![x](http://evil.example/x.png)",
    "@everyone #12 https://evil.example www.evil.example",
    "`` ` code ``` | cell | </style></script>",
    "\n# heading\n- list\n```\nfence",
    "-->]]>&lt;b&gt;",
)
_PLAIN_TAGS = {"h1", "h2", "h3", "p", "strong", "em", "ul", "ol", "li", "code", "pre", "hr"}
_TABLE_TAGS = {"table", "thead", "tbody", "tr", "th", "td"}
_PAGE_TAGS = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "div",
    "figure",
    "figcaption",
    "footer",
    "dl",
    "dt",
    "dd",
}
_SVG_TAGS = {"svg", "line", "text", "polyline", "circle", "rect"}
_ATTRIBUTES = {
    "class", "lang", "charset", "name", "content", "http-equiv", "style", "viewbox", "role", "aria-label", "x", "y",
    "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "points", "text-anchor", "fill", "stroke",
    "stroke-width", "stroke-dasharray", "font-size", "font-family",
}  # fmt: skip


class _Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text: list[str] = []
        self._code = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self._code += tag == "code"

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag == "code"

    def handle_data(self, data: str) -> None:
        if not self._code:
            self.text.append(data)


def _parsed(page: str) -> _Seen:
    seen = _Seen()
    seen.feed(page)
    seen.close()
    return seen


def _document(hostile: str) -> Document:
    rows = requests(
        stepped(),
        Header(source=hostile, host=hostile, slo_ns=10 * MS, build={hostile: hostile}, plans={hostile: hostile}),
        name=hostile,
        stream=hostile,
        host=hostile,
    )
    before = requests(stepped(), Header(source=hostile, build={hostile: "x"}), name=hostile, stream="b")
    quality = readings_of({hostile: Series(np.array([0.8]), np.array([0.7]), "higher", "file")})
    return document_of(
        told(
            rows,
            spec=hostile,
            notes=(hostile,),
            baseline=hostile,
            comparison=compare(before.scope(), rows.scope()),
            quality=quality,
            quality_options=("--quality", hostile),
        )
    )


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_trace_makes_no_markup_in_markdown(hostile: str) -> None:
    text = as_markdown(_document(hostile))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", text)
    rendered = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text)
    seen = _parsed(rendered)
    assert seen.tags <= _PLAIN_TAGS | _TABLE_TAGS
    assert not re.search(r"@|://|www\.|#\d", "".join(seen.text))


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_trace_makes_no_markup_in_html(hostile: str) -> None:
    page = as_html(_document(hostile))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", page)
    seen = _parsed(page)
    assert seen.tags <= _PLAIN_TAGS | _TABLE_TAGS | _PAGE_TAGS | _SVG_TAGS
    assert seen.attributes <= _ATTRIBUTES
    assert page.count("<style>") == page.count("</style>") == 1
    assert "default-src 'none'" in page


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_trace_makes_valid_json(hostile: str) -> None:
    rows = requests(stepped(), Header(build={hostile: hostile}), name=hostile, stream=hostile)
    text = json.dumps(told(rows, spec=hostile), allow_nan=False, ensure_ascii=False)
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert json.loads(text)["trace"]["rows"] == 2000


@given(st.text(max_size=60))
def test_any_text_is_itself_once_rendered(text: str) -> None:
    """Words outside code read as they were: escapes neither show nor swallow anything."""
    page = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(f"x {escaped(text)} y")
    assert _parsed(page).tags <= {"p", "code"}


def test_escapes_do_not_show() -> None:
    text = "a_b *c* <d> & [e] | f ~g~ $h$ \\i"
    assert _parsed(MarkdownIt("commonmark").render(escaped(text))).text[0] == text


def _large(rows: int, chars: int) -> Document:
    cells = tuple((f"name {number} " + "x" * chars, str(number)) for number in range(rows))
    section = Section("Many", (Table(("name", "n"), cells, (1,)), Bullets(tuple(a for a, _ in cells)), Facts(cells)))
    return Document("t", "warn", "v", (section,), "f")


@pytest.mark.parametrize(
    ("rows", "chars", "cut"),
    [(10, 10, False), (300, 50, False), (500, 20, True), (5000, 300, True), (3, 60_000, False)],
)
def test_markdown_fits_an_issue_and_says_what_is_left_out(rows: int, chars: int, cut: bool) -> None:
    text = as_markdown(_large(rows, chars))
    assert len(text) <= MAX_CHARS
    assert ("more, see the JSON form" in text) == cut


def test_a_document_of_too_many_sections_is_cut_and_says_so() -> None:
    sections = tuple(Section(f"s{n}", (Command("fusetui x " + "y" * 300),)) for n in range(500))
    text = as_markdown(Document("t", "warn", "v", sections, "f"))
    assert len(text) <= MAX_CHARS
    assert text.endswith("the HTML and JSON forms have all of it*\n")
    assert text.count("\n```") % 2 == 0


def test_every_figure_is_followed_by_its_command() -> None:
    document = document_of(told(requests(stepped(), Header(slo_ns=10 * MS))))
    by_title = {section.title: section.blocks for section in document.sections}
    for title in ("In brief", "Trend", "What moved and why", "Which path consumed its budget first", "Findings"):
        assert any(isinstance(block, Command) for block in by_title[title]), title
    assert {"Contradictions", "Decisions", "Evidence matrix", "Limits", "Reproduce", "Build and run"} <= set(by_title)


def _line(values: list[float | None], limit: int | None = None, bad: int | None = None) -> Line:
    return Line("t", list(range(0, len(values) * 10, 10)), values, limit, bad, ("a", "b"))


def test_the_chart_of_characters_keeps_peaks_gaps_and_the_limit() -> None:
    lines = chart_lines(_line([1.0, None, 8.0, 4.0], limit=4, bad=20))
    assert lines[0] == " 8.00 ns │  █"
    assert lines[3].startswith(" 4.00 ns │╌╌█") or lines[4].startswith(" 4.00 ns │╌╌█")
    assert lines[7] == "         │█ ██"
    assert lines[9] == "            ^ first bad moment"


def test_the_chart_of_characters_merges_slots_by_their_largest() -> None:
    values: list[float | None] = [1.0] * 120
    values[77] = 100.0
    assert sum(line.count("█") for line in chart_lines(_line(values))[:1]) == 1


def test_the_picture_leaves_gaps() -> None:
    picture = line_svg(_line([1.0, 2.0, None, 3.0, None, 4.0, 5.0]))
    assert picture.count("<polyline") == 2
    assert picture.count("<circle") == 1
    assert "nan" not in picture


def test_a_report_of_nothing_has_every_form() -> None:
    document = document_of(told(requests(np.full(1, 2 * MS), Header())))
    assert "NOT ENOUGH DATA" in as_markdown(document)
    assert "NOT ENOUGH DATA" in as_html(document)
    assert isinstance(document.sections[0].blocks[0], Facts | Text)
