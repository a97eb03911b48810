"""The engine: what comes out is ranked, complete, reproducible, and silent where there is nothing to say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cases import CASES
from triage_rows import MS, S, counter, poisson, serve, snapshot, work

from fusetui.analysis.filter import parse_filter
from fusetui.telemetry.header import Header
from fusetui.triage.finding import BOTTLENECKS, SEVERITIES
from fusetui.triage.judge import triage
from fusetui.triage.rules import all_rules


def _steady(seed: int = 1) -> list:
    arrival = poisson(60, 40, seed)
    return work(serve(arrival, np.random.default_rng(seed).integers(4 * MS, 9 * MS, len(arrival)), 2))


def test_nothing_ran() -> None:
    beat = counter("heartbeat", np.array([S]), 1)
    found = triage(snapshot([beat]))
    assert not found.judged
    assert not found.quiet
    assert found.why_not == "nothing ran in this window"
    assert len(found.matrix) == 5


def test_quiet_when_nothing_is_wrong() -> None:
    found = triage(snapshot(_steady()))
    assert found.judged
    assert found.quiet
    assert found.first is None
    assert {finding.severity for finding in found.findings} <= {"info"}


def test_the_same_snapshot_gives_the_same_findings() -> None:
    taken = snapshot(CASES["padded"]().batches)
    assert triage(taken) == triage(taken)


def test_an_objective_makes_a_breach_and_its_finding() -> None:
    taken = snapshot(_steady(), Header(clock="trace", slo_ns=8 * MS))
    found = triage(taken)
    over = next(finding for finding in found.findings if finding.id == "tail/objective")
    assert over.severity == "breach"
    assert over.evidence[0].value == taken.latency.p99_ns
    assert over.evidence[1].value == 8 * MS
    assert not found.quiet
    without = triage(taken, header=Header(clock="trace", slo_ns=S))
    assert without.quiet


@pytest.mark.parametrize("name", ["largest_batch", "cliff", "frozen", "opposite", "drift"])
def test_findings_are_ranked_and_carry_what_a_report_needs(name: str) -> None:
    case = CASES[name]()
    base = None if case.baseline is None else snapshot(case.baseline)
    found = triage(snapshot(case.batches), baseline=base)
    ranks = [
        (SEVERITIES.index(f.severity), -(f.cause if f.cause is not None else f.share or -1.0)) for f in found.findings
    ]
    assert ranks == sorted(ranks)
    for finding in found.findings:
        assert finding.sentence
        assert "\n" not in finding.sentence
        assert finding.confidence_why
        assert finding.does_not_prove
        assert finding.next_action
        assert finding.screen in {"overview", "tail", "queue", "cores", "fusion", "mapping"}
        assert finding.severity == "info" or finding.topic != "tail" or not finding.fix or finding.rollback
        assert all(0 <= share <= 1 for share in (finding.share, finding.cause) if share is not None)


@pytest.mark.parametrize("name", sorted(CASES))
def test_slices_choose_the_rows_of_their_finding(name: str) -> None:
    case = CASES[name]()
    taken = snapshot(case.batches)
    for finding in triage(taken).findings:
        only = parse_filter(finding.slice.filter)
        assert taken.window_start_ns <= finding.slice.from_ns <= finding.slice.to_ns <= taken.now_ns
        if only is not None:
            assert sum(int(only.mask(batch).sum()) for batch in case.batches) > 0, finding.slice.filter


def test_a_slice_is_inside_the_filter_in_force() -> None:
    taken = replace(snapshot(CASES["largest_batch"]().batches), filter_text='stream = "main" or core = 3')
    cut = {finding.slice.filter for finding in triage(taken).findings if finding.id == "fallback/silent"}
    assert cut == {'(stream = "main" or core = 3) and (mapping = "fallback")'}


def test_every_rule_says_what_it_reads_and_why() -> None:
    rules = all_rules()
    assert len({rule.id for rule in rules}) == len(rules)
    for rule in rules:
        assert rule.inputs
        assert rule.threshold
        assert rule.why
        assert rule.does_not_prove
        assert rule.next_action
        assert bool(rule.fix) == bool(rule.rollback)
        assert rule.fix or rule.bottleneck is None or rule.id == "fallback/drift"
    assert {rule.bottleneck for rule in rules if rule.bottleneck} == set(BOTTLENECKS)


def test_the_matrix_tells_what_the_trace_has() -> None:
    rows = {row.kind: row for row in triage(snapshot(_steady())).matrix}
    assert list(rows) == [
        "occupancy and timeline", "cache, SRAM and bandwidth", "counter-profile alignment", "thermal and power",
        "before/after scenario pack",
    ]  # fmt: skip
    timeline = rows["occupancy and timeline"]
    assert (timeline.presence, timeline.coverage) == ("partial", 1.0)
    assert timeline.have == "no occupancy counter"
    assert [row.presence for row in rows.values()][1:] == ["none"] * 4


def test_the_matrix_counts_coverage() -> None:
    at = np.arange(0, 40 * S, 500 * MS)
    arrival = poisson(60, 40, 3)
    n = len(arrival)
    half = np.where(np.arange(n) % 2 == 0, 1 << 20, 0)
    rows = work(serve(arrival, np.full(n, 5 * MS)), dram_bytes=half, sram_bytes=half)
    beside = [counter("sm occupancy", at, 60, "%", 0), counter("sm clock", at, 1700, "MHz", 0),
              counter("power draw", at, 300, "W", 0)]  # fmt: skip
    taken = snapshot([*rows, *beside])
    found = {row.kind: row for row in triage(taken, baseline=taken).matrix}
    assert found["occupancy and timeline"].presence == "full"
    assert found["cache, SRAM and bandwidth"].coverage == 1.0
    assert found["counter-profile alignment"].coverage == pytest.approx(80 / 118, abs=0.02)
    assert found["thermal and power"].coverage == pytest.approx(2 / 3)
    assert found["before/after scenario pack"].presence == "full"
