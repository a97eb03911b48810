"""A continuous batch read off telemetry: its steps by batch size, and the prefill of those that join."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from fusetui.accelerator.runtime.config import Batching, Config, Lookup
from fusetui.accelerator.runtime.load import Load, Stream
from fusetui.accelerator.runtime.paths import Path, PlanTable
from fusetui.analysis.arrays import Bools, Ints
from fusetui.analysis.mapping_padding import planned_padding
from fusetui.analysis.twin.requests import ABSENT, Requests, codes_of, numbers, sizes_of
from fusetui.analysis.twin.tables import medians
from fusetui.telemetry.schema import FALLBACK, MAPPINGS

if TYPE_CHECKING:
    import polars as pl

_GENERIC: Final = MAPPINGS.index(FALLBACK)
_MIN_STEPS: Final = 100


@dataclass(frozen=True, slots=True)
class _Steps:
    """Executions, arrays (m,): requests in each, ns it ran, ns its launch took, bucket that ran, mapping."""

    batch: Ints
    took: Ints
    launch: Ints
    bucket: Ints
    mapping: Ints

    def path(self, which: Bools, name: str) -> Path | None:
        """Median times by what ran, None without any."""
        if not which.any():
            return None
        sizes, took = medians(self.bucket[which], self.took[which])
        at, launch = medians(self.bucket[which], self.launch[which])
        return Path.of(sizes, took, launch_ns=np.interp(sizes, at, launch), name=name)


def continuous_of(
    frame: pl.DataFrame, came: Requests, cores: int, plans: Mapping[str, str]
) -> tuple[Load, Config] | None:
    """Load and runtime; None where requests do not tell how much they generate, or no execution tells its batch."""
    if not came.output.any() or not cores:
        return None
    steps, prefill = _executions(frame, plans)
    if steps is None or len(steps.batch) < _MIN_STEPS:
        return None
    generic = steps.mapping == _GENERIC
    plan, fallback = steps.path(~generic, "step"), steps.path(generic, "step without a plan")
    known = plan or fallback
    if known is None:
        return None
    decode = PlanTable("decode", plan or known, fallback or known)
    table = PlanTable("prefill", prefill, prefill)
    load = Load.of(
        came.enqueue - came.enqueue[0], came.tokens, came.output, stream=came.stream,
        streams=[Stream(name) for name in came.streams],
    )  # fmt: skip
    batching = Batching("continuous", max(int(steps.batch.max()), int(_most_running(came, cores))))
    return load, Config((table,), cores, batching=batching, lookup=_lookup(steps, generic), decode=decode)


def _executions(frame: pl.DataFrame, plans: Mapping[str, str]) -> tuple[_Steps | None, Path]:
    """(the steps: executions of the name that ran most often; prefill: what the others took by their size)."""
    import polars as pl

    ran = frame.filter(
        (pl.col("kind").cast(pl.String) == "execution")
        & pl.col("end_ns").is_not_null() & pl.col("start_ns").is_not_null() & pl.col("batch").is_not_null()
    )  # fmt: skip
    nothing = Path.of([1], [0.0], name="prefill")
    if not len(ran):
        return None, nothing
    name, _ = codes_of(ran["name"])
    is_step = name == int(np.bincount(name).argmax())
    took = np.maximum(numbers(ran["end_ns"]) - numbers(ran["start_ns"]), 1)
    launch, batch = np.maximum(numbers(ran["launch_ns"]), 0), np.maximum(numbers(ran["batch"]), 1)
    mapping, words = codes_of(ran["mapping"])
    code = np.array([MAPPINGS.index(w) if w in MAPPINGS else ABSENT for w in words] + [ABSENT], np.int64)[mapping]
    bucket = _buckets(ran, batch, plans)
    steps = _Steps(*(values[is_step] for values in (batch, took, launch, bucket, code)))
    other = ~is_step
    if not other.any():
        return steps, nothing
    shape, shapes = codes_of(ran["shape"])
    tokens, _ = sizes_of(shapes, np.ones(len(shapes), np.int64))
    rows = np.append(tokens, 1)[shape][other] // batch[other]
    sizes, each = medians(np.maximum(rows, 1), (took + launch)[other] // batch[other])
    return steps, Path.of(sizes, each, name="prefill")


def _buckets(ran: pl.DataFrame, batch: Ints, plans: Mapping[str, str]) -> Ints:
    """Requests that each execution has room for: as the plan it ran under is described, else as many as it had."""
    plan, plan_words = codes_of(ran["plan"])
    shape, shape_words = codes_of(ran["shape"])
    kinds, index = np.unique(np.stack([plan, shape], axis=1), axis=0, return_inverse=True)
    ratio = np.ones(len(kinds))
    for i, (p, own) in enumerate(kinds.tolist()):
        described = plans.get(plan_words[p], "") if p >= 0 else ""
        pair = planned_padding(described, shape_words[own]) if described and own >= 0 else None
        if pair is not None and pair[1] > 0:
            ratio[i] = max(pair[0] / pair[1], 1.0)
    room: Ints = np.rint(batch * ratio[index.ravel()]).astype(np.int64)
    return room


def _lookup(steps: _Steps, generic: Bools) -> Lookup:
    """Batch sizes that plans ran at, where padding or fallback shows that not every size has one."""
    planned = steps.bucket[~generic]
    padded = steps.bucket > steps.batch
    if not len(planned) or not (generic.any() or padded.any()):
        return Lookup()
    sizes = np.unique(planned)
    if not padded.any():
        return Lookup(limit=int(sizes[-1]))
    ratio = steps.bucket[padded] / steps.batch[padded]
    return Lookup(tuple(sizes.tolist()), pad_limit=max(float(ratio.max()), 1.0))


def _most_running(came: Requests, cores: int) -> int:
    """Requests that were in progress at once, for each core."""
    known = came.ended & (came.start != ABSENT)
    times = np.concatenate([came.end[known], came.start[known]])
    change = np.repeat([-1, 1], int(known.sum()))
    return -(-int(np.cumsum(change[np.argsort(times, kind="stable")]).max(initial=1)) // cores)
