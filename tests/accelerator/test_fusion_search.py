"""The search against brute force over every partition, on random DAGs."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from fusetui.accelerator.fusion import Candidates, best_partition, bits, enumerate_groups


def every_partition(preds: list[int], legal: dict[int, tuple[float, float]]) -> tuple[float, float]:
    """Cheapest partition whose groups can be ordered: set partitions one by one, order checked at the end."""
    n = len(preds)
    best = (math.inf, math.inf)

    def place(rest: int, chosen: list[int]) -> None:
        nonlocal best
        if not rest:
            if can_be_ordered(preds, chosen):
                cost = (sum(legal[g][0] for g in chosen), sum(legal[g][1] for g in chosen))
                best = min(best, cost)
            return
        low = rest & -rest
        others = rest ^ low
        sub = others
        while True:
            if sub | low in legal:
                place(others & ~sub, [*chosen, sub | low])
            if not sub:
                break
            sub = (sub - 1) & others

    place((1 << n) - 1, [])
    return best


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


@given(dags(), st.data())
def test_the_partition_is_as_cheap_as_the_best_of_all(preds: list[int], data: st.DataObject) -> None:
    groups = enumerate_groups(preds).masks
    single = [m for m in groups if m.bit_count() == 1]
    fused = [m for m in groups if m.bit_count() > 1 and data.draw(st.booleans())]
    cost = st.tuples(st.integers(0, 9).map(float), st.integers(0, 9).map(float))
    legal = {m: data.draw(cost) for m in [*single, *fused]}
    plan = best_partition(preds, list(legal), list(legal.values()))
    assert plan is not None
    assert plan.proved_optimal
    assert plan.cost == every_partition(preds, legal)
    assert sum(plan.groups) == (1 << len(preds)) - 1
    assert can_be_ordered(preds, list(plan.groups))
    assert plan.cost == (sum(legal[g][0] for g in plan.groups), sum(legal[g][1] for g in plan.groups))


def test_beyond_the_state_cap_a_beam_answers_and_says_so() -> None:
    preds = [0] * 12 + [(1 << 12) - 1]
    masks = [1 << i for i in range(13)]
    plan = best_partition(preds, masks, [(1.0, 1.0)] * 13, state_cap=200)
    assert plan is not None
    assert not plan.proved_optimal
    assert plan.cost == (13.0, 13.0)


def test_too_many_groups_are_not_called_complete() -> None:
    preds = [0] + [1] * 14
    assert enumerate_groups(preds, limit=100) == Candidates(enumerate_groups(preds, limit=100).masks, False)


def test_no_allowed_order_is_no_plan() -> None:
    assert best_partition([0, 1], [1, 2], [(1.0, 1.0)] * 2, step_allowed=lambda done, group: group != 2) is None


def test_a_limit_on_steps_changes_the_plan() -> None:
    masks, costs = [1, 2, 3], [(2.0, 1.0), (2.0, 1.0), (1.0, 1.0)]
    free = best_partition([0, 1], masks, costs)
    held = best_partition([0, 1], masks, costs, step_allowed=lambda done, group: group != 3)
    assert free is not None
    assert free.groups == (3,)
    assert held is not None
    assert held.groups == (1, 2)
