"""What the window costs: ns per row for 50k-row batches, ms per snapshot, µs per small batch.

    python tests/bench/bench_window.py

Prints the median and the best of several passes in thread CPU time, so other work on the machine disturbs little.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from fusetui.analysis.allocator import keep_freed_blocks
from fusetui.analysis.frame import Context, snapshot_of
from fusetui.analysis.loghist import LogHistogram
from fusetui.analysis.slots import Grid
from fusetui.analysis.window import Window
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import build_batch
from fusetui.telemetry.source import SourceHealth

CONTEXT = Context(1, 0.0, Header(), SourceHealth("bench", "live"), None, 0, "", 0.0)
MINUTE_NS = 60_000_000_000


def words(rng: np.random.Generator, prefix: str, count: int, n: int) -> pa.Array:
    dictionary = pa.array([f"{prefix}{i}" for i in range(count)])
    return pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, count, n), pa.int32()), dictionary)


def batches(count: int, rows: int, rows_per_s: float, cores: int = 64) -> tuple[list[pa.RecordBatch], list[int]]:
    """Executions in completion order, with every column that the window reads at full rate."""
    rng = np.random.default_rng(1)
    made, lasts = [], []
    now = 10**18
    for _ in range(count):
        end = now + np.cumsum(rng.integers(0, round(2e9 / rows_per_s) + 1, rows))
        start = end - rng.lognormal(9, 1, rows).astype(np.int64)
        columns = {
            "kind": "execution",
            "name": words(rng, "kernel_", 40, rows),
            "enqueue_ns": start - rng.lognormal(10, 1.5, rows).astype(np.int64),
            "start_ns": start,
            "end_ns": end,
            "device": np.zeros(rows, np.int32),
            "core": rng.integers(0, cores, rows).astype(np.int32),
            "stream": words(rng, "stream ", 8, rows),
        }
        made.append(build_batch(columns))
        now = int(end[-1])
        lasts.append(now)
    return made, lasts


def cost(work: Callable[[], object], passes: int = 7) -> tuple[float, float]:
    """(median, best) thread CPU seconds."""
    spent = []
    for _ in range(passes):
        began = time.thread_time()
        work()
        spent.append(time.thread_time() - began)
    return float(np.median(spent)), min(spent)


def feed(window: Window, made: list[pa.RecordBatch], lasts: list[int]) -> None:
    for batch, last in zip(made, lasts, strict=True):
        window.keep_raw(batch)
        window.add(batch, last)


def main() -> None:
    print("glibc keeps freed blocks:", keep_freed_blocks())
    values = np.random.default_rng(0).lognormal(14, 2, 10_000).astype(np.int64)
    histogram = LogHistogram()
    median, best = cost(lambda: histogram.add(values), 50)
    print(f"log histogram, 10k values: median {1e-2 / median:.0f}, best {1e-2 / best:.0f} M values/s")
    made, lasts = batches(20, 50_000, 5e6)
    rows = sum(map(len, made))

    def fill() -> Window:
        window = Window(Grid.of_window(MINUTE_NS))
        feed(window, made, lasts)
        return window

    median, best = cost(fill)
    print(f"window, 50k-row batches: median {median / rows * 1e9:.0f}, best {best / rows * 1e9:.0f} ns/row")
    small, ends = batches(200, 100, 1e5)
    median, best = cost(lambda: feed(Window(Grid.of_window(MINUTE_NS)), small, ends))
    print(f"window, 100-row batches: median {median / 200 * 1e6:.0f}, best {best / 200 * 1e6:.0f} µs/batch")
    for title, count, rate in (("1 M rows, histograms", 20, 5e6), ("95k rows, exact", 19, 2e4)):
        made, lasts = batches(count, 50_000 if count == 20 else 5_000, rate)
        window = Window(Grid.of_window(MINUTE_NS))
        feed(window, made, lasts)
        now = lasts[-1]
        exact = snapshot_of(window, now, CONTEXT).latency.exact
        median, best = cost(lambda window=window, now=now: snapshot_of(window, now, CONTEXT))  # type: ignore[misc]
        print(f"snapshot, {title} (exact {exact}): median {median * 1e3:.1f}, best {best * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
