"""Executions by plan, shape and mapping in the slots of the window, and recompiles: counts and sums, so bounded."""

from __future__ import annotations

import math
import re
from typing import Final

import numpy as np

from fusetui.analysis.arrays import Bools, Codes, Floats, Ints, repeated
from fusetui.analysis.columns import EXECUTION, MARK, NULL, REQUEST, Columns, Reader
from fusetui.analysis.mapping import MAX_BUCKETS, WAYS
from fusetui.analysis.mapping_buckets import Buckets
from fusetui.analysis.mapping_kinds import Kinds
from fusetui.telemetry.schema import ADAPTED, FALLBACK, MAPPINGS, PLANNED

_COMPILE = re.compile(r"(?<![a-z])(?:re)?compil(?:e|es|ing|ation|ations)(?![a-z])", re.IGNORECASE)
_UNIT_NS: Final = {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9}
_LONGEST_NS: Final = float(1 << 62)
_OTHERS: Final = MAX_BUCKETS - 1
_WAYS: Final = len(WAYS)
BY_MARK, BY_EXECUTION = 0, 1


class MappingSlots:
    """S ring slots, B = 64 buckets.

    counts, time_ns  [B, S, WAYS] executions and their service time, by (plan, shape)
    compiles, stall_ns  [2, B, S] told by marks, by executions; unknown [2, S]: without a duration
    asked            [64, S] requests by shape
    batch_sum, batch_n  [S] over executions with a batch
    batch_max        [2, S] largest batch of planned and adapted, of fallback executions
    """

    def __init__(self, slots: int) -> None:
        self.buckets, self.asked_buckets, self.kinds = Buckets(), Buckets(), Kinds(slots)
        self.counts = np.zeros((MAX_BUCKETS, slots, _WAYS), np.int64)
        self.time_ns = np.zeros((MAX_BUCKETS, slots, _WAYS))
        self.compiles = np.zeros((2, MAX_BUCKETS, slots), np.int64)
        self.stall_ns = np.zeros((2, MAX_BUCKETS, slots))
        self.unknown = np.zeros((2, slots), np.int64)
        self.asked = np.zeros((MAX_BUCKETS, slots), np.int64)
        self.batch_sum = np.zeros(slots)
        self.batch_n = np.zeros(slots, np.int64)
        self.batch_max = np.zeros((2, slots), np.int64)
        self.used = False
        self._names_known = 0
        self._is_compile = np.zeros(1, np.bool_)

    def clear(self, slots: Ints) -> None:
        """Forget some ring slots, and the buckets that had their work there."""
        if not self.used:
            return
        self.counts[:, slots], self.time_ns[:, slots] = 0, 0
        self.compiles[:, :, slots], self.stall_ns[:, :, slots] = 0, 0
        self.unknown[:, slots], self.batch_max[:, slots], self.asked[:, slots] = 0, 0, 0
        self.batch_sum[slots], self.batch_n[slots] = 0, 0
        self.kinds.clear(slots)
        held = self.counts.sum(axis=(1, 2)) + self.compiles.sum(axis=(0, 2))
        self.buckets.free(held[:_OTHERS] == 0)
        self.asked_buckets.free(self.asked.sum(axis=1)[:_OTHERS] == 0)

    def add(self, rows: Columns, slot: Ints, reader: Reader) -> None:
        """Take in rows that ended, at least one, with their ring slots (n,)."""
        named = self._compile_names(rows.name, reader)
        telling = any(column.strides != (0,) or column[0] >= 0 for column in (rows.plan, rows.shape, rows.mapping))
        if telling:
            self.used = True
            self._add_executions(rows, slot)
            asked = (rows.kind == REQUEST) & (rows.shape >= 0)
            if asked.any():
                cells = self.asked_buckets.of(rows.shape[asked]) * len(self.batch_n) + slot[asked]
                self.asked += np.bincount(cells, minlength=self.asked.size).reshape(self.asked.shape)
        if named is not None:
            self.used = True
            self._add_compiles(rows, slot, named, reader)

    def _compile_names(self, name: Codes, reader: Reader) -> Bools | None:
        """Which rows (n,) are named as compilations; None: none of them."""
        words = reader.names.words
        if len(words) > self._names_known:
            fresh = [bool(_COMPILE.search(word)) for word in words[self._names_known :]]
            known = self._is_compile[: self._names_known]
            self._is_compile = np.concatenate([known, np.array([*fresh, False], np.bool_)])
            self._names_known = len(words)
        if not self._is_compile.any():
            return None
        found: Bools = self._is_compile[name]
        return found if found.any() else None

    def _add_executions(self, rows: Columns, slot: Ints) -> None:
        ran = (rows.kind == EXECUTION) & (rows.start != NULL) & (rows.end != NULL)
        needed = (rows.plan, rows.shape, rows.mapping, rows.batch, rows.start, rows.end, rows.name)
        if not ran.all():
            needed = tuple(column[ran] for column in needed)
            slot = repeated(int(slot[0]), len(needed[0]), np.int64) if slot.strides == (0,) else slot[ran]
        plan, shape_id, mapping, batch, start, end, name = needed
        if len(plan) == 0:
            return
        bucket = self.buckets.of(plan, shape_id)
        way = np.where(mapping < 0, _WAYS - 1, mapping)
        service = np.maximum(end - start, 0)
        if slot.strides == (0,):
            # Most batches lie in one slot: no need to go through all of them.
            cell, into, shape = bucket * _WAYS + way, slice(int(slot[0]), int(slot[0]) + 1), (MAX_BUCKETS, 1, _WAYS)
        else:
            cell, into, shape = (bucket * self.counts.shape[1] + slot) * _WAYS + way, slice(None), self.counts.shape
        size = math.prod(shape)
        self.counts[:, into] += np.bincount(cell, minlength=size).reshape(shape)
        self.time_ns[:, into] += np.bincount(cell, service, size).reshape(shape)
        self._add_batches(name, batch, mapping, slot)

    def _add_batches(self, name: Codes, batch: Codes, mapping: Codes, slot: Ints) -> None:
        batched = batch > 0
        if not batched.any():
            return
        batch, mapping, slot = batch[batched].astype(np.int64), mapping[batched], slot[batched]
        self.kinds.add(name[batched], batch, mapping, slot)
        slots = len(self.batch_n)
        self.batch_sum += np.bincount(slot, batch, slots)
        self.batch_n += np.bincount(slot, minlength=slots)
        fits = (mapping == MAPPINGS.index(PLANNED)) | (mapping == MAPPINGS.index(ADAPTED))
        for into, chosen in ((0, fits), (1, mapping == MAPPINGS.index(FALLBACK))):
            np.maximum.at(self.batch_max[into], slot[chosen], batch[chosen])

    def _add_compiles(self, rows: Columns, slot: Ints, named: Bools, reader: Reader) -> None:
        for told, kind in ((BY_MARK, MARK), (BY_EXECUTION, EXECUTION)):
            chosen = named & (rows.kind == kind)
            if not chosen.any():
                continue
            some, where = rows.take(chosen), slot[chosen]
            stall = _stall_ns(some, reader) if kind == MARK else _lasted(some)
            slots = len(self.batch_n)
            cell = self.buckets.of(some.plan, some.shape) * slots + where
            into, shape = MAX_BUCKETS * slots, (MAX_BUCKETS, slots)
            self.compiles[told] += np.bincount(cell, minlength=into).reshape(shape)
            self.stall_ns[told] += np.bincount(cell, np.nan_to_num(stall), into).reshape(shape)
            self.unknown[told] += np.bincount(where[np.isnan(stall)], minlength=slots)


def _lasted(rows: Columns) -> Floats:
    known = (rows.start != NULL) & (rows.end != NULL) & (rows.end > rows.start)
    return np.where(known, (rows.end - rows.start).astype(np.float64), np.nan)


def _stall_ns(rows: Columns, reader: Reader) -> Floats:
    """How long each mark says that it lasted, NaN: it does not."""
    factors = np.array([*(_UNIT_NS.get(word, np.nan) for word in reader.units.words), np.nan])
    told = rows.value * factors[rows.unit]
    return np.where((told >= 0) & (told < _LONGEST_NS), told, _lasted(rows))
