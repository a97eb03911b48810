"""Evidence that cannot all be true, or that speaks against a finding."""

from __future__ import annotations

from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.finding_text import INKS, bare_sentence, mark_of
from fusetui.app.palette import Ink
from fusetui.app.pane import draw_text
from fusetui.app.panes.evidence import wrapped
from fusetui.app.panes.triage_pane import TriagePane

NONE_FOUND = (
    "None. Looked for: launches fewer but p95 up; utilisation up, throughput flat; mean better, p99 worse; predictions "
    "right in total but wrong per group; capped clocks behind a regression; shapes outside the mix; a win without "
    "evidence of quality."
)


class ContradictionsPane(TriagePane):
    TITLE = "Contradictions"
    HELP = """Numbers that do not fit together: one of them, or the story told with them, is wrong.

Looked for   launch overhead fell but p95 rose; utilisation up, throughput flat; mean better, p99 worse; a prediction
             right in total but wrong per group; power-capped clocks behind a "kernel regression"; shapes outside the
             production mix; a precision or sparsity win without evidence of quality or fallback
against      the findings it puts in doubt
Columns      those of the evidence of each
Blind to     what needs a baseline, without one."""

    def trust(self, snapshot: Snapshot) -> str:
        triage = self.found(snapshot)
        return "" if triage is None else f"{len(triage.contradictions)} found"

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        triage = self.found(snapshot)
        if triage is None or not triage.contradictions:
            draw_text(
                canvas, NONE_FOUND if triage is not None and triage.judged else self.quiet(snapshot) or NONE_FOUND
            )
            return
        y = 0
        for one in triage.contradictions:
            mark = f"{mark_of(one.severity, canvas.glyphs)} "
            against = f" (against {', '.join(one.contradicts)})" if one.contradicts else ""
            for label, text, label_ink, ink in wrapped(
                mark, f"{bare_sentence(one)}{against}", canvas.width, INKS[one.severity]
            ):
                x = canvas.put(0, y, label, label_ink)
                canvas.put(x, y, fmt.clip(text, canvas.width - x), ink)
                y += 1
        if y > canvas.height:
            canvas.put_right(canvas.width, canvas.height - 1, " … more", Ink.ACCENT)
