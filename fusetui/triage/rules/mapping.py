"""Work without a plan of its size: generic, padded, or compiled while requests wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fusetui.analysis.columns import OTHERS
from fusetui.triage.finding import Fact
from fusetui.triage.measures import MOST, NAMED, Measures
from fusetui.triage.rule import Rule, Seen
from fusetui.triage.slots import unplanned_parts, unplanned_share
from fusetui.triage.text import many, name, ns, num, pct, since, tail_text
from fusetui.triage.where import equals, joined

SILENT: Final = 0.1
PAD_LIMIT: Final = 2.0
PAD_TIME: Final = 0.05
STALL: Final = 0.01
COMPILES: Final = 5
_MAP: Final = ("mapping", "shape", "plan")
FELL: Final = 'mapping = "fallback"'
PADDED: Final = 'mapping = "adapted"'


def _tail(m: Measures) -> Iterator[Seen]:
    blame = m.blamed("fallback")
    mapping = m.snapshot.mapping
    if blame.cause < NAMED or not (mapping.adapted or mapping.fallback):
        return
    confidence, why = m.confidence("fallback")
    start = m.since("compile plan")
    rose = m.contrast and m.contrast.of(unplanned_share(m.snapshot))
    padded, behind, model = _padded(m), m.blamed("queueing").time, m.without("fallback")
    what = "padded to a larger plan" if padded else "on the generic path"
    yield Seen(
        f"no plan fits what came: work {what}"
        + (f", {pct(rose[0])} of the busy time in slow slots and {pct(rose[1])} in calm ones" if rose else "")
        + (f"; the tail waits in the queue behind it ({pct(behind)})" if behind >= MOST else "")
        + f"; {tail_text(m)}{since(m, start)}"
        + (f", by the model {ns(model)} without it" if model is not None else ""),
        m.severity("fallback"),
        confidence,
        why,
        (
            *(() if not rose else (
                Fact("share of busy time without a plan of its size, slow slots", rose[0], "share", _MAP),
                Fact("the same, calm slots", rose[1], "share", _MAP),
            )),
            Fact("share of executions that fell back", mapping.fallback, "share", ("mapping",)),
            Fact("share of executions that ran adapted", mapping.adapted, "share", ("mapping",)),
            Fact("share of the slowest's latency, the wait behind it left out", blame.time, "share", _MAP),
        ),
        blame.time,
        blame.cause,
        filter=PADDED if padded else FELL,
        since_ns=start,
        fix=_fix(m, padded),
    )  # fmt: skip


def _padded(m: Measures) -> bool:
    """Whether padding took more of the time than the generic path did, in the slots of the tail where those differ."""
    padded, fell = unplanned_parts(m.snapshot)
    if m.contrast is not None and (more := m.contrast.of(padded)) and (most := m.contrast.of(fell)):
        return more[0] > most[0]
    return float(np.nansum(padded)) > float(np.nansum(fell))


def _fix(m: Measures, padded: bool) -> str:
    """What to plan: the sizes that took most of the time without a plan; "" where no row names a size."""
    detail = m.snapshot.mapping_detail
    time = detail.time_ns[:, 1 if padded else 2] if len(detail.shapes) else np.zeros(0)
    most = [
        i for i in np.argsort(-time, kind="stable").tolist() if time[i] > 0 and detail.shapes[i] not in ("", OTHERS)
    ]
    if not most:
        return ""
    sizes = " and ".join(name(detail.shapes[i]) for i in most[:2])
    share = time[most[:2]].sum() / time.sum()
    batch, largest = detail.batch_by_slot, detail.largest_planned
    over = largest is not None and bool((np.nan_to_num(batch) > largest).any())
    return f"add a plan for {sizes} ({pct(share)} of that time)" + (
        f", or hold batches to {largest}, the largest planned" if over else ""
    )


def _metastable(m: Measures) -> Iterator[Seen]:
    seen = m.snapshot.mapping_detail.metastable
    if seen is None:
        return
    start = int(m.snapshot.slot_start_ns[seen.from_slot])
    yield Seen(
        f"fallback that feeds itself{since(m, start)}: batches of {num(seen.batch_during)} are over the largest planned"
        f" {seen.largest_planned} (before: {num(seen.batch_before)}), the rate is as it was",
        "breach" if m.trouble == "breach" else "warn",
        "likely",
        "batch, mapping, depth and rate agree over many slots",
        (
            Fact("batch during it", seen.batch_during, "count", ("batch",)),
            Fact("largest batch that ran planned", seen.largest_planned, "count", ("batch", "mapping")),
            Fact("share of fallback", seen.fallback_share, "share", ("mapping",)),
            Fact("rate during it over before", seen.rate_during / max(seen.rate_before, 1e-9), "", ("end_ns",)),
        ),
        cause=max(m.blamed("fallback").cause, seen.fallback_share),
        filter=FELL,
        from_ns=start,
        since_ns=start,
    )


def _silent(m: Measures) -> Iterator[Seen]:
    mapping = m.snapshot.mapping
    share = mapping.fallback
    if share is None or share < SILENT:
        return
    time = m.snapshot.mapping_detail.time_ns.sum(axis=0)
    of_time = float(time[2] / time.sum()) if time.size and time.sum() > 0 else share
    yield Seen(
        f"{pct(share)} of executions found no plan and take the generic path, {pct(of_time)} of the time",
        "warn",
        "sure",
        "counted: the rows name their mapping",
        (
            Fact("share of executions that fell back", share, "share", ("mapping",)),
            Fact("share of time", of_time, "share", ("mapping",)),
            Fact("queue depth, mean: need not grow with it", m.snapshot.depth.mean, "count", ("enqueue_ns",)),
        ),
        cause=max(m.blamed("fallback").cause, of_time),
        filter=FELL,
        fix=_fix(m, padded=False),
    )


def _padding(m: Measures) -> Iterator[Seen]:
    detail = m.snapshot.mapping_detail
    if not len(detail.padding) or detail.time_ns.sum() <= 0:
        return
    of_time = detail.padded_ns / detail.time_ns.sum()
    factor = np.nan_to_num(detail.padding)
    for at in np.flatnonzero((factor > PAD_LIMIT) & (of_time >= PAD_TIME)).tolist():
        shape = detail.shapes[at]
        yield Seen(
            f"{many(detail.padded[at])} executions padded {num(factor[at])}× (shape {name(shape) or 'unknown'}),"
            f" {pct(of_time[at])} of the time: past 2× the generic path is often faster",
            "warn",
            "likely",
            "sizes asked and run are counted; that the generic path is faster is not measured here",
            (
                Fact("padding factor", float(factor[at]), "", ("shape", "request")),
                Fact("share of time in padded executions", float(of_time[at]), "share", ("shape",)),
            ),
            cause=max(m.blamed("fallback").cause, float(of_time[at] * (1 - 1 / factor[at]))),
            subject=shape,
            filter=joined(PADDED, equals("shape", shape)) if shape and shape != OTHERS else PADDED,
        )


def _recompile(m: Measures) -> Iterator[Seen]:
    totals, span = m.snapshot.mapping_detail.totals, m.snapshot.span_ns
    if not totals.compiles or not span:
        return
    stall = (totals.stall_ns or 0) / span
    if stall < STALL and totals.compiles < COMPILES:
        return
    yield Seen(
        f"{many(totals.compiles)} recompiles while serving"
        + ("" if totals.stall_ns is None else f", {ns(totals.stall_ns)} of stalls, {pct(stall)} of the window"),
        "warn",
        "sure" if totals.stall_ns is not None else "possible",
        "each is a mark in the trace" if totals.stall_ns is not None else "counted; how long each took is not told",
        (
            Fact("recompiles", totals.compiles, "count", ("kind", "name")),
            Fact("stalls", totals.stall_ns, "ns", ("value", "unit")),
        ),
        cause=max(stall, m.blamed("fallback").cause),
    )


def _drift(m: Measures) -> Iterator[Seen]:
    drift = m.snapshot.mapping_detail.drift
    if drift is None or drift.verdict == "stable":
        return
    if drift.against != "envelope" and m.snapshot.latency_of == "execution" and m.snapshot.idle is not None:
        return  # the phases of a profiled program: no plan was made for a mix
    yield Seen(
        f"the mix of shapes has moved: index {num(drift.index)} against the {drift.against} ({drift.verdict})",
        "info",
        "sure",
        f"beyond chance ({num(drift.by_chance)}) for {many(drift.seen_n)} shapes",
        (Fact("population stability index", drift.index, "", ("shape",)),),
    )


_RETUNE: Final = "add a plan for the size, or lower the largest batch to the largest planned"
_UNDO: Final = "remove the plan again, or restore the limit; running work is not touched"
RULES: Final = (
    Rule(
        id="fallback/tail", look=_tail, inputs=("tail_time", "causes", "mapping", "mapping_detail.time_by_slot"),
        threshold="cause ≥ 10 % of the slowest's latency", why="its own time is small beside the wait behind it",
        does_not_prove=("that a plan of the size would be faster", "that the load had not grown as well"),
        next_action="see which sizes fall back or are padded, and since when",
        bottleneck="fallback", stage="compile plan", fix=_RETUNE, rollback=_UNDO, screen="mapping", pane="mapping_heat",
    ),
    Rule(
        id="fallback/metastable", look=_metastable, inputs=("mapping_detail.metastable",),
        threshold="8 slots ≥ 90 % fallback until now after 8 planned ones, at batches never planned",
        why="queue and throughput look normal in it: nothing else says so",
        does_not_prove=("that the fallback keeps the batch large: demand may have grown by itself",),
        next_action="lower the load for a moment and see whether it stays gone",
        bottleneck="fallback", stage="compile plan",
        fix="limit running requests to the largest planned batch", rollback="restore the limit",
        screen="mapping", pane="mapping_metastable",
    ),
    Rule(
        id="fallback/silent", look=_silent, inputs=("mapping.fallback", "mapping_detail.time_ns"),
        threshold=f"{SILENT:.0%} of executions", why="a plan that misses one in ten was made for something else",
        does_not_prove=("that it costs latency", "that a plan of the size would be faster"),
        next_action="compare the time of the same shape planned and not",
        bottleneck="fallback", stage="compile plan", fix=_RETUNE, rollback=_UNDO,
        screen="mapping", pane="mapping_buckets",
    ),
    Rule(
        id="fallback/padding", about="shape", look=_padding,
        inputs=("mapping_detail.padding", "mapping_detail.padded_ns"),
        threshold="over 2× padded, in 5 % of the time", why="servers that measured it take the generic path past 2×",
        does_not_prove=("that the generic path is faster for this size",),
        next_action="measure the size on the generic path once",
        bottleneck="fallback", stage="compile plan", fix="set the padding limit to 2, or add a plan between the sizes",
        rollback="restore the padding limit", screen="mapping", pane="mapping_buckets",
    ),
    Rule(
        id="fallback/recompile", look=_recompile, inputs=("mapping_detail.totals.compiles", "stall_ns"),
        threshold="1 % of the window stalled, or 5 recompiles", why="a warm server compiles nothing",
        does_not_prove=("which request waited for which compile",),
        next_action="list the recompile marks with their shapes",
        bottleneck="fallback", stage="compile plan", fix="compile those shapes before traffic, or mark them dynamic",
        rollback="drop the warm-up list", screen="mapping", pane="mapping_shares",
    ),
    Rule(
        id="fallback/drift", look=_drift, inputs=("mapping_detail.drift",), threshold="index ≥ 0.1 and beyond chance",
        why="the usual reading of the index", does_not_prove=("that the plans are worse for the new mix",),
        next_action="compare the mix with the plans' envelope", bottleneck="fallback", stage="compile plan",
        screen="mapping", pane="mapping_drift",
    ),
)  # fmt: skip
