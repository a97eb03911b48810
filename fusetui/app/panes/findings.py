"""The findings as a list: how bad, which class, what, whose; Enter goes to the proof."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from rich.cells import cell_len
from textual import events
from textual.message import Message

from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.finding_text import INKS, bare_sentence, class_of, mark_of, share_of
from fusetui.app.list_pane import ListPane
from fusetui.app.palette import Ink
from fusetui.app.pane import draw_text
from fusetui.app.panes.triage_pane import TriagePane

if TYPE_CHECKING:
    from fusetui.triage.finding import Finding, Triage

_CLASS: Final = 14
_SHARE: Final = 6
_OWNER: Final = 20
_LEAST_OWNER: Final = 8
_SENTENCE: Final = 20
_MOST_LINES: Final = 3


class FindingsPane(TriagePane, ListPane):
    """Compact: for the overview, without shares."""

    TITLE = "Findings"
    HELP = """What the rules say of this window, ranked: severity, then share of the tail that it causes, then how sure.

✗         breach: against an objective, or the evidence itself is broken; ▲ look; · good to know
Class     the bottleneck it names, or what it is about: the tail, fairness, a device, the source, a contradiction
Share     of the latency of the slowest: of cause by the twin where it was asked (c), else of time
Owner     from owners.toml: the one named by --owners, else that of the project (the working folder or one above it, up
          to the one with .git), else that of your config folder; or from the newest decision
Quiet     says how many rules looked at how much: nothing found is not nothing looked at
Keys      up and down select, Enter goes to the proof: its screen and pane, with its rows alone in view; Esc brings
          back. o decides, y copies it as Markdown, d walks tail, fairness, memory.
Columns   those of the evidence, on screen 7
Blind to  what no rule asks; thresholds are in the documentation of each rule."""
    WITH_SHARE: ClassVar[bool] = False

    class Moved(Message):
        """Another finding is looked at."""

    def trust(self, snapshot: Snapshot) -> str:
        triage = self.found(snapshot)
        if triage is None or not triage.judged:
            return ""
        n = sum(one.severity != "info" and not self._settled(one) for one in triage.findings)
        return f"{n} open" if n else "none open"

    def _settled(self, finding: Finding) -> bool:
        decision = self.triage.decided(finding) if self.triage else None
        return decision is not None and decision.status != "open"

    def keys(self, snapshot: Snapshot) -> Sequence[str]:
        triage = self.found(snapshot)
        return [f"{one.id} {one.subject}" for one in triage.findings] if triage else ()

    def cursor(self, keys: Sequence[str]) -> int | None:
        """On the first one until it is moved."""
        chosen = self.triage.chosen if self.triage else ""
        return keys.index(chosen) if chosen in keys else 0 if keys else None

    def select(self, delta: int) -> None:
        super().select(delta)
        self._choose()

    def on_click(self, event: events.Click) -> None:
        super().on_click(event)
        self._choose()

    def _choose(self) -> None:
        if self.triage is not None and self.selected is not None:
            self.triage.chosen = self.selected
            self.repaint()
            self.post_message(self.Moved())

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        triage, quiet = self.found(snapshot), self.quiet(snapshot)
        if triage is None or quiet is not None:
            draw_text(canvas, quiet or "")
            return
        keys = self.keys(snapshot)
        note = self._note(triage)
        room = canvas.height - (1 if note else 0)
        self.item_lines = max(1, min(_MOST_LINES, room // len(keys)))
        owners = min(_OWNER, max(cell_len(self._owner(one)) for one in triage.findings))
        view = self.in_view(keys, max(1, room // self.item_lines))
        cursor = self.cursor(keys)
        for i in view:
            y = (i - view.start) * self.item_lines
            self._draw_finding(canvas.view(0, y, canvas.width, self.item_lines), triage.findings[i], owners)
            if i == cursor and (self.has_focus or self.WITH_SHARE):
                for line in range(y, y + self.item_lines):
                    canvas.select(line)
        if note:
            canvas.put(0, canvas.height - 1, fmt.clip(note, canvas.width), Ink.WARN)

    def _note(self, triage: Triage) -> str:
        if not triage.judged:
            return f"not judged: {triage.why_not}"
        return self.triage.answer.problem if self.triage and self.triage.answer else ""

    def _owner(self, finding: Finding) -> str:
        decision = self.triage.decided(finding) if self.triage else None
        owner = (decision.owner if decision else "") or finding.owner
        return f"{decision.status} {owner}".strip() if decision is not None and decision.status != "open" else owner

    def _draw_finding(self, canvas: Canvas, finding: Finding, owners: int) -> None:
        ink = INKS[finding.severity]
        canvas.put(0, 0, mark_of(finding.severity, canvas.glyphs), ink)
        canvas.put(2, 0, fmt.fit(class_of(finding), _CLASS), Ink.DIM if finding.severity == "info" else Ink.STRONG)
        x, right = 3 + _CLASS, canvas.width
        # Below the class where there is a line for it, else at the right: the sentence needs the room.
        owner, beside = self._owner(finding), min(owners, right - x - _SENTENCE - 2)
        if canvas.height > 1:
            canvas.put(2, 1, fmt.clip(owner, _CLASS), Ink.ACCENT)
        elif beside >= _LEAST_OWNER:
            right -= beside
            canvas.put(right, 0, fmt.fit(owner, beside), Ink.ACCENT)
            right -= 2
        if self.WITH_SHARE and right - x >= _SENTENCE + _SHARE + 1:
            right -= _SHARE
            canvas.put(right, 0, fmt.percent(share_of(finding)), Ink.FG)
            right -= 1
        lines = textwrap.wrap(bare_sentence(finding), max(1, right - x)) or [""]
        shown, told = lines[: canvas.height], Ink.DIM if finding.severity == "info" else Ink.FG
        for y, line in enumerate(shown):
            more = y == len(shown) - 1 and len(lines) > len(shown)
            canvas.put(x, y, fmt.clip(f"{line[: right - x - 1]}…" if more else line, right - x), told)


class TriageListPane(FindingsPane):
    """With shares, for the triage screen."""

    TITLE = "Findings · share of the tail"
    WITH_SHARE = True
