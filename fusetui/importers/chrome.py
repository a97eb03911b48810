"""Chrome traces of any profiler (Trace Event Format): a JSON array of events, or an object with `traceEvents`.

What becomes what
- Slices (X, or B with E) are executions. Where the name of a process or thread says that tracks are a device's, only
  those are; else every track is, and of slices in one another only the outermost, so that busy time is counted once.
- Instants are marks, counters are counters; the stream is the thread, with its process where there are several.
The format has no rule for what a launch is, so there is no queue wait; flows and asynchronous slices are left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.chrome_events import Events
from fusetui.importers.chrome_sections import Found, found_in
from fusetui.importers.chrome_types import CHROME
from fusetui.importers.kineto_batches import merged_batches
from fusetui.importers.kineto_stream import EventStream
from fusetui.importers.kineto_times import MAX_NS
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.tracknames import BASE_KEY

NAME: Final = "Chrome trace (JSON)"
GENERIC: Final = True
"""Profilers that write this format have importers of their own, which are asked first."""

EVENT_CAP: Final = 1_000_000
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*[\[{]')
_PHASE = re.compile(rb'"ph"\s*:\s*"')


def sniff(head: bytes) -> bool:
    """An object with an event array, or an array of objects with a phase."""
    body = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if body.startswith(b"{"):
        return bool(_EVENTS.search(body))
    return body.startswith(b"[") and bool(_PHASE.search(body))


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a trace. Raises TelemetryError when nothing in it has a time."""
    events = Events(memory_bytes)
    with ByteStream(path) as source:
        stream = EventStream(source, (), CHROME)
        events.take(stream)
    found = found_in(events, base_ns=_base_ns(stream.top.get("otherData")))
    notes = [*stream_notes(stream, events.seen), *track_notes(events, found)]
    if not found.sections:
        reason = "; ".join(notes) or "no events"
        raise TelemetryError(str(path), f"{NAME} in which nothing has a time ({reason})", "record some work")
    header = Header(source="chrome-trace", clock=found.clock)
    return Capture(header, merged_batches(found.sections, found.words), notes)


def _base_ns(other: object) -> int | None:
    """What `fusetui export` says the times count from."""
    text = other.get(BASE_KEY) if isinstance(other, dict) else None
    if not isinstance(text, str) or not text.isascii() or not text.isdecimal() or len(text) > 19:
        return None
    return min(int(text), MAX_NS)


def stream_notes(stream: EventStream, seen: int) -> list[str]:
    """What is broken or cut in the file."""
    damage = stream.damage
    notes = [f"{ending}; what came before was read" for ending in damage.endings]
    if damage.broken:
        notes.append(f"unreadable events skipped: {damage.broken:,}")
    if damage.mended:
        notes.append(f"events that are not proper JSON, mended: {damage.mended:,}")
    if seen == EVENT_CAP:
        notes.append("exactly 1,000,000 events: some writers stop there without a word, so the end may be missing")
    return notes


def track_notes(events: Events, found: Found) -> list[str]:
    """What was left out of the tracks, and what they do not tell."""
    notes = [f"events left out, {reason}: {count:,}" for reason, count in events.left_out.items() if count]
    if found.host_slices:
        notes.append(f"slices of host threads left out, device tracks are shown: {found.host_slices:,}")
    if found.nested:
        notes.append(f"slices inside others of their thread left out: {found.nested:,}")
    if found.overlapping:
        notes.append(f"slices that overlap their predecessor on the same track: {found.overlapping:,}")
    if found.sections:
        notes.append("no enqueue times in this format: queue wait is not measured")
    if events.names.full or events.tracks.full:
        notes.append("too many different texts for the memory budget: the rest of them read …")
    return notes
