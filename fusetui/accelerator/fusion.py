"""Which operators to run together: the cheapest partition of a DAG into groups that can follow one another.

A state is a down-set of the DAG (operators done, closed under predecessors) and a step adds one group whose
predecessors are done; `lattice.py` sweeps over all of them, which is exact. Where there are more of them than the cap,
a beam keeps the best of every size and the result says that it is not proved optimal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from fusetui.accelerator.lattice import Lattice, Queue, build_lattice, groups_by_start, ready, soonest_path

GROUP_CAP: Final = 10
CANDIDATE_CAP: Final = 600
STATE_CAP: Final = 20_000
STEP_CAP: Final = 40_000  # groups looked at: a transformer layer needs about a thousand
BEAM_WIDTH: Final = 8
BEAM_READY: Final = 4  # of the operators that could run next, in the order of the graph

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Partition:
    """Groups in an order they can run in, as bitmasks of operators."""

    groups: tuple[int, ...]
    proved_optimal: bool
    states: int


@dataclass(frozen=True, slots=True)
class Candidates:
    """Convex connected groups; `complete` is False when the enumeration was cut short."""

    masks: tuple[int, ...]
    complete: bool


@lru_cache(maxsize=1 << 16)
def bits(mask: int) -> tuple[int, ...]:
    """Positions of the set bits, ascending."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return tuple(found)


def enumerate_groups(
    preds: Sequence[int],
    *,
    may_grow: Callable[[int], bool] = lambda _: True,
    cap: int = GROUP_CAP,
    limit: int = CANDIDATE_CAP,
) -> Candidates:
    """Every connected convex set of at most `cap` operators, single operators first.

    may_grow  False for a set that no larger set containing it could make legal; it must hold for every connected
              subset of a legal set, and it prunes
    """
    n = len(preds)
    links = _Links.of(preds, may_grow)
    found = _all_groups(links, cap, limit)
    if found is not None:
        return Candidates(tuple(found), True)
    shared = max(1, (limit - n) // n)
    found = [1 << i for i in range(n)]
    for first in links.single:
        found += _small_groups(links, first, cap, shared)
    return Candidates(tuple(found + _greedy(links, cap, set(found))), False)


# Connected operators, those that touch them, those before and those after them, as bitmasks: plain, as there are many.
_Set = tuple[int, int, int, int]


def _is_convex(found: _Set) -> bool:
    """Whether no path leaves the set and comes back: what lies on one is both after and before it."""
    mask, _, before, after = found
    return not before & after & ~mask


@dataclass(frozen=True, slots=True)
class _Links:
    """Every operator of a DAG as a set of its own, by its bit, and what prunes larger sets."""

    single: dict[int, _Set]
    may_grow: Callable[[int], bool]

    @classmethod
    def of(cls, preds: Sequence[int], may_grow: Callable[[int], bool]) -> _Links:
        n = len(preds)
        around, before, after = list(preds), list(preds), [0] * n
        for i, mask in enumerate(preds):
            for j in bits(mask):
                around[j] |= 1 << i
                before[i] |= before[j]
        for i in reversed(range(n)):
            for j in bits(preds[i]):
                after[j] |= after[i] | 1 << i
        return cls({1 << i: (1 << i, around[i], before[i], after[i]) for i in range(n)}, may_grow)

    def grown(self, frontier: Iterable[_Set], first: int, seen: set[int]) -> Iterator[_Set]:
        """Sets one operator larger; none reaches before the operator whose bit is `first`."""
        single, may_grow, within = self.single, self.may_grow, -first
        for mask, around, before, after in frontier:
            left = around & ~mask & within
            while left:
                bit = left & -left
                left ^= bit
                larger = mask | bit
                if larger not in seen:
                    seen.add(larger)
                    if may_grow(larger):
                        _, touched, above, below = single[bit]
                        yield larger, around | touched, before | above, after | below


def _all_groups(links: _Links, cap: int, limit: int) -> list[int] | None:
    """Every group; None when there are more than `limit`."""
    found = list(links.single)
    for first, alone in links.single.items():
        seen, frontier = {first}, [alone]
        for _ in range(cap - 1):
            frontier = list(links.grown(frontier, first, seen))
            found += [s[0] for s in frontier if _is_convex(s)]
            if len(found) > limit or len(seen) > 4 * limit:
                return None
            if not frontier:
                break
    return found


def _small_groups(links: _Links, first: int, cap: int, room: int) -> list[int]:
    """About `room` of the smallest groups whose first operator has the bit `first`."""
    found: list[int] = []
    seen, frontier = {first}, [links.single[first]]
    for _ in range(cap - 1):
        frontier = list(links.grown(frontier, first, seen))[: room - len(found)]
        found += [s[0] for s in frontier if _is_convex(s)]
        if not frontier:
            break
    return found


def _greedy(links: _Links, cap: int, known: set[int]) -> list[int]:
    """From every operator, one chain of ever larger groups: what a cut enumeration would miss."""
    found = []
    for last in links.single.values():
        for _ in range(cap - 1):
            grown = next((s for s in links.grown([last], 1, set()) if _is_convex(s)), None)
            if grown is None:
                break
            last = grown
            if last[0] not in known:
                known.add(last[0])
                found.append(last[0])
    return found


def best_partition(
    preds: Sequence[int],
    masks: Sequence[int],
    took: Floats,
    launched: npt.NDArray[np.bool_],
    queue: Queue,
    *,
    fewest_first: bool = False,
    step_allowed: Callable[[int, int], bool] | None = None,
    lattice: Lattice | Literal["too large"] | None = None,
    state_cap: int = STATE_CAP,
    complete: bool = True,
) -> Partition | None:
    """The partition and order that ends soonest, fewer launches breaking ties; None when no order is allowed.

    preds           per operator in topological order, the bitmask of those it reads from
    masks           groups, every single operator among them
    took, launched  (groups,): ns, infinite for one that is not taken, and whether it is launched at all
    queue           when kernels may start
    fewest_first    the fewest launches instead, time breaking ties
    step_allowed    (done, group) -> whether the group may run next; for limits on live memory
    lattice         of these groups, where it was built before or found too large
    complete        False when `masks` is not every legal group, so nothing can be proved
    """
    lattice = lattice or build_lattice(preds, masks, state_cap, STEP_CAP)
    if lattice is None or lattice == "too large":
        return _beam(preds, masks, took, launched, queue, fewest_first, step_allowed)
    allowed = None if step_allowed is None else (lambda done, which: step_allowed(done, masks[which]))
    path = soonest_path(lattice, took, launched, queue, fewest_first=fewest_first, allowed=allowed)
    if path is None:
        return None
    return Partition(tuple(masks[which] for which in path), complete, len(lattice.states))


def _beam(
    preds: Sequence[int],
    masks: Sequence[int],
    took: Floats,
    launched: npt.NDArray[np.bool_],
    queue: Queue,
    fewest_first: bool,
    allowed: Callable[[int, int], bool] | None,
) -> Partition | None:
    """The soonest partition found while only the best few down-sets of every size are followed, a few ways on each."""
    taken = np.flatnonzero(np.isfinite(took)).tolist()
    starting = groups_by_start(preds, [masks[i] for i in taken])
    times, counts = took[taken].tolist(), launched[taken].tolist()
    submitted, gap = queue.submitted.tolist(), queue.gap_ns
    # Per down-set: what is compared, launches, end of the last kernel, the group that led here.
    table: dict[int, tuple[tuple[float, float], int, float, int]] = {0: ((0.0, 0.0), 0, 0.0, 0)}
    layers: list[list[int]] = [[0], *([] for _ in preds)]
    for layer in layers[:-1]:
        for done in sorted(layer, key=lambda state: table[state][0])[:BEAM_WIDTH]:
            _, launches, ended, _ = table[done]
            free = ended + gap if launches else ended
            for i in islice(ready(preds, done), BEAM_READY):
                for mask, need, both, which in starting[i]:
                    if (done ^ need) & both or (allowed is not None and not allowed(done, mask)):
                        continue
                    count = launches + counts[which]
                    end = (max(free, submitted[launches]) if counts[which] else ended) + times[which]
                    rank = (count, end) if fewest_first else (end, count)
                    state = done | mask
                    known = table.get(state)
                    if known is None:
                        layers[state.bit_count()].append(state)
                    if known is None or rank < known[0]:
                        table[state] = (rank, count, end, mask)
    state = (1 << len(preds)) - 1
    if state not in table:
        return None
    groups, states = [], len(table)
    while state:
        groups.append(table[state][3])
        state &= ~groups[-1]
    return Partition(tuple(reversed(groups)), False, states)
