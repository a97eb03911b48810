"""What intervals, flags and comparisons promise, measured: coverage, false alarms, detection delay, cost.

    [FUSETUI_CORPUS=...] python tests/bench/bench_compare.py [--repeats 300] [--only PART]

With the reference folder the populations include a real service's latencies and queue waits, drawn with replacement.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fusetui.analysis.changepoint.e_divisive import change_points
from fusetui.analysis.changepoint.page_hinkley import PageHinkley
from fusetui.analysis.changepoint.series import log_p95, nearest_rank_of, tail_share
from fusetui.analysis.compare import compare
from fusetui.analysis.compare.moves import moves_of
from fusetui.analysis.expression.rows import Rows, Scope, rows_of
from fusetui.analysis.intervals import dependence, quantile_ratio, too_small
from fusetui.commands.progress import finish_reading
from fusetui.importers.open import open_capture
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import build_batch

Draw = Callable[[np.random.Generator, int], np.ndarray]
PER = 200
REFERENCE = 60


def populations() -> dict[str, Draw]:
    found: dict[str, Draw] = {
        "lognormal s=1": lambda rng, n: rng.lognormal(15, 1, n).astype(np.int64),
        "Pareto a=1.5": lambda rng, n: (1e6 * (1 + rng.pareto(1.5, n))).astype(np.int64),
    }
    corpus = os.environ.get("FUSETUI_CORPUS")
    if not corpus:
        print("FUSETUI_CORPUS is not set: no real populations")
        return found
    folder = Path(corpus) / "traces/serving"
    for name, file in (("real e2e", "pipeline_inference_data_anon"), ("real queue wait", "queue_rt_raw_anon")):
        with (folder / f"alibaba__clusterdata__GenTD26_{file}.csv").open() as rows:
            pool = np.array([float(row["value"]) for row in csv.DictReader(rows)]) * 1e6
        pool = pool[pool > 0].astype(np.int64)
        found[name] = lambda rng, n, pool=pool: rng.choice(pool, n)  # type: ignore[misc]
    return found


def coverage(repeats: int) -> None:
    print(f"COVERAGE of 95 % intervals of log(after/before), no change / power at +20 %, {repeats} repeats")
    for name, draw in populations().items():
        for n in (100, 300, 1000, 3000):
            for q in (0.5, 0.95, 0.99):
                if too_small(q, n):
                    continue
                cells = []
                for method in ("hd", "bootstrap"):
                    rng = np.random.default_rng(1)
                    hits = seen = 0
                    began = time.perf_counter()
                    for seed in range(repeats):
                        before, after = draw(rng, n), draw(rng, n)
                        ratio = quantile_ratio(before, after, q, method=method, seed=seed)  # type: ignore[arg-type]
                        assert ratio.low is not None
                        assert ratio.high is not None
                        hits += ratio.low <= 1.0 <= ratio.high
                        seen += ratio.high * 1.2 < 1.0 or ratio.low * 1.2 > 1.0
                    each = (time.perf_counter() - began) / repeats * 1e3
                    cells.append(f"{method} {hits / repeats:.3f} / {seen / repeats:.2f} / {each:.2f} ms")
                print(f"  {name:16} n {n:5} p{100 * q:g}: {'   '.join(cells)}", flush=True)


def waits_of_a_queue(rng: np.random.Generator, n: int, load: float) -> np.ndarray:
    """Waits of M/M/1 in the steady state, by Lindley's recursion: neighbours are alike."""
    steps = rng.exponential(load, n + 2000) - rng.exponential(1.0, n + 2000)
    walk = np.concatenate([[0.0], steps.cumsum()])
    return ((walk - np.minimum.accumulate(walk))[-n:] * 1e6).astype(np.int64) + 1


def dependent(repeats: int) -> None:
    print(f"FALSE ALARMS at 5 % between two quiet runs of one M/M/1 queue, n 3,000, {repeats} repeats")
    for load in (0.5, 0.8):
        for q in (0.5, 0.95, 0.99):
            told = []
            for independent in (True, False):
                rng = np.random.default_rng(2)
                sides = ((waits_of_a_queue(rng, 3000, load), waits_of_a_queue(rng, 3000, load)) for _ in range(repeats))
                found = [quantile_ratio(*two, q, seed=i, independent=independent) for i, two in enumerate(sides)]
                judged = [ratio for ratio in found if not ratio.why]
                rate = sum(abs(ratio.moved) for ratio in judged) / max(len(judged), 1)
                told.append(f"{rate:.3f} of {len(judged)} judged")
            print(f"  load {load} p{100 * q:g}: as independent {told[0]}; by batch means {told[1]}", flush=True)


def flags(repeats: int) -> None:
    print(f"FLAGS on windows of {PER} items, reference {REFERENCE} windows, {repeats} runs of 300 quiet windows")
    for name, draw in populations().items():
        rng = np.random.default_rng(3)
        for series in ("tail share", "log p95"):
            alarms, delays = 0, {1.2: [], 1.5: [], 2.0: []}  # type: ignore[var-annotated]
            for seed in range(repeats):
                items = draw(rng, PER * (REFERENCE + 300))
                cut = nearest_rank_of(items[: PER * REFERENCE], 0.95)

                def of(x: np.ndarray, cut: float = cut, series: str = series) -> np.ndarray:
                    return tail_share(x, PER, cut) if series == "tail share" else log_p95(x, PER)

                values = of(items)
                detector = PageHinkley(values[:REFERENCE], seed=seed)
                alarms += sum(detector.update(value) is not None for value in values[REFERENCE:].tolist())
                for factor, found in delays.items():
                    armed = PageHinkley(values[:REFERENCE], seed=seed)
                    bad = of((draw(rng, PER * 40) * factor).astype(np.int64)).tolist()
                    found.append(next((i + 1 for i, value in enumerate(bad) if armed.update(value)), 99))
            told = "; ".join(
                f"+{factor - 1:.0%} median {np.median(found):.0f}, within 5: {np.mean(np.array(found) <= 5):.2f}"
                for factor, found in delays.items()
            )
            print(
                f"  {name:16} {series:10} {alarms / (repeats * 300) * 1000:5.2f} per 1,000 quiet windows; {told}",
                flush=True,
            )


def confirm(repeats: int) -> None:
    print(f"E-DIVISIVE on log p95 of 100 windows of {PER}, change at 60, {repeats} runs")
    for name, draw in populations().items():
        rng = np.random.default_rng(4)
        began = time.perf_counter()
        false = sum(len(change_points(log_p95(draw(rng, PER * 100), PER), seed=i)) for i in range(repeats))
        each = (time.perf_counter() - began) / repeats * 1e3
        told = []
        for factor in (1.2, 1.5, 2.0):
            found, errors = 0, []
            for i in range(repeats):
                items = draw(rng, PER * 100).astype(np.float64)
                items[PER * 60 :] *= factor
                near = [abs(at - 60) for at, _ in change_points(log_p95(items, PER), seed=i)]
                found += bool(near)
                errors += [min(near)] if near else []
            told.append(
                f"+{factor - 1:.0%} found {found}/{repeats}, off by {np.median(errors) if errors else float('nan'):.0f}"
            )
        print(
            f"  {name:16} {false / repeats / 100 * 1000:.2f} false per 1,000 windows; {'; '.join(told)}; {each:.0f} ms",
            flush=True,
        )


def same(repeats: int) -> None:
    print(f"SAME AGAINST SAME: two halves of one capture drawn at random, {repeats} resamplings, p50 p95 p99 of three")
    rng = np.random.default_rng(5)
    for name, draw in populations().items():
        any_latency = any_at_all = 0
        for seed in range(repeats):
            n = 2000
            scopes = []
            for _ in range(2):
                wait, service = draw(rng, n) // 4, draw(rng, n)
                start = np.arange(n, dtype=np.int64) * 10**12 + wait
                batch = build_batch(
                    {"kind": "execution", "name": "k", "enqueue_ns": start - wait, "start_ns": start,
                     "end_ns": start + service}
                )  # fmt: skip
                scopes.append(Rows([batch], Header(clock="trace")).scope())
            moves = moves_of(*scopes, seed=seed)
            any_latency += any(move.moved for move in moves if move.field == "latency")
            any_at_all += any(move.moved for move in moves)
        print(f"  {name:16} latency said to move {any_latency}/{repeats}, anything {any_at_all}/{repeats}", flush=True)


CAPTURES = {
    "ONNX Runtime, block": "local/ort/ort_block_all_mixed.json",
    "ONNX Runtime, conv": "local/ort/ort_conv_off_mixed.json",
    "torch, training step": "local/torch/torch_train_step_with_stack.json.gz",
    "torch, CUDA profile": "kineto/pytorch__kineto__worker0.1623143089861.pt.trace.json.gz",
    "BurstGPT, scale 100": "serving/liao4s__BurstGPT_test__detail_log_scale100_prompt500.json",
    "BurstGPT, scale 1000": "serving/liao4s__BurstGPT_test__detail_log_scale1000_prompt500.json",
}
BLOCKS = 20
"""Of a resampling, where neighbours are alike: what is further apart than a block is taken as unrelated."""


@dataclass(frozen=True)
class Units:
    """What is drawn: requests with the executions that served them, or executions alone, in the order of begin.

    rows   [units + 1] where the rows of each begin in `table`; gap_ns [units] to the begin of the next
    block  units that are drawn together: 1 where neighbours are not alike
    """

    table: pa.Table
    rows: np.ndarray
    begin_ns: np.ndarray
    gap_ns: np.ndarray
    block: int


def units_of(path: Path) -> Units:
    trace = open_capture([path], memory_bytes=1 << 28)
    try:
        finish_reading(trace)
        scope = rows_of(trace).scope()
    finally:
        trace.close()
    table = pa.Table.from_batches(scope.batches).unify_dictionaries()
    request = table["request"].fill_null(-1).to_numpy()
    asked = scope.latency_of == "request" and len(scope.requests) >= 20
    kind = table["kind"].cast(pa.string()).to_numpy(zero_copy_only=False)
    keep = np.isin(kind, ["execution", "request"]) & (request >= 0) if asked else kind == "execution"
    table, request = table.filter(pa.array(keep)), request[keep]
    begin = np.minimum(*(table[name].fill_null(1 << 62).to_numpy() for name in ("enqueue_ns", "start_ns")))
    unit = np.unique(request, return_inverse=True)[1] if asked else np.arange(len(table))
    first = np.full(unit.max() + 1, 1 << 62)
    np.minimum.at(first, unit, begin)
    rank = np.empty_like(first)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    order = np.argsort(rank[unit], kind="stable")
    n = len(first)
    begin_ns = np.sort(first)
    gap_ns = np.diff(begin_ns, append=begin_ns[-1] + (begin_ns[-1] - begin_ns[0]) // max(n - 1, 1))
    worth = max(dependence(scope.items.latency, q) for q in (0.5, 0.95))
    edges = np.searchsorted(rank[unit][order], np.arange(n + 1))
    return Units(table.take(pa.array(order)), edges, begin_ns, gap_ns, max(n // BLOCKS, 1) if worth > 1.5 else 1)


def drawn(units: Units, rng: np.random.Generator) -> Scope:
    """As many units anew, in blocks, with the gaps that they had."""
    n = len(units.begin_ns)
    starts = rng.integers(0, n, -(-n // units.block))
    chosen = ((starts[:, None] + np.arange(units.block)) % n).ravel()[:n]
    begin = np.cumsum(units.gap_ns[chosen]) + 10**15
    counts = units.rows[chosen + 1] - units.rows[chosen]
    place = np.repeat(np.arange(n), counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    table = units.table.take(pa.array(units.rows[chosen][place] + within))
    shift = pa.array((begin - units.begin_ns[chosen])[place])
    for name in ("enqueue_ns", "start_ns", "end_ns"):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), pc.add(table[name], shift))
    at = table.schema.get_field_index("request")
    if table["request"].null_count < len(table):
        table = table.set_column(at, table.schema.field(at), [pa.array(place.astype(np.int64))])
    return Rows(table.combine_chunks().to_batches(), Header(clock="trace")).scope()


def real(repeats: int) -> None:
    corpus = os.environ.get("FUSETUI_CORPUS")
    if not corpus:
        print("FUSETUI_CORPUS is not set: no real captures")
        return
    print(
        f"SAME AGAINST SAME, REAL CAPTURES: both sides drawn anew, {repeats} times; flags per 1,000"
        " (nominal 50 each, and 50 for each duration that a capture has)"
    )
    for name, file in CAPTURES.items():
        units = units_of(Path(corpus) / "traces" / file)
        rng = np.random.default_rng(6)
        flags = dict.fromkeys(
            ("verdict", "any duration", "like for like", "parts", "parts of the tail", "kernels", "left"), 0
        )
        judged: set[str] = set()
        for seed in range(repeats):
            made = compare(drawn(units, rng), drawn(units, rng), seed=seed)
            judged |= set(made.judged)
            flags["verdict"] += made.verdict in ("slower", "faster", "mixed")
            flags["any duration"] += any(move.moved for move in made.moves)
            flags["like for like"] += bool(made.alike and made.alike[0].moved)
            flags["parts"] += any(row.ratio.moved for row in made.parts if row.cohort == "all")
            flags["parts of the tail"] += any(row.ratio.moved for row in made.parts if row.cohort == "tail")
            flags["kernels"] += any(row.moved for row in made.kernels)
            flags["left"] += made.left is not None
        told = ", ".join(f"{what} {n / repeats * 1000:.0f}" for what, n in flags.items())
        n, levels = len(units.begin_ns), " ".join(sorted(judged))
        print(f"  {name:22} n {n:5}, blocks of {units.block:3}, judged {levels}: {told}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=300)
    parts = {
        "coverage": coverage,
        "dependent": dependent,
        "flags": flags,
        "confirm": confirm,
        "same": same,
        "real": real,
    }
    parser.add_argument("--only", choices=sorted(parts))
    args = parser.parse_args()
    for name, part in parts.items():
        if args.only in (None, name):
            part(args.repeats)


if __name__ == "__main__":
    main()
