"""What was decided about the finding that is looked at."""

from __future__ import annotations

from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.palette import Ink
from fusetui.app.pane import draw_text
from fusetui.app.panes.evidence import wrapped
from fusetui.app.panes.triage_pane import TriagePane

_STATUS_INKS = {"open": Ink.WARN, "accepted": Ink.ACCENT, "fixed": Ink.OK, "rolled back": Ink.DIM}


class DecisionsPane(TriagePane):
    TITLE = "Decisions"
    HELP = """Every decision about the selected finding, newest first: when (UTC), status, owner, fix, undo, guardrail.

Keys      o decides again: the new decision is added, none is ever changed
Kept      as JSON lines beside the bookmarks, in fusetui/decisions of your state directory, by capture
Columns   none: people write this
Blind to  whether anything was done: fusetui changes nothing by itself."""

    def trust(self, snapshot: Snapshot) -> str:
        finding = self.finding()
        return "" if finding is None else f"{len(self.decisions(finding))} taken"

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        finding = self.finding()
        taken = self.decisions(finding) if finding is not None else ()
        if not taken:
            told = "nothing to decide" if finding is None else "None yet about this finding: o to say who does what."
            draw_text(canvas, told)
            return
        y = 0
        for one in reversed(taken):
            x = canvas.put(0, y, f"{one.at} ", Ink.DIM)
            x = canvas.put(x, y, one.status, _STATUS_INKS[one.status])
            canvas.put(x + 1, y, fmt.clip(one.owner, canvas.width - x - 1), Ink.STRONG)
            y += 1
            for label, text in (("fix", one.fix), ("rollback", one.rollback), ("guardrail", one.guardrail)):
                for head, line, head_ink, ink in wrapped(fmt.fit(f"  {label}", 12), text, canvas.width) if text else ():
                    x = canvas.put(0, y, head, head_ink)
                    canvas.put(x, y, fmt.clip(line, canvas.width - x), ink)
                    y += 1
