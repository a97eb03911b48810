"""Which operators to run together: the cheapest partition of a DAG into groups that can follow one another.

A state is a down-set of the DAG (operators done, closed under predecessors) and a step adds one group whose
predecessors are done. Cost is a sum over groups, so the cheapest way to reach a down-set does not depend on what
follows, and dynamic programming over down-sets is exact. Where there are more of them than the cap, a beam keeps
the cheapest of every size and the result says that it is not proved optimal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

GROUP_CAP: Final = 10
CANDIDATE_CAP: Final = 1_500
STATE_CAP: Final = 20_000
STEP_CAP: Final = 100_000  # groups looked at: a transformer layer needs about a thousand
BEAM_WIDTH: Final = 8

Cost = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Partition:
    """Groups in an order they can run in, as bitmasks of operators."""

    groups: tuple[int, ...]
    cost: Cost
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
    costs: Sequence[Cost],
    *,
    step_allowed: Callable[[int, int], bool] | None = None,
    state_cap: int = STATE_CAP,
    complete: bool = True,
) -> Partition | None:
    """The cheapest partition, costs compared as (first, second) sums; None when no order is allowed.

    preds         per operator in topological order, the bitmask of those it reads from
    step_allowed  (done, group) -> whether the group may run next; for limits on live memory
    complete      False when `masks` is not every legal group, so nothing can be proved
    """
    steps = _steps(preds, masks, costs)
    exact = _sweep(preds, steps, step_allowed, state_cap, None)
    proved = exact is not None and complete
    table = exact if exact is not None else _sweep(preds, steps, step_allowed, state_cap, BEAM_WIDTH)
    assert table is not None
    full = (1 << len(preds)) - 1
    if full not in table:
        return None
    groups = []
    state = full
    while state:
        group = table[state][2]
        groups.append(group)
        state &= ~group
    return Partition(tuple(reversed(groups)), table[full][:2], proved, len(table))


Step = tuple[int, int, float, float]
Table = dict[int, tuple[float, float, int]]


def _steps(preds: Sequence[int], masks: Sequence[int], costs: Sequence[Cost]) -> list[list[Step]]:
    """Groups by their first operator, which must be ready before any of the group can run."""
    steps: list[list[Step]] = [[] for _ in preds]
    for mask, (first, second) in zip(masks, costs, strict=True):
        steps[(mask & -mask).bit_length() - 1].append((mask, outside_predecessors(preds, mask), first, second))
    return steps


def _sweep(
    preds: Sequence[int],
    steps: list[list[Step]],
    allowed: Callable[[int, int], bool] | None,
    state_cap: int,
    beam: int | None,
) -> Table | None:
    """Cheapest way to every reachable down-set, by size; None when that takes too much and no beam is given."""
    n = len(preds)
    table: Table = {0: (0.0, 0.0, 0)}
    layers: list[list[int]] = [[] for _ in range(n + 1)]
    layers[0] = [0]
    looked = 0
    for size in range(n):
        layer = layers[size]
        if beam is not None and len(layer) > beam:
            layer = sorted(layer, key=lambda state: table[state][:2])[:beam]
        for done in layer:
            if beam is None and (len(table) > state_cap or looked > STEP_CAP):
                return None
            first, second, _ = table[done]
            for i in range(n):
                if done >> i & 1 or preds[i] & ~done:
                    continue
                looked += len(steps[i])
                for mask, need, a, b in steps[i]:
                    if mask & done or need & ~done or (allowed is not None and not allowed(done, mask)):
                        continue
                    state = done | mask
                    known = table.get(state)
                    if known is None:
                        layers[state.bit_count()].append(state)
                    if known is None or (first + a, second + b) < known[:2]:
                        table[state] = (first + a, second + b, mask)
    return table
