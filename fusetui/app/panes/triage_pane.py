"""Base of the panes that show what the rules found: they draw from the board, and when it has something new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.finding_text import markdown
from fusetui.app.pane import Pane

if TYPE_CHECKING:
    from fusetui.app.decisions import Decision
    from fusetui.app.triage_board import TriageBoard
    from fusetui.triage.finding import Finding, Triage

KINDS = (
    "launch, compute, DRAM and on-chip bandwidth, registers and spills, memory bursts, queueing, imbalance, fallback, "
    "batching, host, fairness, the source's own honesty, and contradictions"
)


class TriagePane(Pane):
    """A pane over the newest findings. The screen sets `triage`."""

    triage: TriageBoard | None = None

    def extra_state(self) -> tuple[object, ...]:
        return self.triage.state() if self.triage else ()

    def found(self, snapshot: Snapshot | None) -> Triage | None:
        """What the rules say, None: nothing yet."""
        return self.triage.of(snapshot) if self.triage else None

    def finding(self) -> Finding | None:
        """The one that is looked at."""
        return self.triage.finding(self.snapshot) if self.triage else None

    def decisions(self, finding: Finding) -> Sequence[Decision]:
        """What was decided about it."""
        return self.triage.decisions.of(finding.id, finding.subject) if self.triage else ()

    def quiet(self, snapshot: Snapshot) -> str | None:
        """What was looked at when nothing was found; None when something was."""
        triage = self.found(snapshot)
        if triage is None:
            problem = self.triage.answer.problem if self.triage and self.triage.answer else ""
            return problem or "asking the rules"
        if triage.findings:
            return None
        if not triage.judged:
            return f"Not judged: {triage.why_not}."
        rules = self.triage.answer.rules if self.triage and self.triage.answer else 0
        items = f"{fmt.count(snapshot.latency.n).strip()} {snapshot.latency_of}s"
        window = fmt.duration(snapshot.now_ns - snapshot.window_start_ns).strip()
        return f"Nothing crossed its threshold: {rules} rules looked at {items} in {window}.\nLooked for: {KINDS}."

    def copied(self) -> str | None:
        """The finding as Markdown, None when there is none."""
        finding = self.finding()
        if finding is None or self.snapshot is None:
            return None
        return markdown(finding, self.snapshot.header.clock, self.decisions(finding))

    def text(self) -> str:
        return self.copied() or super().text()
