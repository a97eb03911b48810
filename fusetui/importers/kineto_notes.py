"""What is missing, broken or cut in a Kineto capture, one line each."""

from __future__ import annotations

import numpy as np

from fusetui.importers.kineto_events import Events
from fusetui.importers.kineto_join import graph_nodes, launch_of, outermost, overlaps
from fusetui.importers.kineto_stream import EventStream
from fusetui.importers.worknotes import graph_note


def notes_of(events: Events, stream: EventStream) -> list[str]:
    """Every loss and peculiarity of the capture as a countable remark."""
    damage = stream.damage
    notes = [_sentence(ending) for ending in damage.endings]
    if damage.broken:
        notes.append(f"unreadable events skipped: {damage.broken:,}")
    if damage.mended:
        notes.append(f"events that are not proper JSON, mended: {damage.mended:,}")
    notes += [f"events {reason} left out: {count:,}" for reason, count in events.left_out.items() if count]
    notes += _work(events)
    if any(words.full for words in (events.names, events.streams, events.shapes)):
        notes.append("too many different texts for the memory budget: the rest of them read …")
    return notes


def _work(events: Events) -> list[str]:
    device = events.device.table()
    if not len(device):
        operators = events.host_operators.table()
        if not len(operators):
            return []
        nested = len(operators) - int(outermost(operators).sum())
        return [f"no device work in it: outermost host operators are shown, nested ones left out: {nested:,}"]
    notes = []
    launch = launch_of(device, events.launches.table())
    orphans = int((launch < 0).sum())
    if orphans:
        notes.append(f"device work without its launch call in the capture: {orphans:,} of {len(device):,}")
    overlapping = overlaps(device)
    if overlapping:
        notes.append(f"device work that overlaps its predecessor on the same stream: {overlapping:,}")
    if nodes := int(np.count_nonzero(graph_nodes(device, launch) >= 0)):
        notes.append(graph_note(nodes))
    replays = np.unique(events.graph_launches.table()["correlation"])
    if bare := len(replays) - int(np.isin(replays, device["correlation"]).sum()):
        notes.append(
            f"graph launches without any device work in the capture: {bare:,} of {len(replays):,}; "
            "the device may have run them while it seems idle"
        )
    return notes


def _sentence(text: str) -> str:
    return f"{text}; what came before was read"
