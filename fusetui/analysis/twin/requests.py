"""The requests of a trace as arrays: when they came, how large they were, and how they ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import pyarrow as pa

from fusetui.analysis.arrays import Bools, Ints
from fusetui.analysis.shapesizes import OUTPUT, named_sizes, product
from fusetui.telemetry.schema import MAPPINGS, SCHEMA

if TYPE_CHECKING:
    import polars as pl

ABSENT: Final = -1


@dataclass(frozen=True, slots=True)
class Requests:
    """In the order of their arrivals, arrays (n,); ABSENT where a row says nothing.

    number       request id; enqueue, start, end: ns
    stream       index in `streams`; core: over all hosts and devices that are named, as in `cores`
    shape        index in `shapes`
    tokens       rows each brought, 1 without a shape; output: tokens it generates
    batch        how many ran together; mapping: index in MAPPINGS
    """

    number: Ints
    enqueue: Ints
    start: Ints
    end: Ints
    stream: Ints
    streams: tuple[str, ...]
    core: Ints
    cores: int
    shape: Ints
    shapes: tuple[str, ...]
    tokens: Ints
    output: Ints
    batch: Ints
    mapping: Ints

    def __len__(self) -> int:
        return len(self.number)

    def take(self, keep: Bools) -> Self:
        """Some of them."""
        return replace(
            self, number=self.number[keep], enqueue=self.enqueue[keep], start=self.start[keep], end=self.end[keep],
            stream=self.stream[keep], core=self.core[keep], shape=self.shape[keep], tokens=self.tokens[keep],
            output=self.output[keep], batch=self.batch[keep], mapping=self.mapping[keep],
        )  # fmt: skip

    @property
    def ended(self) -> Bools:
        """(n,) whether each ended in the trace."""
        ended: Bools = self.end != ABSENT
        return ended


def frame_of(rows: pl.DataFrame | Iterable[pa.RecordBatch]) -> pl.DataFrame:
    """Contract rows as one frame; columns that are missing are null."""
    import polars as pl  # only a twin needs it: the first frame of a screen must not wait for it

    if isinstance(rows, pl.DataFrame):
        frame = rows
    else:
        batches = list(rows)
        table = pa.Table.from_batches(batches) if batches else SCHEMA.empty_table()
        made = pl.from_arrow(table.unify_dictionaries())
        assert isinstance(made, pl.DataFrame)
        frame = made
    missing = [name for name in SCHEMA.names if name not in frame.columns]
    return frame.with_columns(pl.lit(None, pl.Int64).alias(name) for name in missing) if missing else frame


def requests_of(frame: pl.DataFrame) -> Requests:
    """The requests among contract rows; of one that is told several times the row with its end, else the last."""
    import polars as pl

    found = frame.filter((pl.col("kind").cast(pl.String) == "request") & pl.col("enqueue_ns").is_not_null())
    who = ["host", "stream", "request"]
    done = found.filter(pl.col("end_ns").is_not_null())
    still = found.filter(pl.col("end_ns").is_null() & pl.col("request").is_not_null())
    if len(still):
        still = still.unique(who, keep="last", maintain_order=True)
        still = still.join(done.select(who), on=who, how="anti", nulls_equal=True)
    found = pl.concat([done, still]).sort(["enqueue_ns", "request"], maintain_order=True)
    stream, streams = codes_of(found["stream"])
    shape, shapes = codes_of(found["shape"])
    core, cores = _cores(found)
    mapping, words = codes_of(found["mapping"])
    known = np.array([MAPPINGS.index(w) if w in MAPPINGS else ABSENT for w in words] + [ABSENT], np.int64)
    tokens, output = sizes_of(shapes, np.bincount(shape + 1, minlength=len(shapes) + 1)[1:])
    return Requests(
        number=numbers(found["request"]), enqueue=numbers(found["enqueue_ns"]), start=numbers(found["start_ns"]),
        end=numbers(found["end_ns"]), stream=np.maximum(stream, 0), streams=streams or ("requests",), core=core,
        cores=cores, shape=shape, shapes=shapes, tokens=np.append(tokens, 1)[shape],
        output=np.append(output, 0)[shape], batch=numbers(found["batch"]), mapping=known[mapping],
    )  # fmt: skip


def numbers(series: pl.Series) -> Ints:
    """(n,) int64, ABSENT where null."""
    filled: Ints = series.cast(int).fill_null(ABSENT).to_numpy().astype(np.int64, copy=False)
    return filled


def codes_of(series: pl.Series) -> tuple[Ints, tuple[str, ...]]:
    """(index of each value's word or ABSENT, words in order of the alphabet)."""
    import polars as pl

    texts = series.cast(pl.String)
    words = sorted(texts.drop_nulls().unique().to_list())
    if not words:
        return np.full(len(series), ABSENT), ()
    return numbers(texts.cast(pl.Enum(words)).to_physical()), tuple(words)


def _cores(found: pl.DataFrame) -> tuple[Ints, int]:
    """(dense core over hosts and devices, how many): in the order of host, device and core."""
    host, _ = codes_of(found["host"])
    device, core = numbers(found["device"]), numbers(found["core"])
    named = (device != ABSENT) | (core != ABSENT)
    place = np.stack([host, device, core], axis=1)
    if not named.any():
        return np.full(len(found), ABSENT), 0
    kinds, index = np.unique(place[named], axis=0, return_inverse=True)
    dense = np.full(len(found), ABSENT)
    dense[named] = index.ravel()
    return dense, len(kinds)


def sizes_of(shapes: Sequence[str], weights: Ints) -> tuple[Ints, Ints]:
    """(tokens, output) of each shape key: the product of the named dimensions that vary, and of `output`.

    Where none varies it is the product of all that are named. Keys without named dimensions count as 1.
    """
    parsed = [named_sizes(key) for key in shapes]
    values: dict[str, Counter[int]] = {}
    for dims, weight in zip(parsed, weights.tolist(), strict=True):
        for name, size in dims.items():
            values.setdefault(name, Counter())[size] += weight
    varies = {name for name, sizes in values.items() if len(sizes) > 1 and name != OUTPUT}
    tokens = [product(size for name, size in d.items() if name in varies) for d in parsed]
    if not varies:
        tokens = [product(size for name, size in d.items() if name != OUTPUT) for d in parsed]
    return np.array(tokens, np.int64), np.array([d.get(OUTPUT, 0) for d in parsed], np.int64)
