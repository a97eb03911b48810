"""The search against brute force over every partition, on random DAGs."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fusetui.accelerator.fusion import Candidates, Partition, best_partition, bits, enumerate_groups
from fusetui.accelerator.lattice import Queue


def every_partition(
    preds: list[int], legal: dict[int, float], queue: Queue, launched: dict[int, bool]
) -> list[tuple[float, int]]:
    """(end, launches) of every way to run groups one after the other, each operator once."""
    found: set[tuple[float, int]] = set()
    seen: set[tuple[int, float, int]] = set()

    def run(done: int, end: float, launches: int) -> None:
        if (done, end, launches) in seen:
            return
        seen.add((done, end, launches))
        if done == (1 << len(preds)) - 1:
            found.add((end, launches))
        for group, took in legal.items():
            if not group & done and not any(preds[i] & ~(done | group) for i in bits(group)):
                more = launched[group]
                run(done | group, queue.end(launches, end, took) if more else end + took, launches + more)

    run(0, 0.0, 0)
    return sorted(found)


def can_be_ordered(preds: list[int], groups: list[int]) -> bool:
    done, left = 0, list(groups)
    while left:
        ready = [g for g in left if not any(preds[i] & ~(done | g) for i in bits(g))]
        if not ready:
            return False
        done |= ready[0]
        left.remove(ready[0])
    return True


def convex_connected_by_force(preds: list[int], cap: int) -> set[int]:
    n = len(preds)
    reach = [[bool(preds[j] >> i & 1) for j in range(n)] for i in range(n)]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                reach[i][j] = reach[i][j] or (reach[i][k] and reach[k][j])
    found = set()
    for mask in range(1, 1 << n):
        inside = bits(mask)
        if len(inside) > cap:
            continue
        outside = [o for o in range(n) if not mask >> o & 1]
        if any(reach[a][o] and reach[o][b] for o in outside for a in inside for b in inside):
            continue
        linked = {inside[0]}
        while True:
            more = {
                j for j in inside if j not in linked
                for i in linked if preds[j] >> i & 1 or preds[i] >> j & 1
            }  # fmt: skip
            if not more:
                break
            linked |= more
        if len(linked) == len(inside):
            found.add(mask)
    return found


@st.composite
def dags(draw: st.DrawFn, most: int = 8) -> list[int]:
    n = draw(st.integers(1, most))
    return [draw(st.integers(0, (1 << i) - 1)) for i in range(n)]


@given(dags(), st.integers(1, 5))
def test_the_groups_are_all_convex_connected_sets(preds: list[int], cap: int) -> None:
    found = enumerate_groups(preds, cap=cap)
    assert found.complete
    assert len(set(found.masks)) == len(found.masks)
    assert set(found.masks) == convex_connected_by_force(preds, cap)


@given(dags(most=6), st.data())
def test_the_partition_ends_as_soon_as_the_best_of_all(preds: list[int], data: st.DataObject) -> None:
    groups = enumerate_groups(preds).masks
    single = [m for m in groups if m.bit_count() == 1]
    fused = [m for m in groups if m.bit_count() > 1 and data.draw(st.booleans())]
    legal = {m: float(data.draw(st.integers(0, 9))) for m in [*single, *fused]}
    launched = {m: data.draw(st.integers(0, 4)) > 0 for m in legal}
    call, gap = data.draw(st.integers(0, 6)), data.draw(st.integers(0, 3))
    queue = Queue(call * np.arange(1.0, len(preds) + 1) + 5, float(gap))
    every = every_partition(preds, legal, queue, launched)
    for fewest_first in (False, True):
        plan = search(preds, legal, queue, launched, fewest_first=fewest_first)
        assert plan is not None
        assert plan.proved_optimal
        assert sum(plan.groups) == (1 << len(preds)) - 1
        assert can_be_ordered(preds, list(plan.groups))
        assert reached(plan, legal, queue, launched) == min(
            every, key=lambda way: (way[1], way[0]) if fewest_first else way
        )
        beam = search(preds, legal, queue, launched, fewest_first=fewest_first, state_cap=0)
        assert beam is not None
        assert not beam.proved_optimal
        assert reached(beam, legal, queue, launched) in every


def search(
    preds: list[int], legal: dict[int, float], queue: Queue, launched: dict[int, bool], **options: Any
) -> Partition | None:
    took = np.array(list(legal.values()))
    return best_partition(preds, list(legal), took, np.array(list(launched.values())), queue, **options)


def reached(plan: Partition, legal: dict[int, float], queue: Queue, launched: dict[int, bool]) -> tuple[float, int]:
    end, launches = 0.0, 0
    for group in plan.groups:
        end = queue.end(launches, end, legal[group]) if launched[group] else end + legal[group]
        launches += launched[group]
    return end, launches


def plain(masks: list[int], took: list[float], preds: list[int], **options: Any) -> Partition | None:
    queue = Queue(np.zeros(len(preds)), 0.0)
    return search(preds, dict(zip(masks, took, strict=True)), queue, dict.fromkeys(masks, True), **options)


def test_time_that_launch_calls_hide_is_not_paid_for() -> None:
    # Two calls end at 10 and 20; the fused kernel is ready at 10 and takes longer than the two hidden ones.
    queue, took = Queue(np.array([10.0, 20.0]), 1.0), {1: 4.0, 2: 4.0, 3: 12.0}
    plan = search([0, 1], took, queue, dict.fromkeys(took, True))
    assert plan is not None
    assert plan.groups == (3,)
    slow = search([0, 1], took | {3: 15.0}, queue, dict.fromkeys(took, True))
    assert slow is not None
    assert slow.groups == (1, 2)


def test_beyond_the_state_cap_a_beam_answers_and_says_so() -> None:
    preds = [0] * 12 + [(1 << 12) - 1]
    masks = [1 << i for i in range(13)]
    plan = plain(masks, [1.0] * 13, preds, state_cap=200)
    assert plan is not None
    assert not plan.proved_optimal
    assert len(plan.groups) == 13


def test_too_many_groups_are_not_called_complete() -> None:
    preds = [0] + [1] * 14
    assert enumerate_groups(preds, limit=100) == Candidates(enumerate_groups(preds, limit=100).masks, False)


def test_no_allowed_order_is_no_plan() -> None:
    assert plain([1, 2], [1.0] * 2, [0, 1], step_allowed=lambda done, group: group != 2) is None


def test_a_limit_on_steps_changes_the_plan() -> None:
    masks, took = [1, 2, 3], [2.0, 2.0, 1.0]
    free = plain(masks, took, [0, 1])
    held = plain(masks, took, [0, 1], step_allowed=lambda done, group: group != 3)
    assert free is not None
    assert free.groups == (3,)
    assert held is not None
    assert held.groups == (1, 2)
