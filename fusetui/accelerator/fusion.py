"""Which operators to run together: the cheapest partition of a DAG into groups that can follow one another.

A state is a down-set of the DAG (operators done, closed under predecessors) and a step adds one group whose
predecessors are done; `lattice.py` sweeps over all of them, which is exact. Where there are more of them than the cap,
a beam keeps the best of every size and the result says that it is not proved optimal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
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


def outside_predecessors(preds: Sequence[int], mask: int) -> int:
    """Operators a group reads from and does not hold."""
    need = 0
    for i in bits(mask):
        need |= preds[i]
    return need & ~mask


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
    neighbours = list(preds)
    for i, mask in enumerate(preds):
        for j in bits(mask):
            neighbours[j] |= 1 << i
    links = _Links(preds, neighbours, _ancestors(preds), may_grow)
    found = _all_groups(links, cap, limit)
    if found is not None:
        return Candidates(tuple(found), True)
    shared = max(1, (limit - n) // n)
    found = [1 << i for i in range(n)]
    for first in range(n):
        found += _small_groups(links, first, cap, shared)
    return Candidates(tuple(found + _greedy(links, cap, set(found))), False)


@dataclass(frozen=True, slots=True)
class _Links:
    """A DAG as bitmasks per operator, and what prunes its groups."""

    preds: Sequence[int]
    neighbours: Sequence[int]
    ancestors: Sequence[int]
    may_grow: Callable[[int], bool]

    def is_convex(self, mask: int) -> bool:
        """Whether no path leaves the set and comes back."""
        outside = outside_predecessors(self.preds, mask)
        return not any(self.ancestors[i] & mask for i in bits(outside))


def _all_groups(links: _Links, cap: int, limit: int) -> list[int] | None:
    """Every group; None when there are more than `limit`."""
    n = len(links.preds)
    found = [1 << i for i in range(n)]
    for first in range(n):
        seen = {1 << first}
        frontier = [(1 << first, links.neighbours[first])]
        for _ in range(cap - 1):
            frontier = _grown(links, frontier, first, seen)
            found += [mask for mask, _ in frontier if links.is_convex(mask)]
            if len(found) > limit or len(seen) > 4 * limit:
                return None
    return found


def _small_groups(links: _Links, first: int, cap: int, room: int) -> list[int]:
    """About `room` of the smallest groups whose first operator is `first`."""
    found: list[int] = []
    seen = {1 << first}
    frontier = [(1 << first, links.neighbours[first])]
    for _ in range(cap - 1):
        frontier = _grown(links, frontier, first, seen)[: room - len(found)]
        found += [mask for mask, _ in frontier if links.is_convex(mask)]
        if not frontier:
            break
    return found


def _greedy(links: _Links, cap: int, known: set[int]) -> list[int]:
    """From every operator, one chain of ever larger groups: what a cut enumeration would miss."""
    found = []
    for start in range(len(links.preds)):
        mask, around = 1 << start, links.neighbours[start]
        for _ in range(cap - 1):
            larger = (mask | 1 << i for i in bits(around & ~mask))
            grown = next((m for m in larger if links.may_grow(m) and links.is_convex(m)), 0)
            if not grown:
                break
            around |= links.neighbours[(grown ^ mask).bit_length() - 1]
            mask = grown
            if mask not in known:
                known.add(mask)
                found.append(mask)
    return found


def _grown(links: _Links, frontier: list[tuple[int, int]], first: int, seen: set[int]) -> list[tuple[int, int]]:
    """Sets one operator larger, each with everything that touches it; none reaches before `first`."""
    below = (1 << first) - 1
    grown = []
    for mask, around in frontier:
        for i in bits(around & ~mask & ~below):
            larger = mask | 1 << i
            if larger not in seen:
                seen.add(larger)
                if links.may_grow(larger):
                    grown.append((larger, around | links.neighbours[i]))
    return grown


def _ancestors(preds: Sequence[int]) -> list[int]:
    known: list[int] = []
    for mask in preds:
        above = mask
        for j in bits(mask):
            above |= known[j]
        known.append(above)
    return known


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
    # Per down-set: what is compared, launches, end of the last kernel, the group that led here.
    table: dict[int, tuple[tuple[float, float], int, float, int]] = {0: ((0.0, 0.0), 0, 0.0, 0)}
    layers: list[list[int]] = [[0], *([] for _ in preds)]
    for layer in layers[:-1]:
        for done in sorted(layer, key=lambda state: table[state][0])[:BEAM_WIDTH]:
            _, launches, ended, _ = table[done]
            for i in ready(preds, done)[:BEAM_READY]:
                for mask, need, which in starting[i]:
                    if mask & done or need & ~done or (allowed is not None and not allowed(done, mask)):
                        continue
                    end = queue.end(launches, ended, times[which]) if counts[which] else ended + times[which]
                    count = launches + counts[which]
                    rank = (count, end) if fewest_first else (end, count)
                    state = done | mask
                    if state not in table:
                        layers[state.bit_count()].append(state)
                    if state not in table or rank < table[state][0]:
                        table[state] = (rank, count, end, mask)
    state = (1 << len(preds)) - 1
    if state not in table:
        return None
    groups, states = [], len(table)
    while state:
        groups.append(table[state][3])
        state &= ~groups[-1]
    return Partition(tuple(reversed(groups)), False, states)
