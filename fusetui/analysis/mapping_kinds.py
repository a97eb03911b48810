"""Fallback and batch over time, for each kind of execution by itself.

Work of one kind hides what happens to another: decode steps that all fall back are a small share of a window whose
prefill runs as planned. A kind is all executions of one name.
"""

from __future__ import annotations

import numpy as np

from fusetui.analysis.arrays import Codes, Floats, Ints
from fusetui.analysis.mapping import MAX_BUCKETS, Evidence
from fusetui.analysis.mapping_buckets import Buckets
from fusetui.analysis.mapping_metastable import metastable
from fusetui.telemetry.schema import FALLBACK, MAPPINGS

_FALLBACK = MAPPINGS.index(FALLBACK)
_OTHERS = MAX_BUCKETS - 1


class Kinds:
    """Executions with a batch and a mapping, [64, S] by name and ring slot; the last row is of all further names."""

    def __init__(self, slots: int) -> None:
        self._buckets = Buckets()
        self._ran = np.zeros((MAX_BUCKETS, slots), np.int64)
        self._fell = np.zeros((MAX_BUCKETS, slots), np.int64)
        self._batch = np.zeros((MAX_BUCKETS, slots), np.int64)

    def clear(self, slots: Ints) -> None:
        """Forget some ring slots, and the names that had all their work there."""
        for table in (self._ran, self._fell, self._batch):
            table[:, slots] = 0
        self._buckets.free(self._ran.sum(axis=1)[:_OTHERS] == 0)

    def add(self, name: Codes, batch: Codes, mapping: Codes, slot: Ints) -> None:
        """Take in executions (n,) with a batch of 1 or more."""
        known = mapping >= 0
        if not known.any():
            return
        name, batch, mapping, slot = name[known], batch[known], mapping[known], slot[known]
        cell = self._buckets.of(name) * self._ran.shape[1] + slot
        size, shape = self._ran.size, self._ran.shape
        self._ran += np.bincount(cell, minlength=size).reshape(shape)
        self._fell += np.bincount(cell[mapping == _FALLBACK], minlength=size).reshape(shape)
        self._batch += np.bincount(cell, batch, size).astype(np.int64).reshape(shape)

    def evidence(self, names: tuple[str, ...] | list[str], order: Ints, depth: Floats, rate: Floats) -> Evidence | None:
        """The metastable fallback of the kind with most of it; see `mapping_metastable`.

        names  words behind the codes of `add`; order: ring slots in time order [S]; depth, rate: [S] of all work
        """
        fell = self._fell[:_OTHERS].sum(axis=1)
        for bucket in np.argsort(-fell, kind="stable")[: np.count_nonzero(fell)].tolist():
            ran = self._ran[bucket, order].astype(np.float64)
            ran[ran == 0] = np.nan
            share, batch = self._fell[bucket, order] / ran, self._batch[bucket, order] / ran
            name = names[self._buckets.keys.keys[int(self._buckets.key[bucket])][0]]
            found = metastable(share, batch, depth, rate, of=name)
            if found is not None:
                return found
        return None
