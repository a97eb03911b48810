"""From the rows of a capture to a graph and the times of its operators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.graph import Graph
from fusetui.analysis.planned import Captured, Measured
from fusetui.analysis.recover.backward import Step, gradient
from fusetui.analysis.recover.device import hardware_of
from fusetui.analysis.recover.executions import Executions, Token, executions_of
from fusetui.analysis.recover.flow import Flow
from fusetui.analysis.recover.lower import Lowering, heads_last
from fusetui.analysis.recover.notes import REGION, notes_of
from fusetui.analysis.recover.sequence import Ints, Slot, Unit, runs_of

if TYPE_CHECKING:
    import polars as pl

    from fusetui.telemetry.header import Header

MAX_OPERATORS: Final = 60
NO_SHAPES: Final = "no input shapes in this capture: record with record_shapes=True"
_LISTED: Final = 50
_AHEAD: Final = 8  # a convolution's result is read by then: layout copies and a bias come before its reader


@dataclass(frozen=True, slots=True)
class Recovery:
    """A recovered capture with the single times behind it.

    samples   by the first operator that ran in an execution, its times in order of time, ns
    """

    captured: Captured
    samples: Mapping[str, Ints]


def _why_not(frame: pl.DataFrame, rows: Executions) -> str:
    if any(token.name.startswith(REGION) for token in rows.tokens):
        return "only compiled regions are rows here: `fusetui plan CAPTURE` reads the operators inside of them"
    if any(token.key.operands for token in rows.tokens):
        return "no operator in this capture is known to the model: name them as PyTorch or ONNX do"
    keys = frame["shape"].drop_nulls().head(1).to_list() if "shape" in frame.columns else []
    if keys:
        return f"the shapes in this capture are not those of operators ({keys[0]}): plan a block of the model instead"
    return NO_SHAPES


def recover(frame: pl.DataFrame, header: Header, *, opened: bool = False) -> Recovery | str:
    """See `captured_from`. `opened`: the operators inside backward nodes are rows too, so that nodes are overhead."""
    rows = executions_of(frame, opened=opened)
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
    found = _recovery(rows, graph, units, dtype, notes_of(rows, real, places, units))
    return replace(found, captured=replace(found.captured, hardware=hardware_of(header)))


def _main_dtype(rows: Executions, slots: Sequence[Slot]) -> str:
    """The type most time is spent in."""
    time: Counter[str] = Counter()
    for slot in slots:
        kinds = [o.dtype for o in rows.tokens[slot.token].key.operands if o.dtype and not o.integer]
        if kinds:
            time[kinds[0]] += int(rows.duration[slot.rows].sum())
    return time.most_common(1)[0][0] if time else "fp32"


def _window(rows: Executions, slots: Sequence[Slot], room: int) -> list[Slot]:
    """The stretch of at most `room` operators that took most time."""
    sizes = np.array([_size(rows.tokens[slot.token]) for slot in slots])
    time = np.array([float(rows.duration[slot.rows].sum()) for slot in slots])
    if sizes.sum() <= room:
        return list(slots)
    before, weight = np.concatenate([[0], np.cumsum(sizes)]), np.concatenate([[0.0], np.cumsum(time)])
    ends = np.searchsorted(before, before[:-1] + room, "right") - 1
    start = int(np.argmax(weight[ends] - weight[:-1]))
    return list(slots[start : max(int(ends[start]), start + 1)])


def _size(token: Token) -> int:
    if token.undoes:
        return {"product": 2, "attention": 5}.get(token.undoes, 1)
    return 0 if token.is_view else sum(3 if part.form == "attention" else 1 for part in token.parts)


def _graph_of(rows: Executions, slots: Sequence[Slot], dtype: str) -> tuple[Flow, list[Unit], int]:
    """The graph of the stretch that takes most time and fits, its executions, and how many places it is of."""
    flow, units, places = Flow(dtype), list[Unit](), 0
    for room in (MAX_OPERATORS, *range(MAX_OPERATORS - 10, 10, -10)):
        window = _window(rows, slots, room)
        flow = Flow(dtype)
        units = _lower(rows, window, flow)
        places = sum(not rows.tokens[slot.token].is_view for slot in window)
        if flow.work <= MAX_OPERATORS:
            break
    return flow, units, places


def _lower(rows: Executions, slots: Sequence[Slot], flow: Flow) -> list[Unit]:
    """Operators of each execution, with where it ran."""
    lowering = Lowering(flow)
    units: list[Unit] = []
    done: list[Token] = []
    tokens = [rows.tokens[slot.token] for slot in slots]
    for i, (slot, token) in enumerate(zip(slots, tokens, strict=True)):
        if token.is_view:
            for operand in token.key.operands[:1]:
                flow.view_taken(operand)
            continue
        following = [t.key for t in tokens[i + 1 : i + 1 + _AHEAD]]
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


def _undone(token: Token, done: list[Token]) -> list[Step]:
    """Steps of a backward node: the latest forward operator of its kind is taken off `done`."""
    for at in range(len(done) - 1, -1, -1):
        if done[at].parts[0].form == token.undoes:
            forward = done.pop(at)
            return gradient(forward.parts[0], forward.key, heads_last=heads_last(forward.name))
    return []


def _recovery(rows: Executions, graph: Graph, units: Sequence[Unit], dtype: str, notes: tuple[str, ...]) -> Recovery:
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
    by_token = np.zeros(len(rows.tokens), np.int64)
    np.add.at(by_token, rows.token[left], rows.duration[left])
    gone = np.bincount(rows.token[left], minlength=len(rows.tokens))
    for token in np.flatnonzero(gone):
        lost[rows.tokens[token].name] += int(by_token[token])
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
