"""The executions of a capture as tokens: equal name and shape, equal token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from fusetui.analysis.recover.backward import undone_by
from fusetui.analysis.recover.names import Part, parts_of
from fusetui.analysis.recover.sequence import Ints
from fusetui.analysis.recover.shapes import Key, parse_key

if TYPE_CHECKING:
    import polars as pl

_FASTEST_COPY: Final = 50.0  # bytes per ns of four-byte elements read and written: a reshape that beats it is a view


@dataclass(frozen=True, slots=True)
class Token:
    """What executions of one name and shape are. `undoes`: the form of the forward operator, of a backward node."""

    name: str
    parts: tuple[Part, ...]
    key: Key
    undoes: str

    @property
    def is_view(self) -> bool:
        """Whether it only looks at its operand in another way."""
        return bool(self.parts) and self.parts[0].form == "view"

    @property
    def plannable(self) -> bool:
        """Whether the model may have operators for it."""
        return bool(self.undoes or self.is_view or (self.parts and self.key.operands))


@dataclass(frozen=True, slots=True)
class Executions:
    """Executions in order of start: token, duration in ns and step (-1: none) of each, (rows,).

    devices   how many there were; the rows are those of the busiest
    """

    tokens: list[Token]
    token: Ints
    duration: Ints
    request: Ints
    devices: int


def executions_of(frame: pl.DataFrame, *, opened: bool) -> Executions:
    """The executions of a frame, of the busiest device when there are several. `opened`: see `recover`."""
    import polars as pl

    picked = [pl.col(name).cast(pl.String).fill_null("") for name in ("name", "shape")]
    request = pl.col("request").fill_null(-1) if "request" in frame.columns else pl.lit(-1).alias("request")
    if "shape" not in frame.columns:
        picked[1] = pl.lit("").alias("shape")
    if "kind" in frame.columns:
        frame = frame.filter(pl.col("kind").cast(pl.String) == "execution")
    frame = frame.filter(pl.col("start_ns").is_not_null() & pl.col("end_ns").is_not_null()).sort("start_ns")
    frame, devices = _busiest(frame)
    plain = frame.select(*picked, request.cast(pl.Int64), (pl.col("end_ns") - pl.col("start_ns")).alias("took"))
    words = plain.select("name", "shape").unique(maintain_order=True).with_row_index("token")
    plain = plain.join(words, on=["name", "shape"], how="left", maintain_order="left")
    token, took = plain["token"].cast(pl.Int64).to_numpy(), plain["took"].cast(pl.Int64).to_numpy()
    mean = np.bincount(token, took, words.height) / np.maximum(np.bincount(token, minlength=words.height), 1)
    tokens = [_token(name, shape, mean[i], opened) for i, name, shape in words.iter_rows()]
    return Executions(tokens, token, took, plain["request"].to_numpy(), devices)


def _token(name: str, shape: str, mean_ns: float, opened: bool) -> Token:
    key, node = parse_key(shape), undone_by(name)
    parts = () if node else parts_of(name)
    moved = 8 * max((operand.points for operand in key.operands), default=0)
    if name == "aten::reshape" and moved > _FASTEST_COPY * mean_ns:
        parts = parts_of("aten::view")
    if name.startswith("triton_") and len(key.operands) > 1 and key.operands[-1].points == moved // 8:
        key = Key(key.operands[:-1], key.operands[-1].shape)  # arguments end with what is written
    return Token(name, parts, key, "" if opened else node)


def _busiest(frame: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """The rows of the (host, device) with most time, and how many there are: two devices make no one sequence."""
    import polars as pl

    keys = [name for name in ("host", "device") if name in frame.columns]
    if not keys or frame.select(keys).n_unique() < 2:
        return frame, 1
    took = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("took")
    totals = frame.group_by(keys, maintain_order=True).agg(took).sort("took", descending=True, maintain_order=True)
    return frame.join(totals.head(1), on=keys, how="semi", nulls_equal=True, maintain_order="left"), totals.height
