"""Every reported problem leads to its class, and none to a confident wrong one."""

from __future__ import annotations

import pytest
from cases import CASES, NOT_COVERED
from triage_rows import snapshot

from fusetui.triage.judge import triage

LISTED = {*range(1, 24), *range(25, 30), *range(31, 34)}
"""Those of the list that are marked as test cases."""


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    case = CASES[name]()
    baseline = None if case.baseline is None else snapshot(case.baseline)
    found = triage(snapshot(case.batches, case.header, **case.health), baseline=baseline)
    told = "\n".join(f"{f.severity} {f.bottleneck or f.topic} {f.id} {f.cause} {f.sentence}" for f in found.findings)
    assert case.rule in {finding.id for finding in found.findings}, told
    assert ("" if found.first is None else found.first.bottleneck) in case.right, told


def test_every_case_of_the_list_is_there_or_said_to_be_missing() -> None:
    assert {case().number for case in CASES.values()} | set(NOT_COVERED) == LISTED
