"""The mapping measures of a window put together from its slots and its rows; definitions in `mapping`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fusetui.analysis.arrays import Floats, Ints
from fusetui.analysis.columns import OTHERS, Reader
from fusetui.analysis.mapping import MAX_BUCKETS, WAYS, Drift, MappingDetail, MappingTotals
from fusetui.analysis.mapping_drift import MIN_SAMPLES, drift_in_window, envelope_of
from fusetui.analysis.mapping_rows import MappingRows
from fusetui.analysis.mapping_slots import BY_EXECUTION, BY_MARK, MappingSlots
from fusetui.analysis.mapping_ways import MIN_RUNS

_FALLBACK = WAYS.index("fallback")
_KNOWN = slice(0, _FALLBACK + 1)


def mapping_detail(
    slots: MappingSlots,
    rows: MappingRows | None,
    reader: Reader,
    order: Ints,
    head: int,
    series: tuple[Floats, Floats],
    plans: Mapping[str, str],
) -> MappingDetail:
    """order: ring slots in time order [S], the last is slot `head`; series: depth and completed work a second, [S]."""
    if not slots.used:
        return MappingDetail()
    told = BY_MARK if slots.compiles[BY_MARK].any() else BY_EXECUTION
    counts, compiles = slots.counts[:, order], slots.compiles[told][:, order]
    time_ns, stall_ns = slots.time_ns[:, order], slots.stall_ns[told][:, order]
    unknown, sums = int(slots.unknown[told].sum()), _of_rows(slots, rows)
    shown = _shown(counts, compiles, time_ns.sum(axis=(1, 2)) + stall_ns.sum(axis=1))
    words = [_words(slots, reader, bucket) for bucket in shown.tolist()]
    shapes = tuple(shape for _, shape in words)
    ways = counts.sum(axis=1)
    totals = _totals(sums, compiles, stall_ns, unknown, _same_shapes(sums, shown, shapes))
    drift = _drift(slots, reader, order, counts[shown].sum(axis=2), shapes, envelope_of(plans))
    return MappingDetail(
        plans=tuple(plan for plan, _ in words),
        shapes=shapes,
        counts=ways[shown],
        time_ns=time_ns[shown].sum(axis=1),
        hit_share=_ratio(ways[:, 0], ways[:, _KNOWN].sum(axis=1))[shown],
        compiles=compiles[shown].sum(axis=1),
        stall_ns=stall_ns[shown].sum(axis=1),
        counts_by_slot=counts[shown],
        time_by_slot=time_ns[shown],
        padding_by_slot=_padding_by_slot(sums, head),
        compiles_by_slot=compiles.sum(axis=0),
        stall_by_slot=stall_ns.sum(axis=0),
        batch_by_slot=_ratio(slots.batch_sum[order], slots.batch_n[order]),
        largest_planned=int(slots.batch_max[0].max()) or None,
        totals=totals,
        drift=drift,
        metastable=slots.kinds.evidence(reader.names.words, order, *series),
        notes=tuple(_notes(rows, totals, drift, counts, unknown)),
        **_of_buckets(sums, shown),
    )


def _of_buckets(sums: MappingRows, shown: Ints) -> dict[str, Any]:
    """The fields that come from rows, of the buckets shown."""
    return {
        "padding": _ratio(sums.tokens[0], sums.tokens[1])[shown],
        "padding_n": sums.joined[shown],
        "padded": sums.padded[shown],
        "padded_ns": sums.padded_ns[shown],
        "accuracy": _ratio(sums.accuracy[2], sums.accuracy[1])[shown],
        "gain": _ratio(sums.gain[2], sums.gain[1])[shown] - 1,
        "fallback_ns": np.where(sums.fallback[0] > 0, sums.fallback[1] - sums.fallback[2], np.nan)[shown],
    }


def _ratio(part: Floats | Ints, whole: Floats | Ints) -> Floats:
    """part / whole, NaN where the whole is 0."""
    return np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=np.asarray(whole) > 0)


def _shown(counts: Ints, compiles: Ints, time_ns: Floats) -> Ints:
    """Buckets with anything in them, most time first and the others last."""
    shown = np.flatnonzero(counts.sum(axis=(1, 2)) + compiles.sum(axis=1) > 0)
    return shown[np.lexsort((-time_ns[shown], shown == MAX_BUCKETS - 1))]


def _of_rows(slots: MappingSlots, rows: MappingRows | None) -> MappingRows:
    """The sums of rows for the buckets as they are now; zeros for a bucket that stands for something else since."""
    b, s = MAX_BUCKETS, len(slots.batch_n)
    if rows is None:
        none, sums = np.zeros(b, np.int64), np.zeros((3, b))
        return MappingRows(
            slots.buckets.key, 0, 0, np.zeros((2, b)), np.zeros((2, s)), none, none, none, sums, sums, sums
        )
    same = np.append(rows.key == slots.buckets.key, True)
    return MappingRows(
        slots.buckets.key, rows.head, rows.executions, rows.tokens * same, rows.tokens_by_slot, rows.joined * same,
        rows.padded * same, rows.padded_ns * same, rows.accuracy * same, rows.gain * same, rows.fallback * same,
    )  # fmt: skip


def _words(slots: MappingSlots, reader: Reader, bucket: int) -> tuple[str, str]:
    if bucket == MAX_BUCKETS - 1:
        return OTHERS, OTHERS
    plan, shape = slots.buckets.keys.keys[int(slots.buckets.key[bucket])]
    return (reader.plans.words[plan] if plan >= 0 else "", reader.shapes.words[shape] if shape >= 0 else "")


def _same_shapes(rows: MappingRows, shown: Ints, shapes: tuple[str, ...]) -> Ints:
    """Buckets of any plan whose shape also ran adapted in one that has a gain."""
    adapted = {shape for bucket, shape in zip(shown.tolist(), shapes, strict=True) if rows.gain[0, bucket]}
    return np.array([b for b, shape in zip(shown.tolist(), shapes, strict=True) if shape in adapted], np.int64)


def _totals(rows: MappingRows, compiles: Ints, stall_ns: Floats, unknown: int, adapted: Ints) -> MappingTotals:
    ran, asked = rows.tokens.sum(axis=1).tolist()
    accuracy_n, as_run, best = rows.accuracy.sum(axis=1).tolist()
    gain_n, adapted_ns, static_ns = rows.gain.sum(axis=1).tolist()
    fallback_n, fallback_ns, rival_ns = rows.fallback.sum(axis=1).tolist()
    n, switching = int(compiles.sum()), float(stall_ns[adapted].sum())
    return MappingTotals(
        padding=ran / asked if asked else None,
        padding_n=int(rows.joined.sum()),
        padded=int(rows.padded.sum()),
        padded_ns=int(rows.padded_ns.sum()),
        compiles=n,
        stall_ns=None if n and unknown == n else round(float(stall_ns.sum())),
        accuracy=best / as_run if as_run else None,
        accuracy_n=int(accuracy_n),
        gain=(static_ns - switching) / adapted_ns - 1 if adapted_ns else None,
        gain_n=int(gain_n),
        switching_ns=round(switching),
        fallback_ns=round(fallback_ns - rival_ns) if fallback_n else None,
        fallback_n=int(fallback_n),
    )


def _padding_by_slot(rows: MappingRows, head: int) -> Floats:
    """[S] in time order; slots that came since the rows were looked at are not known."""
    factor = _ratio(*rows.tokens_by_slot)
    moved = min(max(head - rows.head, 0), len(factor)) if rows.executions else 0
    return np.concatenate([factor[moved:], np.full(moved, np.nan)])


def _drift(
    slots: MappingSlots, reader: Reader, order: Ints, ran: Ints, shapes: tuple[str, ...], envelope: Mapping[str, float]
) -> Drift | None:
    """Of requests where enough say their shape, else of executions."""
    asked = slots.asked[:, order]
    if int(asked.sum()) >= 2 * MIN_SAMPLES:
        used = np.flatnonzero(asked.sum(axis=1))
        keys, key = slots.asked_buckets.keys.keys, slots.asked_buckets.key
        words = [OTHERS if b == MAX_BUCKETS - 1 else reader.shapes.words[keys[int(key[b])][0]] for b in used.tolist()]
        return drift_in_window(asked[used], words, "requests", envelope)
    told = [i for i, shape in enumerate(shapes) if shape]
    different = list(dict.fromkeys(shapes[i] for i in told))
    by_shape = np.zeros((len(different), ran.shape[1]), np.int64)
    np.add.at(by_shape, [different.index(shapes[i]) for i in told], ran[told])
    return drift_in_window(by_shape, different, "executions", envelope)


def _notes(
    rows: MappingRows | None, totals: MappingTotals, drift: Drift | None, counts: Ints, unknown: int
) -> list[str]:
    executions = int(counts.sum())
    with_mapping = int(counts[:, :, _KNOWN].sum())
    several = totals.accuracy_n or totals.gain_n or totals.fallback_n
    said = (
        (not with_mapping and executions, "mapping: no execution says whether it ran as planned"),
        (with_mapping and not several, f"mapping: no work ran in two ways of {MIN_RUNS} runs: nothing to compare with"),
        (
            executions and not totals.padding_n,
            "padding: no execution can be compared with what its request asked for",
        ),
        (unknown, f"recompiles without a duration: {unknown} of {totals.compiles}"),
        (executions and drift is None, f"drift of shapes needs {MIN_SAMPLES} with two shapes or more on either side"),
        (counts[MAX_BUCKETS - 1].any(), f"more than {MAX_BUCKETS - 1} plans and shapes: the rest is {OTHERS}"),
        (
            rows is not None and rows.executions < executions,
            f"ways and padding are of the newest {rows.executions if rows else 0:,} of {executions:,} executions",
        ),
    )
    return [text for holds, text in said if holds]
