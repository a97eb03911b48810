"""From the rows of a capture to a graph and the times of its operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fusetui.accelerator.errors import AcceleratorError
from fusetui.analysis.planned import Captured, Measured
from fusetui.analysis.recover.flow import Flow
from fusetui.analysis.recover.lower import Lowering
from fusetui.analysis.recover.names import Part, parts_of
from fusetui.analysis.recover.sequence import Ints, Slot, runs_of
from fusetui.analysis.recover.shapes import Key, parse_key

if TYPE_CHECKING:
    import polars as pl

    from fusetui.telemetry.header import Header

MAX_OPERATORS: Final = 60
NO_SHAPES: Final = "no input shapes in this capture: record with record_shapes=True"
_LISTED: Final = 50


@dataclass(frozen=True, slots=True)
class Recovery:
    """A recovered capture with the single times behind it.

    samples   by the first operator that ran in an execution, its times in order of time, ns
    """

    captured: Captured
    samples: Mapping[str, Ints]


@dataclass(frozen=True, slots=True)
class _Token:
    """What executions of one name and shape are."""

    name: str
    parts: tuple[Part, ...]
    key: Key

    @property
    def is_view(self) -> bool:
        return bool(self.parts) and self.parts[0].form == "view"


@dataclass(frozen=True, slots=True)
class _Rows:
    """Executions in order of start: token, duration and step (-1: none) of each, (rows,)."""

    tokens: list[_Token]
    token: Ints
    duration: Ints
    request: Ints


def recover(frame: pl.DataFrame, header: Header) -> Recovery | str:
    """See `captured_from`."""
    rows = _rows(frame)
    if not len(rows.token):
        return "no executions in this capture: nothing ran that could be planned"
    plannable = np.array([bool(t.parts and (t.key.operands or t.is_view)) for t in rows.tokens])
    known = np.flatnonzero(plannable[rows.token])
    slots = runs_of(rows.token[known], rows.request[known], rows.duration[known])
    slots = [Slot(slot.token, known[slot.rows]) for slot in slots]
    real = [slot for slot in slots if not rows.tokens[slot.token].is_view]
    if not real:
        with_shape = any(token.key.operands for token in rows.tokens)
        return (
            "no operator in this capture is known to the model: name them as PyTorch or ONNX do"
            if with_shape
            else NO_SHAPES
        )
    dtype = _main_dtype(rows, real)
    window, covered = _window(rows, slots)
    flow = Flow(dtype)
    units = _lower(rows, window, flow)
    if not units:
        return "no operator in this capture has shapes that fit together: record with record_shapes=True"
    try:
        graph = flow.graph(header.source or "capture")
    except AcceleratorError as error:
        return f"the recovered operators make no graph: {error}"
    return _recovery(rows, graph, units, dtype, _notes(rows, slots, window, covered, units))


def _rows(frame: pl.DataFrame) -> _Rows:
    import polars as pl

    picked = [pl.col(name).cast(pl.String).fill_null("") for name in ("name", "shape")]
    request = pl.col("request").fill_null(-1) if "request" in frame.columns else pl.lit(-1).alias("request")
    if "shape" not in frame.columns:
        picked[1] = pl.lit("").alias("shape")
    if "kind" in frame.columns:
        frame = frame.filter(pl.col("kind").cast(pl.String) == "execution")
    frame = frame.filter(pl.col("start_ns").is_not_null() & pl.col("end_ns").is_not_null()).sort("start_ns")
    plain = frame.select(*picked, request.cast(pl.Int64), (pl.col("end_ns") - pl.col("start_ns")).alias("took"))
    words = plain.select("name", "shape").unique(maintain_order=True).with_row_index("token")
    plain = plain.join(words, on=["name", "shape"], how="left", maintain_order="left")
    tokens = [_Token(name, parts_of(name), parse_key(shape)) for _, name, shape in words.iter_rows()]
    return _Rows(
        tokens,
        plain["token"].cast(pl.Int64).to_numpy(),
        plain["took"].cast(pl.Int64).to_numpy(),
        plain["request"].to_numpy(),
    )


def _main_dtype(rows: _Rows, slots: Sequence[Slot]) -> str:
    """The type most time is spent in."""
    time: Counter[str] = Counter()
    for slot in slots:
        kinds = [o.dtype for o in rows.tokens[slot.token].key.operands if o.dtype and not o.integer]
        if kinds:
            time[kinds[0]] += int(rows.duration[slot.rows].sum())
    return time.most_common(1)[0][0] if time else "fp32"


def _window(rows: _Rows, slots: Sequence[Slot]) -> tuple[list[Slot], bool]:
    """The stretch of at most MAX_OPERATORS operators that took most time, and whether that is all of them."""
    sizes = np.array([_size(rows.tokens[slot.token]) for slot in slots])
    time = np.array([float(rows.duration[slot.rows].sum()) for slot in slots])
    if sizes.sum() <= MAX_OPERATORS:
        return list(slots), True
    before, weight = np.concatenate([[0], np.cumsum(sizes)]), np.concatenate([[0.0], np.cumsum(time)])
    ends = np.searchsorted(before, before[:-1] + MAX_OPERATORS, "right") - 1
    start = int(np.argmax(weight[ends] - weight[:-1]))
    return list(slots[start : max(int(ends[start]), start + 1)]), False


def _size(token: _Token) -> int:
    return 0 if token.is_view else sum(3 if part.form == "attention" else 1 for part in token.parts)


_Unit = tuple[tuple[str, ...], Slot]


def _lower(rows: _Rows, slots: Sequence[Slot], flow: Flow) -> list[_Unit]:
    """Operators of each execution, with where it ran."""
    lowering = Lowering(flow)
    units: list[_Unit] = []
    tokens = [rows.tokens[slot.token] for slot in slots]
    for i, (slot, token) in enumerate(zip(slots, tokens, strict=True)):
        following = next((t.key for t in tokens[i + 1 :] if not t.is_view), Key(()))
        names = lowering.add(token.name, token.parts, token.key, following)
        if names:
            units.append((names, slot))
        if len(flow.operators) >= MAX_OPERATORS:
            break
    return units


def _recovery(rows: _Rows, graph: Any, units: Sequence[_Unit], dtype: str, notes: tuple[str, ...]) -> Recovery:
    places = np.full(len(rows.token), -1)
    first: dict[int, int] = {}
    for i, (_, slot) in enumerate(units):
        places[slot.rows] = i
        first.setdefault(slot.token, i)
    home = np.array([first.get(token, -1) for token in range(len(rows.tokens))])
    places = np.where(places < 0, home[rows.token], places)
    samples = {names[0]: rows.duration[places == i] for i, (names, _) in enumerate(units)}
    kernels = {name: rows.tokens[slot.token].name for names, slot in units for name in names}
    left = places < 0
    lost: Counter[str] = Counter()
    for token, took in zip(rows.token[left].tolist(), rows.duration[left].tolist(), strict=True):
        lost[rows.tokens[token].name] += took
    captured = Captured(
        graph=graph,
        measured={name: measured_of(times) for name, times in samples.items()},
        kernels=kernels,
        window_ns=int(rows.duration.sum()),
        explained_ns=int(rows.duration[~left].sum()),
        unexplained=tuple(lost.most_common(_LISTED)),
        dtype=dtype,
        notes=notes,
        together=tuple(names for names, _ in units if len(names) > 1),
    )
    return Recovery(captured, samples)


def measured_of(times: Ints) -> Measured:
    """Nearest-rank quantiles of some times; p95 from 20 of them."""
    ordered = np.sort(times)
    n = len(ordered)

    def rank(q: float) -> int:
        return int(ordered[max(0, int(np.ceil(q * n - 1e-9)) - 1)])

    return Measured(n, rank(0.5), rank(0.95) if n >= 20 else None, int(ordered.sum()))


def _notes(
    rows: _Rows, slots: Sequence[Slot], window: Sequence[Slot], covered: bool, units: Sequence[_Unit]
) -> tuple[str, ...]:
    notes = ["which operator reads which value is told from sizes: equal sizes leave a choice"]
    counts = Counter(len(slot.rows) for _, slot in units)
    fewest, most = min(counts), max(counts)
    if most > 1:
        times = f"{most}" if fewest == most else f"{fewest} to {most}"
        notes.append(f"runs and repeated blocks are shown once: each operator ran {times} times")
    last = {id(slot) for _, slot in units}
    if not covered or len(last) < sum(not rows.tokens[s.token].is_view for s in window):
        whole = sum(not rows.tokens[slot.token].is_view for slot in slots)
        notes.append(f"{len(units)} of {whole} different places of a run are in the graph, the most time in one piece")
    if any(part.form == "attention" for _, slot in units for part in rows.tokens[slot.token].parts):
        notes.append("masks are not recorded: attention is taken to look at every key")
    return tuple(notes)
