"""Every reported problem leads to its class, and none to a confident wrong one."""

from __future__ import annotations

import pytest
from cases import CASES
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


def test_every_case_of_the_list_is_there() -> None:
    assert {case().number for case in CASES.values()} == LISTED


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("floor", "ttft p99 is in the first bucket, up to 0.3 s, and the mean is 0.02"),
        ("pinned", "ttft p99 ≥ 60 s: it lies past the last bound"),
        ("finer", "ttft p99 went from (0, 0.3] to (0.02, 0.05] s while the mean stayed at 0.0199"),
        ("vanished", "requests waiting is no longer on the page"),
    ],
)
def test_a_page_of_metrics_is_told_with_its_numbers(name: str, said: str) -> None:
    case = CASES[name]()
    found = [one for one in triage(snapshot(case.batches, case.header)).findings if one.id == case.rule]
    assert said in " ".join(one.sentence for one in found)


def test_the_buckets_of_one_case_are_not_those_of_another() -> None:
    ids = ("honesty/first-bucket", "honesty/last-bucket", "honesty/buckets", "honesty/vanished")
    for name, right in zip(("floor", "pinned", "finer", "vanished"), ids, strict=True):
        case = CASES[name]()
        found = {one.id for one in triage(snapshot(case.batches, case.header)).findings} & set(ids)
        assert found == {right}, name
