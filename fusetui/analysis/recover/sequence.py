"""The operators of one run, found in a long sequence of executions: marked steps, and blocks that repeat in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

MAX_SEQUENCE: Final = 12_000  # executions searched for a period; the rest are matched by name and shape
_MAX_PERIOD: Final = 2_500
_MAX_DEPTH: Final = 12
_LEAST_SHARE: Final = 50  # a repetition that saves less than one part in this many is chance


@dataclass(frozen=True, slots=True)
class Slot:
    """One place in a run: its token, and the rows that ran there, one per run (folded layers count as runs)."""

    token: int
    rows: Ints


Unit = tuple[tuple[str, ...], Slot]
"""Operators that ran in one execution, and where it ran."""


def runs_of(tokens: Ints, requests: Ints, weights: Ints) -> list[Slot]:
    """Places of one representative run, in order, with the rows that ran in each.

    tokens    (rows,) equal for executions of equal name and shape, in the order they began
    requests  (rows,) step or request, negative for none; runs are these when there are at least two
    weights   (rows,) time
    The runs of the sequence that took most time in all are kept; a block that repeats inside it is folded to one.
    """
    if not len(tokens):
        return []
    if len(np.unique(requests[requests >= 0])) >= 2:
        slots = _of_steps(tokens, requests, weights)
    else:
        slots = [Slot(int(token), np.array([at])) for at, token in enumerate(tokens[:MAX_SEQUENCE])]
    return fold(slots)


def _of_steps(tokens: Ints, requests: Ints, weights: Ints) -> list[Slot]:
    order = np.argsort(requests, kind="stable")
    order = order[requests[order] >= 0]
    edges = np.flatnonzero(np.diff(requests[order])) + 1
    kinds: dict[bytes, list[Ints]] = {}
    for rows in np.split(order, edges):
        kinds.setdefault(tokens[rows].tobytes(), []).append(rows)
    chosen = max(kinds.values(), key=lambda runs: sum(int(weights[rows].sum()) for rows in runs))
    table = np.stack([rows[:MAX_SEQUENCE] for rows in chosen])
    return [Slot(int(tokens[column[0]]), column) for column in table.T]


def fold(slots: list[Slot]) -> list[Slot]:
    """`slots` with every block that follows itself shown once, its repetitions as further runs."""
    return _folded(slots, 0)


def _folded(slots: list[Slot], depth: int) -> list[Slot]:
    tokens = np.array([slot.token for slot in slots], np.int64)
    found = best_repeat(tokens)
    if found is None or depth > _MAX_DEPTH:
        return slots
    start, period, count = found
    block = []
    for at in range(start, start + period):
        rows = [slots[at + i * period].rows for i in range(count)]
        block.append(Slot(slots[at].token, np.concatenate(rows)))
    before, after = slots[:start], slots[start + period * count :]
    return _folded(before, depth + 1) + block + _folded(after, depth + 1)


def best_repeat(tokens: Ints) -> tuple[int, int, int] | None:
    """(start, period, count) of the repetition that covers most when shown once; None when nothing repeats.

    A period of one is no block: the same operator twice in a row is two operators.
    """
    best: tuple[int, int, int] | None = None
    saved = len(tokens) // _LEAST_SHARE
    tokens = tokens.astype(np.int32)  # half the memory to walk through
    for period in range(2, min(len(tokens) // 2, _MAX_PERIOD) + 1):
        if len(tokens) - period <= saved:
            break
        same = tokens[period:] == tokens[:-period]
        edges = np.flatnonzero(np.diff(np.concatenate([[0], same.view(np.int8), [0]])))
        starts, lengths = edges[::2], edges[1::2] - edges[::2]
        if not len(starts):
            continue
        at = int(np.argmax(lengths))
        count = int(lengths[at]) // period + 1
        block = tokens[starts[at] : starts[at] + period]
        if count > 1 and (count - 1) * period > saved and (block != block[0]).any():
            saved, best = (count - 1) * period, (int(starts[at]), period, count)
    return best
