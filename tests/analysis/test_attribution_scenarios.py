"""What the model names as the cause in the scenarios that ship: they are made to have one."""

from __future__ import annotations

import pytest

from fusetui.accelerator.scenario.build import Run
from fusetui.accelerator.scenario.parse import load_scenario
from fusetui.analysis.attribution.causes import Causes, causes_of
from fusetui.analysis.twin import twin_of
from fusetui.sources.simulated_header import header_of
from fusetui.sources.simulated_steps import one_round


def causes(name: str) -> Causes:
    run = Run(load_scenario(name))
    twin = twin_of(one_round(run), header_of(run, "trace"))
    assert not isinstance(twin, str), twin
    found = causes_of(twin)
    assert isinstance(found, Causes), found
    return found


@pytest.mark.parametrize(
    ("name", "cause"),
    [("steady", ""), ("burst", "queueing"), ("straggler", "imbalance"), ("head-of-line-prefill", "queueing"),
     ("metastable-fallback", "fallback")],
)  # fmt: skip
def test_the_cause_is_named_first(name: str, cause: str) -> None:
    found = causes(name)
    assert found.p99.named == cause
    if cause:
        row = next(row for row in found.p99.rows if row.name == cause)
        assert row.without_ns < 0.75 * found.p99.all_ns
    assert sum(found.p99.attribution.shares) == found.p99.all_ns - found.p99.none_ns


def test_over_fusion_is_a_memory_burst_that_raises_p95() -> None:
    found = causes("case-study")
    assert found.p95.named == "memory burst"
    row = next(row for row in found.p95.rows if row.name == "memory burst")
    assert row.without_ns < found.p95.all_ns
    assert any("in its busiest 100 µs" in note for note in found.notes)
