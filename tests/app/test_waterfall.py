"""The waterfall where there is little room: both ends stay, and the steps still lead from one to the other."""

from __future__ import annotations

import pytest

from fusetui.app.panes.tail_waterfall import Step, fewer

STEPS = [
    Step("median", 0.0, 10.0),
    Step("plan", 10.0, 12.0, 2.0),
    Step("queue", 12.0, 52.0, 40.0),
    Step("placement", 52.0, 57.0, 5.0),
    Step("completion", 56.0, 57.0, -1.0),
    Step("slowest", 0.0, 56.0),
]


@pytest.mark.parametrize("most", [6, 5, 4, 3, 1])
def test_it_still_adds_up(most: int) -> None:
    found = fewer(STEPS, most)
    assert len(found) == max(min(most, 6), 3)
    assert (found[0], found[-1]) == (STEPS[0], STEPS[-1])
    at = found[0].high
    for step in found[1:-1]:
        assert step.by_ns is not None
        assert (step.low, step.high) == (min(at, at + step.by_ns), max(at, at + step.by_ns))
        at += step.by_ns
    assert at == found[-1].high


def test_the_smallest_are_put_together() -> None:
    assert [step.label for step in fewer(STEPS, 5)] == ["median", "queue", "placement", "others", "slowest"]
    assert fewer(STEPS, 5)[3].by_ns == 1.0
