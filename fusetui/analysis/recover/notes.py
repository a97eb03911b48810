"""What a recovered graph leaves out, and what was assumed to make it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from fusetui.analysis.recover.executions import Executions
from fusetui.analysis.recover.sequence import Slot, Unit

REGION: Final = "Torch-Compiled Region"
_MATTERS: Final = 0.02


def notes_of(rows: Executions, real: Sequence[Slot], places: int, units: Sequence[Unit]) -> tuple[str, ...]:
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
    if rows.devices > 1:
        notes.append(f"the busiest of {rows.devices} devices is shown")
    if note := _shapeless_note(rows):
        notes.append(note)
    if note := _steps_note(rows, units):
        notes.append(note)
    if any(token.name.startswith(REGION) for token in rows.tokens):
        notes.append("compiled loops leave no event on a host: their time is that of the region between operators")
    return tuple(notes)


def _shapeless_note(rows: Executions) -> str:
    """How much time ran without shapes, when it is enough to matter."""
    bare = np.array([not (token.key.operands or token.is_view or token.undoes) for token in rows.tokens])
    share = rows.duration[bare[rows.token]].sum() / max(1, rows.duration.sum())
    if share < _MATTERS:
        return ""
    return (
        f"{share:.0%} of the time has no input shapes (replayed graphs, compilations, calls outside of operators): "
        "record eager runs with record_shapes=True"
    )


def _steps_note(rows: Executions, units: Sequence[Unit]) -> str:
    """How many steps had the sizes of the graph, when others had not."""
    mine = np.unique(rows.request[np.concatenate([slot.rows for _, slot in units])])
    mine = mine[mine >= 0]
    steps = np.unique(rows.request[rows.request >= 0]).size
    if not 0 < len(mine) < steps:
        return ""
    within = np.isin(rows.request, mine)
    share = rows.duration[within].sum() / max(1, rows.duration.sum())
    return f"{len(mine)} of {steps} steps have these sizes and took {share:.0%} of the time; the others are left out"
