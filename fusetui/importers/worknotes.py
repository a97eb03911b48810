"""What the join of work with its launch calls says about a capture, one line each."""

from __future__ import annotations

from fusetui.importers.launchjoin import LaunchJoin


def work_notes(join: LaunchJoin) -> list[str]:
    """Orphans, clipped waits, clock errors and overlaps of what was joined, each with its count."""
    notes = []
    if join.calls and join.together < join.pieces:
        orphans = f"{join.pieces - join.together:,} of {join.pieces:,}"
        notes.append(f"device work without its launch call in the capture: {orphans}")
    if join.clipped:
        clipped = f"{join.clipped:,} of {join.together:,}"
        notes.append(f"device work that began before its launch call returned, wait 0: {clipped}")
    if join.wrong:
        notes.append(f"device work that began before its launch call did (clock error): {join.wrong:,}")
    if join.in_graphs:
        notes.append(graph_note(join.in_graphs))
    if join.overlapping:
        notes.append(overlap_note(join.overlapping))
    return notes


def overlap_note(pieces: int) -> str:
    """What work beside other work on one stream says of the capture."""
    return f"device work that overlaps its predecessor on the same stream: {pieces:,}"


def graph_note(nodes: int) -> str:
    """What graph launches do to waits and to idle time."""
    return (
        f"device work of graph launches, only the first of a stream waits: {nodes:,}; "
        "idle time between the others may be false, as profilers miss kernels of a replay"
    )
