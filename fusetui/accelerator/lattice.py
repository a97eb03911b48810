"""The down-sets of a DAG and the groups that lead from one to the next, as arrays: searched again for every cost.

A down-set is a state whose best cost does not depend on what follows, so a sweep in order of size is exact. Which
steps there are depends on the DAG and its groups alone; only costs change with sizes, hardware and policy.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Lattice:
    """States in order of size, the empty set first and the whole DAG last; steps sorted by the state they lead to.

    states        down-sets as bitmasks
    source, group arrays (E,): the state a step leaves, and the group it adds, as indices
    first         (S,) per state but the empty one, the first of the steps that lead to it
    layers        ranges of states of one size, the empty set left out
    """

    states: tuple[int, ...]
    source: Integers
    group: Integers
    first: Integers
    layers: tuple[tuple[int, int], ...]


def build_lattice(preds: Sequence[int], masks: Sequence[int], state_cap: int, step_cap: int) -> Lattice | None:
    """Every down-set that groups can reach, None when there are too many. Masks must hold every single operator."""
    starting = groups_by_start(preds, masks)
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
    steps = [(at[done], which) for state in states for done, which in into[state]]
    counts = np.array([len(into[state]) for state in states[1:]], dtype=np.int64)
    ends = np.cumsum([len(layer) for layer in layers]).tolist()
    source, group = np.array(steps, dtype=np.int64).reshape(-1, 2).T
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)[:-1]
    return Lattice(tuple(states), source, group, first, tuple(itertools.pairwise(ends)))


@dataclass(frozen=True, slots=True)
class Queue:
    """When the n-th kernel may start, ns: `submitted` (at least as many as kernels), and `gap_ns` after the last."""

    submitted: Floats
    gap_ns: float

    def end(self, kernels: int, ended: float, took: float) -> float:
        """When one more kernel ends, after `kernels` of which the last ended at `ended`."""
        return max(ended + (self.gap_ns if kernels else 0.0), float(self.submitted[kernels])) + took


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

    Exact: of ways to a down-set with as many launches, the one that ends first is never worse. Device time breaks ties.
    """
    duration, counts = took[lattice.group], launched[lattice.group][:, None]
    if allowed is not None:
        finite = np.flatnonzero(np.isfinite(duration))
        steps = zip(lattice.source[finite].tolist(), lattice.group[finite].tolist(), strict=True)
        duration[finite[[not allowed(lattice.states[source], group) for source, group in steps]]] = np.inf
    most = lattice.states[-1].bit_length() + 1
    submitted = queue.submitted[: most - 1]
    gap = np.where(np.arange(most - 1) > 0, queue.gap_ns, 0.0)
    end, busy = np.full((2, len(lattice.states), most), np.inf)
    end[0, 0] = busy[0, 0] = 0.0
    through = np.zeros(end.shape, dtype=np.int64)
    bounds = np.append(lattice.first, lattice.source.size)
    for low, high in lattice.layers:
        # Steps to state s begin at first[s - 1]: none lead to the empty set.
        starts, stop = bounds[low - 1 : high - 1], int(bounds[high - 1])
        here = slice(int(starts[0]), stop)
        before, time = end[lattice.source[here]], duration[here][:, None]
        started = np.maximum(before[:, :-1] + gap, submitted) + time
        at = _shifted(counts[here], before + time, started)
        work = busy[lattice.source[here]] + time
        work = _shifted(counts[here], work, work[:, :-1])
        lengths = np.diff(np.append(starts, stop))
        end[low:high] = np.minimum.reduceat(at, starts - starts[0])
        work = np.where(at == np.repeat(end[low:high], lengths, axis=0), work, np.inf)
        busy[low:high] = np.minimum.reduceat(work, starts - starts[0])
        row = np.arange(work.shape[0])[:, None]
        chosen = np.where(work == np.repeat(busy[low:high], lengths, axis=0), row, work.shape[0])
        through[low:high] = starts[0] + np.minimum.reduceat(chosen, starts - starts[0])
    return _way_back(lattice, through, launched, end[-1], fewest_first)


def _shifted(counts: npt.NDArray[np.bool_], same: Floats, launched: Floats) -> Floats:
    """(E, launches) values after a step: one column further where it is a launch."""
    after = np.full_like(same, np.inf)
    after[:, 1:] = launched
    return np.where(counts, after, same)


def _way_back(
    lattice: Lattice, through: Integers, launched: npt.NDArray[np.bool_], ends: Floats, fewest_first: bool
) -> list[int] | None:
    if not np.isfinite(ends).any():
        return None
    launches = int(np.argmax(np.isfinite(ends)) if fewest_first else np.argmin(ends))
    groups, state = [], len(lattice.states) - 1
    while state:
        step = int(through[state, launches])
        groups.append(int(lattice.group[step]))
        launches -= int(launched[groups[-1]])
        state = int(lattice.source[step])
    return groups[::-1]
