"""Traces whose making is known: scenarios as `fusetui simulate -o` writes them, and runs of the engine as rows."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import polars as pl
import pyarrow as pa

from fusetui.accelerator.runtime.outcome import GENERIC, MAPPING_WORDS, Outcome
from fusetui.accelerator.scenario.build import Run
from fusetui.accelerator.scenario.parse import load_scenario
from fusetui.sources.simulated_header import header_of
from fusetui.sources.simulated_steps import one_round
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import build_batch


@lru_cache(maxsize=8)
def scenario_trace(name: str, seconds: float | None = None) -> tuple[pl.DataFrame, Header]:
    """One round of a scenario that ships, told job by job; or its first seconds."""
    scenario = replace(load_scenario(name), kernels=False)
    if seconds is not None:
        scenario = replace(scenario, seconds=seconds, slow=tuple(s for s in scenario.slow if s.to_ns <= seconds * 1e9))
    run = Run(scenario)
    frame = pl.from_arrow(pa.Table.from_batches(list(one_round(run))).unify_dictionaries())
    assert isinstance(frame, pl.DataFrame)
    return frame, header_of(run, "trace")


def rows_of(outcome: Outcome, *, shape: str = "tokens={}", plans: bool = True) -> list[pa.RecordBatch]:
    """Requests and jobs of a run as contract rows; `plans`: jobs tell the padded shape they ran at."""
    load, jobs, n = outcome.load, outcome.jobs, len(outcome.load)
    words = np.array(MAPPING_WORDS)
    first = np.full(len(jobs), n)
    np.minimum.at(first, outcome.job, np.arange(n))
    ran = np.where(jobs.mapping == GENERIC, jobs.rows, jobs.bucket)
    requests = build_batch(
        {
            "kind": "request", "name": "serve", "enqueue_ns": load.arrival_ns, "start_ns": outcome.start_ns,
            "end_ns": outcome.end_ns, "device": np.zeros(n, np.int32), "core": jobs.core[outcome.job].astype(np.int32),
            "stream": [load.streams[s].name for s in load.stream.tolist()], "request": np.arange(n),
            "mapping": words[jobs.mapping[outcome.job]].tolist(), "batch": jobs.requests[outcome.job].astype(np.int32),
            "shape": [shape.format(t) for t in load.tokens.tolist()],
        },
        n,
    )  # fmt: skip
    executions = build_batch(
        {
            "kind": "execution", "name": "job", "enqueue_ns": jobs.ready_ns, "start_ns": jobs.start_ns,
            "end_ns": jobs.end_ns, "device": np.zeros(len(jobs), np.int32), "core": jobs.core.astype(np.int32),
            "stream": [load.streams[s].name for s in jobs.stream.tolist()], "request": first,
            "mapping": words[jobs.mapping].tolist(), "batch": jobs.requests.astype(np.int32),
            "shape": [shape.format(r) for r in (ran if plans else jobs.rows).tolist()],
        },
        len(jobs),
    )  # fmt: skip
    return [requests, executions]
