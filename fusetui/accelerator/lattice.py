"""The down-sets of a DAG and the groups that lead from one to the next, as arrays: searched again for every cost.

A down-set is a state whose best cost does not depend on what follows, so a sweep in order of size is exact. Which
steps there are depends on the DAG and its groups alone; only costs change with sizes, hardware and policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Lattice:
    """States in order of size, the empty set first and the whole DAG last; steps sorted by the state they lead to.

    states                 down-sets as bitmasks
    source, group, target  arrays (E,): the state a step leaves, the group it adds and the state it leads to, as indices
    """

    states: tuple[int, ...]
    source: Integers
    group: Integers
    target: Integers


def build_lattice(preds: Sequence[int], masks: Sequence[int], state_cap: int, step_cap: int) -> Lattice | None:
    """Every down-set that groups can reach, None when there are too many. Masks must hold every single operator."""
    starting = groups_by_start(preds, masks)
    if _least_steps(preds, [len(groups) for groups in starting]) > step_cap:
        return None
    n = len(preds)
    into: dict[int, list[tuple[int, int]]] = {0: []}
    layers: list[list[int]] = [[0], *([] for _ in preds)]
    looked = 0
    for layer in layers[:n]:
        for done in layer:
            if len(into) > state_cap or looked > step_cap:
                return None
            for i in ready(preds, done):
                looked += len(starting[i])
                for mask, need, both, which in starting[i]:
                    if (done ^ need) & both:
                        continue
                    state = done | mask
                    steps = into.get(state)
                    if steps is None:
                        steps = into[state] = []
                        layers[state.bit_count()].append(state)
                    steps.append((done, which))
    return _arrays([layer for layer in layers if layer], into)


def _least_steps(preds: Sequence[int], starting: Sequence[int]) -> int:
    """How many steps a sweep looks at, at the least and but for the last: wide DAGs are known without one.

    With all operators of less depth done, any part of those of one depth may be done; each of the rest is ready then.
    """
    depth: list[int] = []
    levels: dict[int, list[int]] = {}
    for i, mask in enumerate(preds):
        depth.append(1 + max((depth[j] for j in range(i) if mask >> j & 1), default=-1))
        levels.setdefault(depth[i], []).append(starting[i])
    return sum(sum(level) << len(level) - 1 for level in levels.values()) - max(starting, default=0)


def groups_by_start(preds: Sequence[int], masks: Sequence[int]) -> list[list[tuple[int, int, int, int]]]:
    """(mask, operators read from outside, both together, index) of groups, by their first operator.

    The first operator must be ready before any of its group can run. A group can follow a down-set `done` when
    (done ^ read from outside) & both is 0: all of what it reads is done and none of itself.
    """
    found: list[list[tuple[int, int, int, int]]] = [[] for _ in preds]
    for which, mask in enumerate(masks):
        need, left = 0, mask
        while left:
            low = left & -left
            need |= preds[low.bit_length() - 1]
            left ^= low
        found[(mask & -mask).bit_length() - 1].append((mask, need & ~mask, need | mask, which))
    return found


def ready(preds: Sequence[int], done: int) -> Iterator[int]:
    """Operators that are not done and read only from what is, ascending."""
    left = (1 << len(preds)) - 1 & ~done
    while left:
        low = left & -left
        i = low.bit_length() - 1
        if not preds[i] & ~done:
            yield i
        left ^= low


def _arrays(layers: list[list[int]], into: dict[int, list[tuple[int, int]]]) -> Lattice:
    states = [state for layer in layers for state in layer]
    at = {state: i for i, state in enumerate(states)}
    steps = [(at[done], which, target) for target, state in enumerate(states) for done, which in into[state]]
    return Lattice(tuple(states), *np.array(steps, dtype=np.int64).reshape(-1, 3).T)


@dataclass(frozen=True, slots=True)
class Queue:
    """When the n-th kernel may start, ns: `submitted` (at least as many as kernels), and `gap_ns` after the last."""

    submitted: Floats
    gap_ns: float

    def end(self, kernels: int, ended: float, took: float) -> float:
        """When one more kernel ends, after `kernels` of which the last ended at `ended`."""
        return max(ended + (self.gap_ns if kernels else 0.0), float(self.submitted[kernels])) + took


# A way to a state: launches, when the last kernel ends, time of all kernels, and the step that led here.
_Way = tuple[int, float, float, int]


def soonest_path(
    lattice: Lattice,
    took: Floats,
    launched: npt.NDArray[np.bool_],
    queue: Queue,
    *,
    fewest_first: bool,
    allowed: Callable[[int, int], bool] | None = None,
) -> list[int] | None:
    """Groups, in order, that end soonest; with `fewest_first` of those with fewest launches. None when nothing may run.

    took, launched  (G,): time of a group, infinite for one that is not taken, and whether it needs a launch
    allowed         (down-set, group) -> whether the group may run next

    Exact: of ways to a down-set, one that ends no sooner and has no fewer launches than another is never needed. That
    leaves a few, so plain numbers are faster here than arrays over all launches. Device time breaks ties.
    """
    steps = np.flatnonzero(np.isfinite(took[lattice.group]))
    source, group, target = (a[steps].tolist() for a in (lattice.source, lattice.group, lattice.target))
    times, counts = took[lattice.group[steps]].tolist(), launched[lattice.group[steps]].tolist()
    submitted, gap = queue.submitted.tolist(), queue.gap_ns
    ways: list[list[_Way]] = [[(0, 0.0, 0.0, 0)], *([] for _ in lattice.states[1:])]
    found: dict[int, tuple[float, float, int]] = {}
    reached = 1
    for step, (left, which, state) in enumerate(zip(source, group, target, strict=True)):
        if state != reached:
            ways[reached], reached = _needed(found), state
            found.clear()
        if not ways[left] or (allowed is not None and not allowed(lattice.states[left], which)):
            continue
        time, count = times[step], counts[step]
        for launches, ended, busy, _ in ways[left]:
            start = max(ended + gap if launches else ended, submitted[launches]) if count else ended
            way, at = (start + time, busy + time, step), launches + count
            known = found.get(at)
            if known is None or way < known:
                found[at] = way
    ways[reached] = _needed(found)
    return _way_back(ways, source, group, counts, fewest_first)


def _needed(found: dict[int, tuple[float, float, int]]) -> list[_Way]:
    """The ways that end sooner than all with fewer launches, by launches."""
    kept: list[_Way] = []
    for launches in sorted(found):
        if not kept or found[launches][0] < kept[-1][1]:
            kept.append((launches, *found[launches]))
    return kept


def _way_back(
    ways: list[list[_Way]], source: list[int], group: list[int], counts: list[bool], fewest_first: bool
) -> list[int] | None:
    if not ways[-1]:
        return None
    launches, _, _, step = ways[-1][0 if fewest_first else -1]
    groups = [group[step]]
    while state := source[step]:
        launches -= counts[step]
        step = next(way[3] for way in ways[state] if way[0] == launches)
        groups.append(group[step])
    return groups[::-1]
