"""Numbers of a simulation to one contract batch."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fusetui.sources.simulated_gauges import Reading
from fusetui.sources.simulated_round import ABSENT, Ints, Work
from fusetui.sources.simulated_words import COUNTERS, RunWords
from fusetui.sources.words import coded
from fusetui.telemetry.schema import COUNTER, KINDS, MAPPINGS, MARK, SCHEMA, build_batch

Part = dict[str, npt.NDArray[Any]]

_INTS: Final = (
    "kind", "name", "enqueue_ns", "start_ns", "end_ns", "launch_ns", "node", "device", "core", "stream", "request",
    "plan", "group", "mapping", "shape", "batch", "dram_bytes", "unit",
)  # fmt: skip
_FLOATS: Final = ("flops", "value")
_TIMES: Final = ("enqueue_ns", "start_ns", "end_ns")


def work_part(kind: str, work: Work, slices: int, open_at_ns: int | None = None) -> Part:
    """Rows of executions or requests; open_at_ns: as they stand then, not done and perhaps not begun."""
    start, end = work.start, work.end
    if open_at_ns is not None:
        start, end = np.where(start <= open_at_ns, start, ABSENT), np.full(len(work), ABSENT)
    dram = np.where(np.isnan(work.dram), ABSENT, work.dram)
    unknown = start == ABSENT
    return _part(
        kind, work.name, enqueue_ns=work.enqueue, start_ns=start, end_ns=end, launch_ns=work.launch, node=work.node,
        device=np.where(unknown, ABSENT, work.core // slices), core=np.where(unknown, ABSENT, work.core % slices),
        stream=work.stream, request=work.request, plan=work.plan, group=work.group, mapping=work.mapping,
        shape=work.shape, batch=work.batch, flops=work.flops, dram_bytes=np.rint(dram).astype(np.int64),
    )  # fmt: skip


def counter_part(at_ns: int, reading: Reading, words: RunWords) -> Part:
    """One row."""
    at = np.array([at_ns])
    unit = COUNTERS[reading.counter][1]
    code = words.units.index(unit) if unit else ABSENT
    return _part(
        COUNTER, np.array([words.counter_name(reading.counter)]), start_ns=at, end_ns=at,
        device=np.array([reading.device]), value=np.array([reading.value]), unit=np.array([code]),
    )  # fmt: skip


def mark_part(at_ns: int, name: int) -> Part:
    """One row."""
    at = np.array([at_ns])
    return _part(MARK, np.array([name]), start_ns=at, end_ns=at)


def _part(kind: str, name: Ints, **given: npt.NDArray[Any]) -> Part:
    rows = len(name)
    part: Part = {"kind": np.full(rows, KINDS.index(kind)), "name": name}
    for column in _INTS[2:]:
        part[column] = given[column] if column in given else np.full(rows, ABSENT)
    for column in _FLOATS:
        part[column] = given[column] if column in given else np.full(rows, np.nan)
    return part


def to_batch(parts: list[Part], words: RunWords, start_ns: int) -> pa.RecordBatch:
    """One contract batch of at least one part; `start_ns` is added to the times."""
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    texts = {
        "kind": KINDS, "name": words.names, "stream": words.streams, "mapping": MAPPINGS, "unit": words.units
    }  # fmt: skip
    columns: dict[str, pa.Array] = {"plan": words.plans(whole["plan"]), "shape": words.shapes(whole["shape"])}
    for name, values in whole.items():
        field = SCHEMA.field(name)
        if name in columns:
            continue
        if name in texts:
            columns[name] = coded(values.astype(field.type.index_type.to_pandas_dtype()), texts[name])
        elif pa.types.is_floating(field.type):
            columns[name] = pa.array(values, mask=np.isnan(values))
        else:
            shift = start_ns if name in _TIMES else 0
            columns[name] = pa.array((values + shift).astype(field.type.to_pandas_dtype()), mask=values == ABSENT)
    return build_batch(columns)
