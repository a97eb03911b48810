"""The finding that is looked at: its numbers, what they leave open, how sure, what to do."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.finding_text import INKS, class_of, mark_of, share_of, slice_text, value_text
from fusetui.app.palette import Ink
from fusetui.app.pane import draw_text
from fusetui.app.panes.triage_pane import TriagePane

if TYPE_CHECKING:
    from fusetui.app.glyphs import Glyphs
    from fusetui.triage.finding import Finding

_LABEL: Final = 12
_VALUE: Final = 9
Line = tuple[str, str, int, int]
"""(label, text, ink of the label, ink of the text)."""


class EvidencePane(TriagePane):
    TITLE = "Evidence"
    HELP = """The selected finding in full.

evidence        each number it rests on, and the columns of the contract it comes from
does not prove  what these numbers leave open
confidence      sure: counted or measured; likely: measured, another reading is open; possible: one sign of it
next, fix       what to look at now; a bounded change, and its rollback: fusetui changes nothing by itself
rows            the slice: from when to when, and the filter that leaves the rows that show it
Keys            up and down scroll, Enter goes to the proof (Esc brings back), o decides, y copies it as Markdown
Columns         named beside each number
Blind to        what the trace does not carry: see the evidence matrix."""
    top = 0

    def trust(self, snapshot: Snapshot) -> str:
        finding = self.finding()
        return "" if finding is None else finding.confidence

    def select(self, delta: int) -> None:
        self.top = max(0, self.top + delta)
        self.repaint()

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        finding = self.finding()
        if finding is None:
            draw_text(canvas, self.quiet(snapshot) or "")
            return
        lines = list(self._lines(finding, snapshot, canvas.width, canvas.glyphs))
        self.top = max(0, min(self.top, len(lines) - canvas.height))
        shown = lines[self.top : self.top + canvas.height]
        for y, (label, text, label_ink, ink) in enumerate(shown):
            x = canvas.put(0, y, label, label_ink)
            canvas.put(x, y, fmt.clip(text, canvas.width - x), ink)
        if self.top + canvas.height < len(lines):
            canvas.put_right(canvas.width, canvas.height - 1, " ↓ more", Ink.ACCENT)

    def _lines(self, finding: Finding, snapshot: Snapshot, width: int, glyphs: Glyphs) -> Iterator[Line]:
        yield from wrapped(f"{mark_of(finding.severity, glyphs)} ", finding.sentence, width, INKS[finding.severity])
        share = share_of(finding)
        told = [class_of(finding), finding.stage or ""]
        told += [f"{fmt.percent(share).strip()} of the tail"] if share is not None else []
        told += [f"owner {finding.owner}"] if finding.owner else []
        yield from wrapped("  ", " · ".join(word for word in told if word), width, Ink.DIM, Ink.DIM)
        for fact in finding.evidence:
            value = fmt.fit(value_text(fact), _VALUE, right=True)
            columns = f"  [{', '.join(fact.columns)}]" if fact.columns else ""
            yield from wrapped(f"{value}  ", f"{fact.text}{columns}", width, Ink.STRONG)
        for number, text in enumerate(finding.does_not_prove):
            yield from wrapped(fmt.fit("" if number else "leaves open", _LABEL), text, width)
        for label, text in (
            (finding.confidence, finding.confidence_why),
            ("next", finding.next_action),
            ("fix", finding.fix),
            ("rollback", finding.rollback),
            ("rows", slice_text(finding.slice, snapshot.header.clock)),
        ):
            if text:
                yield from wrapped(fmt.fit(label, _LABEL), text, width)
        if finding.contradicts:
            yield from wrapped(fmt.fit("against", _LABEL), ", ".join(finding.contradicts), width)


def wrapped(label: str, text: str, width: int, label_ink: int = Ink.DIM, ink: int = Ink.FG) -> Iterator[Line]:
    """A label and its text, wrapped beside it."""
    indent = cell_len(label)
    for number, line in enumerate(textwrap.wrap(text, max(8, width - indent)) or [""]):
        yield label if number == 0 else " " * indent, line, label_ink, ink
