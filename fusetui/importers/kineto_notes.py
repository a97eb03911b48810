"""What is missing, broken or cut in a Kineto capture, one line each."""

from __future__ import annotations

from collections.abc import Sequence

from fusetui.importers.kineto_events import Events
from fusetui.importers.kineto_stream import EventStream
from fusetui.importers.kineto_work import Replays
from fusetui.importers.launchjoin import LaunchJoin
from fusetui.importers.worknotes import graph_note, overlap_note


def notes_of(events: Events, stream: EventStream, ran: Sequence[str]) -> list[str]:
    """Every loss and peculiarity of the capture as a countable remark; `ran`: those on the work in it."""
    damage = stream.damage
    notes = [_sentence(ending) for ending in damage.endings]
    if damage.broken:
        notes.append(f"unreadable events skipped: {damage.broken:,}")
    if damage.mended:
        notes.append(f"events that are not proper JSON, mended: {damage.mended:,}")
    notes += [f"events {reason} left out: {count:,}" for reason, count in events.left_out.items() if count]
    notes += ran
    if any(words.full for words in (events.names, events.streams, events.shapes)):
        notes.append("too many different texts for the memory budget: the rest of them read …")
    return notes


def device_notes(join: LaunchJoin, replays: Replays) -> list[str]:
    """What the join of device work says."""
    notes = []
    if orphans := join.pieces - join.together:
        notes.append(f"device work without its launch call in the capture: {orphans:,} of {join.pieces:,}")
    if join.overlapping:
        notes.append(overlap_note(join.overlapping))
    if join.in_graphs:
        notes.append(graph_note(join.in_graphs))
    if bare := replays.count - replays.answered:
        notes.append(
            f"graph launches without any device work in the capture: {bare:,} of {replays.count:,}; "
            "the device may have run them while it seems idle"
        )
    return notes


def host_note(nested: int) -> str:
    """What is shown of a capture without device work."""
    return f"no device work in it: outermost host operators are shown, nested ones left out: {nested:,}"


def _sentence(text: str) -> str:
    return f"{text}; what came before was read"
