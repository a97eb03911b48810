"""What ran in a twin: its jobs by plan table and size, what each size cost above its plan, and where it shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusetui.accelerator.runtime.outcome import FALLBACK, GENERIC, LAUNCH, PADDED, PADDING, STALL
from fusetui.analysis.arrays import Bools, Floats, Ints
from fusetui.analysis.retune.action import Slice
from fusetui.analysis.twin.model import Twin

_MOST_WORDS = 6


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes that came for one table, ascending, arrays (b,).

    n           jobs; excess_ns: padding, fallback and stalls over all of them
    padded, generic  jobs that ran padded, or on the generic path
    bucket      size that ran (the most common)
    """

    rows: Ints
    n: Ints
    excess_ns: Ints
    padded: Ints
    generic: Ints
    bucket: Ints


def sizes_of(twin: Twin, table: int) -> Sizes:
    """Of the table's jobs; `table` is one past the last for the decode of a continuous batch."""
    jobs = twin.outcome.jobs
    mine = np.flatnonzero(jobs.table == table)
    rows, index = np.unique(jobs.rows[mine], return_inverse=True)
    index = index.ravel()
    excess = jobs.parts[mine][:, [PADDING, FALLBACK, STALL]].sum(axis=1)
    launch = jobs.parts[mine, LAUNCH]
    # What the generic path waits for launches above a plan is its cost as well.
    usual = int(np.median(launch[jobs.mapping[mine] != GENERIC])) if (jobs.mapping[mine] != GENERIC).any() else 0
    excess = excess + np.where(jobs.mapping[mine] == GENERIC, np.maximum(launch - usual, 0), 0)

    def total(values: Ints | Bools | Floats) -> Ints:
        summed: Ints = np.rint(np.bincount(index, values, len(rows))).astype(np.int64)
        return summed

    bucket = np.zeros(len(rows), np.int64)
    bucket[index] = jobs.bucket[mine]
    mapping = jobs.mapping[mine]
    return Sizes(
        rows, total(np.ones(len(mine))), total(excess), total(mapping == PADDED), total(mapping == GENERIC), bucket
    )


def share(twin: Twin, *components: int, q: float = 0.95) -> float:
    """Of the latency of requests from the quantile on, how much is these components."""
    latency = twin.outcome.latency_ns
    tail = latency >= np.partition(latency, int(q * (len(latency) - 1)))[int(q * (len(latency) - 1))]
    return float(twin.outcome.parts[tail][:, list(components)].sum()) / max(float(latency[tail].sum()), 1.0)


def slice_of(twin: Twin, which: Bools, extra: str = "") -> Slice:
    """From the first to the last of these requests, (n,), told by their shapes; `extra` goes with it."""
    at = np.flatnonzero(which)
    if not len(at):
        at = np.arange(len(twin.load))
    begin = int(twin.came.enqueue[at].min())
    end = max(int(twin.came.end[at].max()), int(twin.came.enqueue[at].max()))
    shapes = twin.came.shape[at]
    codes, n = np.unique(shapes[shapes >= 0], return_counts=True)
    words = [twin.came.shapes[c] for c in codes[np.argsort(-n, kind="stable")][:_MOST_WORDS].tolist()]
    every = len(np.unique(twin.came.shape)) <= len(codes)
    told = "" if every or extra else " or ".join(f'shape = "{word}"' for word in words)
    return Slice(begin, end, extra or told)


def slice_of_jobs(twin: Twin, which: Bools, extra: str) -> Slice:
    """From the first to the last of these jobs, (m,), as the twin ran them."""
    jobs = twin.outcome.jobs
    return Slice(twin.start_ns + int(jobs.start_ns[which].min()), twin.start_ns + int(jobs.end_ns[which].max()), extra)


def of_table(twin: Twin, table: int) -> Bools:
    """(n,) requests that are served by a table."""
    if twin.config.decode is not None or len(twin.config.tables) == 1:
        return np.ones(len(twin.load), np.bool_)
    mine: Bools = twin.load.stream == table
    return mine


def names_of(twin: Twin, table: int) -> str:
    """The stream a table serves, "" for all."""
    if twin.config.decode is not None or len(twin.config.tables) == 1:
        return ""
    return twin.load.streams[table].name
