"""All rules over one snapshot, ranked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from fusetui.analysis.snapshot import Snapshot
from fusetui.telemetry.header import Header
from fusetui.triage.finding import SEVERITIES, Finding, Triage
from fusetui.triage.matrix import evidence_matrix
from fusetui.triage.measures import measures_of
from fusetui.triage.rules import all_rules

if TYPE_CHECKING:
    from fusetui.analysis.attribution.causes import Causes
    from fusetui.analysis.planned import GroupRow
    from fusetui.triage.owners import Owners

LEAST: Final = 60
"""Items from which p95 rests on three: fewer without a finding are no pass."""
_SURE: Final = ("sure", "likely", "possible")


def triage(
    snapshot: Snapshot,
    causes: Causes | None = None,
    header: Header | None = None,
    *,
    baseline: Snapshot | None = None,
    groups: Sequence[GroupRow] = (),
    owners: Owners | None = None,
) -> Triage:
    """What is wrong, from measures alone: the same snapshot gives the same findings.

    causes    what the twin says of the same window; without them shares are of time, not of cause
    header    in place of the snapshot's own
    baseline  a snapshot to compare with: without one nothing is said of before and after
    groups    of the plan, measured beside predicted (`analysis.planned.Planned.rows`)
    owners    who owns what, see `owners`
    """
    measures = measures_of(snapshot, header, causes, baseline, groups)
    found = [finding for rule in all_rules() for finding in rule.findings(measures)]
    if owners is not None:
        found = [owners.owned(finding, tuple(measures.header.plans)) for finding in found]
    why_not = _why_not(snapshot, quiet=all(finding.severity == "info" for finding in found))
    return Triage(
        findings=tuple(sorted(found, key=_rank)),
        matrix=evidence_matrix(measures),
        quiet=not why_not and all(finding.severity == "info" for finding in found),
        judged=not why_not,
        why_not=why_not,
    )


def _rank(finding: Finding) -> tuple[int, float, int, str, str]:
    """Severity, cause (else share of the tail), how sure; then by name, so that equals keep their order."""
    share = finding.cause if finding.cause is not None else -1.0 if finding.share is None else finding.share
    return SEVERITIES.index(finding.severity), -share, _SURE.index(finding.confidence), finding.id, finding.subject


def _why_not(snapshot: Snapshot, *, quiet: bool) -> str:
    if snapshot.latency.n == 0 and not snapshot.open_waiting and not snapshot.open_running:
        return "nothing ran in this window"
    if snapshot.latency.p95_ns is None:
        return snapshot.latency.why or "p95 is not known"
    return f"a tail needs n ≥ {LEAST}, have {snapshot.latency.n}" if quiet and snapshot.latency.n < LEAST else ""
