"""Padding that takes longer than running without a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import floor
from typing import Final

import numpy as np

from fusetui.accelerator.runtime.config import Lookup
from fusetui.analysis.arrays import Bools, Floats
from fusetui.analysis.fmt import duration
from fusetui.analysis.mapping_adapt import MARGIN
from fusetui.analysis.retune.action import MODEL, ONLY_THESE, Action, Change, Cost, to_config, with_lookup
from fusetui.analysis.retune.seen import slice_of
from fusetui.analysis.retune.tables import Table, requests, told, took
from fusetui.analysis.twin.model import Twin

ENOUGH: Final = 20
"""Padded jobs of a size from which it is worth a change."""
FAR: Final = 2.0
"""Padding beyond which a plan is likely to lose to the generic path, for want of figures."""


def pad_less(twin: Twin, table: Table) -> list[Action]:
    """Where padding takes longer than the generic path: pad less far, or give the bucket up."""
    sizes = table.sizes
    padded = (sizes.padded >= ENOUGH) & (sizes.bucket > sizes.rows)
    ratio = sizes.bucket / np.maximum(sizes.rows, 1)
    if not table.known:
        return _perhaps_less(twin, table, padded & (ratio > FAR), ratio)
    nothing = np.zeros(len(sizes.rows), np.bool_)
    as_padded = took(table, sizes.rows, sizes.bucket, nothing)
    as_generic = took(table, sizes.rows, sizes.rows, ~nothing)
    worse = padded & (as_padded > as_generic * (1 + MARGIN))
    if not worse.any():
        return []
    at = int(np.argmax(np.where(worse, (as_padded - as_generic) * sizes.n, 0)))
    why = (
        f"{int(sizes.padded[at]):,} jobs of {sizes.rows[at]} ran padded to {sizes.bucket[at]} in "
        f"{duration(as_padded[at]).strip()}; the generic path takes {duration(as_generic[at]).strip()}"
    )
    limit = max(floor(float(ratio[worse].min()) * 10 - 1e-9) / 10, 1.0)
    less = _action(
        twin, table, worse, why, f"pad to at most {limit:g} times the size (now {table.lookup.pad_limit:g})",
        _looked_up(table.index, lambda lookup: replace(lookup, pad_limit=limit)),
    )  # fmt: skip
    return [less, *(_drop(twin, table, worse, why, bucket) for bucket in _for_nobody(table, worse))]


def _for_nobody(table: Table, worse: Bools) -> list[int]:
    """Buckets that run nothing but what is worse in them."""
    sizes = table.sizes
    served = sizes.generic < sizes.n
    buckets = np.unique(sizes.bucket[worse]).tolist() if len(table.lookup.captured) > 1 else []
    return [bucket for bucket in buckets if not ((sizes.bucket == bucket) & ~worse & served).any()]


def _drop(twin: Twin, table: Table, worse: Bools, why: str, bucket: int) -> Action:
    action = _action(
        twin, table, worse & (table.sizes.bucket == bucket), why, f"drop bucket {bucket}",
        _looked_up(table.index, _without(bucket)),
    )  # fmt: skip
    return replace(
        action, owner="compiler", cost=Cost(note=f"frees the plan of {bucket}"), rollback=f"capture {bucket} again"
    )


def _action(twin: Twin, table: Table, which: Bools, why: str, title: str, change: Change | None) -> Action:
    return Action(
        knob=f"padding {table.stream}",
        title=told(table) + title,
        stream=table.stream,
        bottleneck="compute",
        owner="runtime",
        why=why,
        slice=slice_of(twin, requests(twin, table, table.sizes.rows[which])),
        cost=Cost(),
        rollback=f"pad limit {table.lookup.pad_limit:g} as before",
        does_not_prove=(ONLY_THESE, MODEL if twin.exact else "what the generic path takes at sizes it never ran"),
        change=change,
    )


def _perhaps_less(twin: Twin, table: Table, far: Bools, ratio: Floats) -> list[Action]:
    """Sizes padded far while nobody knows what the generic path takes."""
    if not far.any():
        return []
    at = int(np.argmax(np.where(far, table.sizes.padded, 0)))
    why = f"{int(table.sizes.padded[far].sum()):,} jobs ran padded to over {FAR:g} times their size"
    why += f", as {table.sizes.rows[at]} to {table.sizes.bucket[at]} ({ratio[at]:.2f} times)"
    action = _action(twin, table, far, why, f"pad to at most {FAR:g} times the size", None)
    return [replace(action, why_not="the generic path never ran here: run these sizes on it once and compare")]


def _looked_up(index: int, make: Callable[[Lookup], Lookup]) -> Change:
    return to_config(lambda config: with_lookup(config, index, make))


def _without(bucket: int) -> Callable[[Lookup], Lookup]:
    return lambda lookup: replace(lookup, captured=tuple(size for size in lookup.captured if size != bucket))
