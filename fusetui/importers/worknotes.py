"""What the join of work with its launch calls says about a capture, one line each."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusetui.importers.kineto_join import Ints, overlaps


def work_notes(work: Any, calls: Any, launch: Ints, nodes: Ints) -> list[str]:
    """Orphans, clipped waits, clock errors and overlaps, each with its count.

    launch  row in `calls` that launched each row of `work`, -1 for none
    nodes   position in a graph launch, -1 for none
    """
    notes = []
    joined = launch >= 0
    together = int(joined.sum())
    if len(calls) and together < len(work):
        notes.append(f"device work without its launch call in the capture: {len(work) - together:,} of {len(work):,}")
    if together:
        by, start = launch[joined], work["start"][joined]
        # Later nodes of a graph do not wait for the call.
        waits = nodes[joined] <= 0
        clipped = int((waits & (start < calls["end"][by])).sum())
        if clipped:
            notes.append(f"device work that began before its launch call returned, wait 0: {clipped:,} of {together:,}")
        wrong = int((start < calls["start"][by]).sum())
        if wrong:
            notes.append(f"device work that began before its launch call did (clock error): {wrong:,}")
    if graph := int(np.count_nonzero(nodes >= 0)):
        notes.append(graph_note(graph))
    queued = work if bool((work["stream"] >= 0).all()) else work[work["stream"] >= 0]
    if overlapping := overlaps(queued):
        notes.append(f"device work that overlaps its predecessor on the same stream: {overlapping:,}")
    return notes


def graph_note(nodes: int) -> str:
    """What graph launches do to waits and to idle time."""
    return (
        f"device work of graph launches, only the first of a stream waits: {nodes:,}; "
        "idle time between the others may be false, as profilers miss kernels of a replay"
    )
