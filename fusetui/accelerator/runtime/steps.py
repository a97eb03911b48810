"""The record of continuous batching, and what each request's share of the steps it sat through was."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from fusetui.accelerator.runtime.config import Config
from fusetui.accelerator.runtime.idle import idle_between
from fusetui.accelerator.runtime.load import Load
from fusetui.accelerator.runtime.outcome import (
    COMPONENTS,
    GATE,
    HIT,
    LAUNCH,
    MISPLACED,
    QUEUE,
    RECOMPILED,
    SLOW,
    STALL,
    Jobs,
    Outcome,
)
from fusetui.accelerator.runtime.types import Ints


@dataclass(frozen=True, slots=True)
class Costs:
    """What a step is made of. c components.

    table    (n,) plan table of each request's prefill
    prefill  (n, c) ns of each request's prefill
    decode   (s, c) ns of a decode step by its batch size; bucket, mapping: (s,) what runs for it
    """

    table: Ints
    prefill: Ints
    decode: Ints
    bucket: Ints
    mapping: Ints


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps in the order they began, (t,) each, and the first and last step of each request, (n,).

    running        requests that decode; filling_ns: prefill of those that join, slow_fill_ns of it for a slow core
    stall_ns       making a plan for this batch size; slow_decode_ns: decode, for a slow core
    """

    core: Ints
    start_ns: Ints
    end_ns: Ints
    running: Ints
    filling_ns: Ints
    slow_fill_ns: Ints
    stall_ns: Ints
    slow_decode_ns: Ints
    first: Ints
    last: Ints

    @classmethod
    def of(cls, record: Ints, first: Ints, last: Ints) -> Self:
        """From a row a step, in the order of the fields."""
        names = [f.name for f in fields(cls)][: record.shape[1]]
        return cls(first=first, last=last, **dict(zip(names, record.T, strict=True)))


def settle(load: Load, config: Config, costs: Costs, steps: Steps) -> Outcome:
    """Requests and jobs from the record.

    Own prefill and the decodes of its later steps are a request's own, by component; the rest of the time between its
    first step and its end (others' prefill, the decode beside its own prefill) is gate.
    """
    decode = costs.decode[steps.running].copy()
    decode[:, STALL] += steps.stall_ns
    decode[:, SLOW] += steps.slow_decode_ns
    own = costs.prefill.copy()
    own[:, SLOW] += _share_of_slow(costs.prefill, steps)
    parts = own + _later_decodes(decode, steps)
    start, end = steps.start_ns[steps.first], steps.end_ns[steps.last]
    parts[:, GATE] = end - start - parts.sum(axis=1)
    waits = start - load.arrival_ns
    none_free = np.zeros(config.cores, np.int64)
    idle = np.zeros_like(waits)
    if config.placement.kind != "shared":
        idle = idle_between(load.arrival_ns, start, steps.start_ns, steps.end_ns, none_free)
    parts[:, MISPLACED], parts[:, QUEUE] = idle, waits - idle
    jobs, prefill_job, decode_job = _jobs(load, config, costs, steps, decode)
    alone = steps.first == steps.last
    job = np.where(alone, prefill_job[steps.first], decode_job[steps.last])
    first_token = steps.end_ns[steps.first]
    return Outcome(load, config, jobs, job, load.arrival_ns.copy(), start, first_token, end, parts, frozenset())


def _share_of_slow(prefill: Ints, steps: Steps) -> Ints:
    """What a slow core added to each request's prefill: its share, rounded down, of what it added to the step's."""
    kernels = prefill.sum(axis=1) - prefill[:, LAUNCH]
    of_step = np.zeros(len(steps.core), np.int64)
    np.add.at(of_step, steps.first, kernels)
    share = steps.slow_fill_ns[steps.first].astype(np.float64) * kernels / np.maximum(of_step[steps.first], 1)
    own: Ints = np.minimum(np.floor(share).astype(np.int64), steps.slow_fill_ns[steps.first])
    return own


def _later_decodes(decode: Ints, steps: Steps) -> Ints:
    """(n, c) decode time from the step after a request's first to its last: steps of a core follow each other."""
    order = np.argsort(steps.core, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    until = np.concatenate([np.zeros((1, decode.shape[1]), np.int64), np.cumsum(decode[order], axis=0)])
    later: Ints = until[rank[steps.last] + 1] - until[rank[steps.first] + 1]
    return later


def _jobs(load: Load, config: Config, costs: Costs, steps: Steps, decode: Ints) -> tuple[Jobs, Ints, Ints]:
    """(jobs, prefill job of each step, decode job of each step): a step is up to two jobs, prefill before decode."""
    t = len(steps.core)
    joined = np.bincount(steps.first, minlength=t)
    rows, filled = np.zeros(t, np.int64), np.zeros((t, len(COMPONENTS)), np.int64)
    np.add.at(rows, steps.first, load.tokens)
    np.add.at(filled, steps.first, costs.prefill)
    filled[:, SLOW] += steps.slow_fill_ns
    stream, table = np.zeros(t, np.int64), np.zeros(t, np.int64)
    stream[steps.first[::-1]], table[steps.first[::-1]] = load.stream[::-1], costs.table[::-1]
    several = -1 if len(load.streams) > 1 else 0
    between = steps.start_ns + steps.filling_ns

    def pairs(prefill: Ints, decoding: Ints | int) -> Ints:
        both: Ints = np.stack([prefill, np.broadcast_to(decoding, prefill.shape)], axis=1)
        kept: Ints = both.reshape(2 * t, *prefill.shape[1:])[keep]
        return kept

    keep = np.stack([joined > 0, steps.running > 0], axis=1).ravel()
    start = pairs(steps.start_ns, between)
    bucket, mapping = costs.bucket[steps.running], costs.mapping[steps.running]
    mapping = np.where((mapping == RECOMPILED) & (steps.stall_ns == 0), HIT, mapping)
    zeros = np.zeros(t, np.int64)
    jobs = Jobs(
        stream=pairs(stream, several), table=pairs(table, len(config.tables)), requests=pairs(joined, steps.running),
        rows=pairs(rows, steps.running), bucket=pairs(rows, bucket), mapping=pairs(zeros + HIT, mapping),
        core=pairs(steps.core, steps.core), ready_ns=start, start_ns=start, end_ns=pairs(between, steps.end_ns),
        parts=pairs(filled, decode), demand=np.zeros(int(keep.sum())),
    )  # fmt: skip
    number = np.cumsum(keep) - 1
    return jobs, number[0::2], number[1::2]
