"""The evidence matrix: what each kind of evidence tells, what it does not prove, whether this trace has it."""

from __future__ import annotations

from fusetui.triage.finding import EvidenceRow
from fusetui.triage.measures import Measures


def evidence_matrix(measures: Measures) -> tuple[EvidenceRow, ...]:
    """Five kinds, always all of them."""
    return ()
