"""Measured beside predicted: sums per group, signs, and verdicts at their edges."""

from __future__ import annotations

import dataclasses

import pytest
from recoverrows import recovered

from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.plan import Plan, make_plans
from fusetui.accelerator.presets import load_hardware
from fusetui.analysis.planned import Captured, Knobs, Measured, make_planned
from fusetui.analysis.residuals import as_ran, group_rows

H100 = load_hardware("h100")
CONSTANTS = default_constants(H100, "bf16")
CAPTURED = recovered(
    [
        ("aten::linear", "4096x4096 4096x4096 bf16", 200_000),
        ("aten::gelu", "4096x4096 bf16", 30_000),
        ("aten::linear", "4096x4096 1024x4096 bf16", 60_000),
    ]
)


def planned(policy: str) -> Plan:
    return make_plans(CAPTURED.graph, H100, CONSTANTS, "bf16").plans[policy]


def with_times(**times: int) -> Captured:
    measured = {name: Measured(3, took, None, 3 * took) for name, took in times.items()}
    return dataclasses.replace(CAPTURED, measured=measured)


def test_operators_that_the_plan_fuses_are_added_up() -> None:
    plan = planned("balanced")
    assert [group.ops for group in plan.groups] == [("linear", "gelu"), ("linear.2",)]
    rows = group_rows(plan, with_times(**{"linear": 200_000, "gelu": 30_000, "linear.2": 60_000}))
    first, second = rows
    assert first.measured == Measured(3, 230_000, None, 690_000)
    assert first.residual == pytest.approx(230_000 / plan.groups[0].predicted_ns - 1)
    assert second.residual == pytest.approx(60_000 / plan.groups[1].predicted_ns - 1)


@pytest.mark.parametrize(
    ("share", "verdict"), [(1.0, "fits"), (1.25, "fits"), (0.75, "fits"), (1.45, "slower"), (2.0, "unexplained"),
                           (0.55, "unexplained")]
)  # fmt: skip
def test_verdicts_of_a_product(share: float, verdict: str) -> None:
    """Alone, an operator has no slower way to run: twice the error bar is the last that is explained.

    55 % of the prediction would be more arithmetic per second than the device has.
    """
    plan = planned("none")
    took = round(plan.groups[0].predicted_ns * share)
    row = group_rows(plan, with_times(linear=took), H100)[0]
    assert row.residual == pytest.approx(share - 1, abs=1e-4)
    assert row.verdict == verdict


def test_faster_is_explained_while_the_arithmetic_allows_it() -> None:
    plan = planned("none")
    gelu = plan.groups[1]
    rows = group_rows(plan, with_times(gelu=round(gelu.predicted_ns * 0.6)), H100)
    assert [row.verdict for row in rows] == ["", "faster", ""]


def test_running_unfused_explains_being_slower() -> None:
    plan = planned("balanced")
    group = plan.groups[0]
    slow = group.unfused_ns * 1.5
    assert slow > group.predicted_ns * 1.6
    rows = group_rows(plan, with_times(linear=round(slow * 0.8), gelu=round(slow * 0.2)))
    assert rows[0].verdict == "slower"


def test_what_was_fused_otherwise_is_not_compared() -> None:
    joint = dataclasses.replace(with_times(gelu=90_000), together=(("gelu", "linear.2"),))
    rows = group_rows(planned("balanced"), joint)
    assert [(row.measured, row.residual, row.verdict) for row in rows] == [(None, None, "")] * 2


def test_as_ran_prices_exactly_what_ran() -> None:
    plan = planned("balanced")
    joint = dataclasses.replace(with_times(**{"linear": 230_000, "linear.2": 60_000}), together=(("linear", "gelu"),))
    fused, alone = as_ran(joint, H100, CONSTANTS)
    assert (fused.ops, fused.measured_ns, fused.legal) == (("linear", "gelu"), 230_000, True)
    assert fused.predicted_ns == pytest.approx(plan.groups[0].predicted_ns)
    assert alone.residual == pytest.approx(60_000 / plan.groups[1].predicted_ns - 1)


def test_a_plan_of_a_capture_has_its_measurements() -> None:
    found = make_planned(Knobs(block="", hardware="h100"), CAPTURED)
    assert found.captured is CAPTURED
    assert [row.measured.p50_ns for row in found.rows if row.measured] == [230_000, 60_000]
    block = make_planned(Knobs(block="mlp", hardware="h100"), CAPTURED)
    assert block.captured is None
    assert {row.verdict for row in block.rows} == {""}
