"""What ran for each request: the executions with its number put together, and requests that ran as one batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from fusetui.analysis.arrays import Bools, Ints
from fusetui.analysis.mapping_padding import padding_of, planned_padding
from fusetui.analysis.twin.requests import ABSENT, Requests, codes_of, numbers
from fusetui.telemetry.schema import FALLBACK, MAPPINGS

if TYPE_CHECKING:
    import polars as pl

GENERIC: Final = MAPPINGS.index(FALLBACK)


@dataclass(frozen=True, slots=True)
class Jobs:
    """Work units of a trace in the order they began, arrays (m,); `of` (n,) the job of each request, ABSENT: not ended.

    rows       that came, over all requests of the job; ran: that ran, more when padded
    first, last  arrivals of its first and last request; dispatch: handed to the runtime queue, ABSENT unknown
    size       requests in it
    """

    of: Ints
    stream: Ints
    core: Ints
    rows: Ints
    ran: Ints
    mapping: Ints
    first: Ints
    last: Ints
    dispatch: Ints
    start: Ints
    end: Ints
    size: Ints

    def __len__(self) -> int:
        return len(self.start)

    @property
    def service(self) -> Ints:
        """(m,) ns on a core, at least 1."""
        took: Ints = np.maximum(self.end - self.start, 1)
        return took

    @property
    def generic(self) -> Bools:
        """(m,) whether no plan fitted."""
        fell: Bools = self.mapping == GENERIC
        return fell


def ran_for(frame: pl.DataFrame, came: Requests, plans: Mapping[str, str]) -> tuple[Requests, Ints, Ints]:
    """(requests completed by their executions, rows that ran for each, when each was handed over or ABSENT).

    plans  the header's descriptions
    """
    import polars as pl

    done = frame.filter(
        (pl.col("kind").cast(pl.String) == "execution")
        & pl.col("request").is_not_null() & pl.col("end_ns").is_not_null() & pl.col("start_ns").is_not_null()
    )  # fmt: skip
    ran, dispatch = came.tokens.copy(), np.full(len(came), ABSENT)
    if not len(done):
        return came, ran, dispatch
    one = done.sort("start_ns", maintain_order=True).group_by("request", maintain_order=True).agg(
        pl.col("enqueue_ns").min(), pl.col("start_ns").first(),
        *(pl.col(name).first() for name in ("plan", "shape", "core", "device")),
        *((pl.col("mapping").cast(pl.String) == word).any().alias(word) for word in MAPPINGS),
    )  # fmt: skip
    at = _rows_of(numbers(one["request"]), came.number)
    known = at >= 0
    ran[known] = _sizes(one, at[known], known, came, plans)
    dispatch[known] = numbers(one["enqueue_ns"])[at[known]]
    start = came.start.copy()
    without = known & (start == ABSENT) & came.ended
    start[without] = numbers(one["start_ns"])[at[without]]
    mapping = came.mapping.copy()
    for code, word in enumerate(MAPPINGS):  # the furthest from the plan counts
        said = one[word].fill_null(False).to_numpy()[at]
        mapping[known & (came.mapping == ABSENT) & said] = code
    return _with_cores(replace(came, start=start, mapping=mapping), one, at), ran, dispatch


def _with_cores(came: Requests, one: pl.DataFrame, at: Ints) -> Requests:
    """Requests that name no core have that of their first execution."""
    if came.cores:
        return came
    device, core = numbers(one["device"]), numbers(one["core"])
    if bool((core == ABSENT).all()) and bool((device == ABSENT).all()):
        return came
    kinds, index = np.unique(np.stack([device, core], axis=1), axis=0, return_inverse=True)
    return replace(came, core=np.where(at >= 0, index.ravel()[at], ABSENT), cores=len(kinds))


def _rows_of(keys: Ints, wanted: Ints) -> Ints:
    """(n,) where each wanted number is among keys, ABSENT: nowhere."""
    order = np.argsort(keys, kind="stable")
    place = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    at = order[place]
    return np.where((keys[at] == wanted) & (wanted != ABSENT), at, ABSENT)


def _sizes(one: pl.DataFrame, at: Ints, known: Bools, came: Requests, plans: Mapping[str, str]) -> Ints:
    """Rows that ran for the known requests: from the plan's description, else from the shape of the execution."""
    plan, plan_words = codes_of(one["plan"])
    shape, shape_words = codes_of(one["shape"])
    # An execution for a batch has the shape of all its requests.
    asked_alone = np.where(came.batch[known] > 1, ABSENT, came.shape[known])
    triple = np.stack([plan[at], shape[at], asked_alone], axis=1)
    kinds, index = np.unique(triple, axis=0, return_inverse=True)
    ratio = np.ones(len(kinds))
    for i, (p, own, asked) in enumerate(kinds.tolist()):
        described = plans.get(plan_words[p], "") if p >= 0 else ""
        pair = planned_padding(described, shape_words[own]) if described and own >= 0 else None
        if pair is None and own >= 0 and asked >= 0:
            pair = padding_of(shape_words[own], came.shapes[asked])
        if pair is not None and pair[1] > 0:
            ratio[i] = max(pair[0] / pair[1], 1.0)
    padded: Ints = np.rint(came.tokens[known] * ratio[index.ravel()]).astype(np.int64)
    return padded


def jobs_of(came: Requests, ran: Ints, dispatch: Ints) -> Jobs:
    """Requests that began and ended together on one core, of one stream and told to be a batch, are one job."""
    ended = np.flatnonzero(came.ended & (came.start != ABSENT))
    key = np.stack([came.start, came.end, came.core, came.stream], axis=1)[ended]
    single = came.batch[ended] <= 1
    key = np.column_stack([key, np.where(single, np.arange(len(ended)), ABSENT)])
    kinds, index, size = np.unique(key, axis=0, return_inverse=True, return_counts=True)
    index, m = index.ravel(), len(kinds)

    def total(values: Ints) -> Ints:
        return np.bincount(index, values[ended], m).astype(np.int64)

    some = np.zeros(m, np.int64)
    some[index] = ended
    first, last = np.full(m, np.iinfo(np.int64).max), np.zeros(m, np.int64)
    np.minimum.at(first, index, came.enqueue[ended])
    np.maximum.at(last, index, came.enqueue[ended])
    handed = np.full(m, ABSENT)
    np.maximum.at(handed, index, dispatch[ended])
    of = np.full(len(came), ABSENT)
    of[ended] = index
    return Jobs(
        of, came.stream[some], came.core[some], total(came.tokens), total(ran), came.mapping[some], first, last,
        handed, came.start[some], came.end[some], size.astype(np.int64),
    )  # fmt: skip
