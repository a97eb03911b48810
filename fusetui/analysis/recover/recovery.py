"""From the rows of a capture to a graph and the times of its operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fusetui.accelerator.errors import AcceleratorError
from fusetui.analysis.planned import Captured, Measured
from fusetui.analysis.recover.backward import Step, gradient, undone_by
from fusetui.analysis.recover.flow import Flow
from fusetui.analysis.recover.lower import Lowering, heads_last
from fusetui.analysis.recover.names import Part, parts_of
from fusetui.analysis.recover.sequence import Ints, Slot, runs_of
from fusetui.analysis.recover.shapes import Key, parse_key

if TYPE_CHECKING:
    import polars as pl

    from fusetui.telemetry.header import Header

MAX_OPERATORS: Final = 60
NO_SHAPES: Final = "no input shapes in this capture: record with record_shapes=True"
_LISTED: Final = 50
_MATTERS: Final = 0.02
_FASTEST_COPY: Final = 50.0  # bytes per ns of four-byte elements read and written: a reshape that beats it is a view


@dataclass(frozen=True, slots=True)
class Recovery:
    """A recovered capture with the single times behind it.

    samples   by the first operator that ran in an execution, its times in order of time, ns
    """

    captured: Captured
    samples: Mapping[str, Ints]


def _why_not(frame: pl.DataFrame, rows: _Rows) -> str:
    if any(token.key.operands for token in rows.tokens):
        return "no operator in this capture is known to the model: name them as PyTorch or ONNX do"
    keys = frame["shape"].drop_nulls().head(1).to_list() if "shape" in frame.columns else []
    if keys:
        return f"the shapes in this capture are not those of operators ({keys[0]}): plan a block of the model instead"
    return NO_SHAPES


@dataclass(frozen=True, slots=True)
class _Token:
    """What executions of one name and shape are. `undoes`: the form of the forward operator, of a backward node."""

    name: str
    parts: tuple[Part, ...]
    key: Key
    undoes: str

    @property
    def is_view(self) -> bool:
        return bool(self.parts) and self.parts[0].form == "view"

    @property
    def plannable(self) -> bool:
        return bool(self.undoes or self.is_view or (self.parts and self.key.operands))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Executions in order of start: token, duration and step (-1: none) of each, (rows,)."""

    tokens: list[_Token]
    token: Ints
    duration: Ints
    request: Ints


def recover(frame: pl.DataFrame, header: Header, *, opened: bool = False) -> Recovery | str:
    """See `captured_from`. `opened`: the operators inside backward nodes are rows too, so that nodes are overhead."""
    rows = _rows(frame, opened)
    if not len(rows.token):
        return "no executions in this capture: nothing ran that could be planned"
    plannable = np.array([token.plannable for token in rows.tokens])
    known = np.flatnonzero(plannable[rows.token])
    slots = runs_of(rows.token[known], rows.request[known], rows.duration[known])
    slots = [Slot(slot.token, known[slot.rows]) for slot in slots]
    real = [slot for slot in slots if not rows.tokens[slot.token].is_view]
    if not real:
        return _why_not(frame, rows)
    dtype = _main_dtype(rows, real)
    flow, units, places = _graph_of(rows, slots, dtype)
    if not units:
        return "no operator in this capture has shapes that fit together: record with record_shapes=True"
    try:
        graph = flow.graph(header.source or "capture")
    except AcceleratorError as error:
        return f"the recovered operators make no graph: {error}"
    return _recovery(rows, graph, units, dtype, _notes(rows, real, places, units))


def _rows(frame: pl.DataFrame, opened: bool) -> _Rows:
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
    token, took = plain["token"].cast(pl.Int64).to_numpy(), plain["took"].cast(pl.Int64).to_numpy()
    mean = np.bincount(token, took, words.height) / np.maximum(np.bincount(token, minlength=words.height), 1)
    tokens = [_token(name, shape, mean[i], opened) for i, name, shape in words.iter_rows()]
    return _Rows(tokens, token, took, plain["request"].to_numpy())


def _token(name: str, shape: str, mean_ns: float, opened: bool) -> _Token:
    key, node = parse_key(shape), undone_by(name)
    parts = () if node else parts_of(name)
    moved = 8 * max((operand.points for operand in key.operands), default=0)
    if name == "aten::reshape" and moved > _FASTEST_COPY * mean_ns:
        parts = parts_of("aten::view")
    return _Token(name, parts, key, "" if opened else node)


def _main_dtype(rows: _Rows, slots: Sequence[Slot]) -> str:
    """The type most time is spent in."""
    time: Counter[str] = Counter()
    for slot in slots:
        kinds = [o.dtype for o in rows.tokens[slot.token].key.operands if o.dtype and not o.integer]
        if kinds:
            time[kinds[0]] += int(rows.duration[slot.rows].sum())
    return time.most_common(1)[0][0] if time else "fp32"


def _window(rows: _Rows, slots: Sequence[Slot], room: int) -> list[Slot]:
    """The stretch of at most `room` operators that took most time."""
    sizes = np.array([_size(rows.tokens[slot.token]) for slot in slots])
    time = np.array([float(rows.duration[slot.rows].sum()) for slot in slots])
    if sizes.sum() <= room:
        return list(slots)
    before, weight = np.concatenate([[0], np.cumsum(sizes)]), np.concatenate([[0.0], np.cumsum(time)])
    ends = np.searchsorted(before, before[:-1] + room, "right") - 1
    start = int(np.argmax(weight[ends] - weight[:-1]))
    return list(slots[start : max(int(ends[start]), start + 1)])


def _size(token: _Token) -> int:
    if token.undoes:
        return {"product": 2, "attention": 5}.get(token.undoes, 1)
    return 0 if token.is_view else sum(3 if part.form == "attention" else 1 for part in token.parts)


_Unit = tuple[tuple[str, ...], Slot]


def _graph_of(rows: _Rows, slots: Sequence[Slot], dtype: str) -> tuple[Flow, list[_Unit], int]:
    """The graph of the stretch that takes most time and fits, its executions, and how many places it is of."""
    flow, units, places = Flow(dtype), list[_Unit](), 0
    for room in (MAX_OPERATORS, *range(MAX_OPERATORS - 10, 10, -10)):
        window = _window(rows, slots, room)
        flow = Flow(dtype)
        units = _lower(rows, window, flow)
        places = sum(not rows.tokens[slot.token].is_view for slot in window)
        if flow.work <= MAX_OPERATORS:
            break
    return flow, units, places


def _lower(rows: _Rows, slots: Sequence[Slot], flow: Flow) -> list[_Unit]:
    """Operators of each execution, with where it ran."""
    lowering = Lowering(flow)
    units: list[_Unit] = []
    done: list[_Token] = []
    tokens = [rows.tokens[slot.token] for slot in slots]
    for i, (slot, token) in enumerate(zip(slots, tokens, strict=True)):
        if token.is_view:
            for operand in token.key.operands[:1]:
                flow.view_taken(operand)
            continue
        following = next((t.key for t in tokens[i + 1 :] if not t.is_view), Key(()))
        steps: list[Step] = [
            (part, token.key if at == 0 or part.form == "for weight" else None) for at, part in enumerate(token.parts)
        ]
        if token.undoes:
            steps = _undone(token, done)
        else:
            done.append(token)
        names = lowering.add(token.name, steps, following)
        if names:
            units.append((names, slot))
        if flow.work > MAX_OPERATORS:
            break
    return units


def _undone(token: _Token, done: list[_Token]) -> list[Step]:
    """Steps of a backward node: the latest forward operator of its kind is taken off `done`."""
    for at in range(len(done) - 1, -1, -1):
        if done[at].parts[0].form == token.undoes:
            forward = done.pop(at)
            return gradient(forward.parts[0], forward.key, heads_last=heads_last(forward.name))
    return []


def _recovery(rows: _Rows, graph: Any, units: Sequence[_Unit], dtype: str, notes: tuple[str, ...]) -> Recovery:
    places = np.full(len(rows.token), -1)
    first: dict[int, int] = {}
    for i, (_, slot) in enumerate(units):
        places[slot.rows] = i
        if not rows.tokens[slot.token].undoes:  # the same node of another step undoes other shapes
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


def _notes(rows: _Rows, real: Sequence[Slot], places: int, units: Sequence[_Unit]) -> tuple[str, ...]:
    """`real`: the places of one run that the model knows, `places`: of how many of them the graph is."""
    notes = ["which operator reads which value is told from sizes: equal sizes leave a choice"]
    counts = [len(slot.rows) for _, slot in units]
    if max(counts) > 1:
        times = f"{max(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
        notes.append(f"runs and repeated blocks are shown once: each operator ran {times} times")
    if places < len(real):
        notes.append(f"{places} of the {len(real)} places of a run are in the graph: the stretch that took most time")
    tokens = [rows.tokens[slot.token] for _, slot in units]
    if any(part.form == "attention" for token in tokens for part in token.parts):
        notes.append("masks are not recorded: attention is taken to look at every key")
    if any(token.undoes for token in tokens):
        notes.append("nodes of the backward pass have the sizes of the forward operator they undo")
    if note := _shapeless_note(rows):
        notes.append(note)
    if note := _steps_note(rows, units):
        notes.append(note)
    if any(token.name.startswith("Torch-Compiled Region") for token in rows.tokens):
        notes.append("compiled loops leave no event on a host: their time is that of the region between operators")
    return tuple(notes)


def _shapeless_note(rows: _Rows) -> str:
    """How much time ran without shapes, when it is enough to matter."""
    bare = np.array([not (token.key.operands or token.is_view or token.undoes) for token in rows.tokens])
    share = rows.duration[bare[rows.token]].sum() / max(1, rows.duration.sum())
    if share < _MATTERS:
        return ""
    return (
        f"{share:.0%} of the time has no input shapes (replayed graphs, compilations, calls outside of operators): "
        "record eager runs with record_shapes=True"
    )


def _steps_note(rows: _Rows, units: Sequence[_Unit]) -> str:
    """How many steps had the sizes of the graph, when others had not."""
    mine = np.unique(rows.request[np.concatenate([slot.rows for _, slot in units])])
    mine = mine[mine >= 0]
    steps = np.unique(rows.request[rows.request >= 0]).size
    if not 0 < len(mine) < steps:
        return ""
    within = np.isin(rows.request, mine)
    share = rows.duration[within].sum() / max(1, rows.duration.sum())
    return f"{len(mine)} of {steps} steps have these sizes and took {share:.0%} of the time; the others are left out"
