"""IBM AIU (Spyre) traces: a bare array of Chrome events, with the device's cycle counts TS1 to TS5 beside each.

Every slice is an execution: those of a thread may overlap, so a begin belongs to the end of the same name. Slices that
are written twice count once. What exactly the five cycle counts mark is not published, so no queue wait is made of
them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.chrome import stream_notes
from fusetui.importers.chrome_events import Events
from fusetui.importers.chrome_sections import found_in
from fusetui.importers.chrome_types import CHROME
from fusetui.importers.kineto_batches import merged_batches
from fusetui.importers.kineto_stream import EventStream
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header

NAME: Final = "IBM AIU trace"

_PHASE = re.compile(rb'"ph"\s*:\s*"[BEX]"')
_CYCLES = re.compile(rb'"TS1"\s*:\s*"(?:0x)?[0-9a-fA-F]+"')


def sniff(head: bytes) -> bool:
    """An array of events, of which one of the first has the cycle counts."""
    body = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    return body.startswith(b"[") and bool(_PHASE.search(body) and _CYCLES.search(body))


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a trace. Raises TelemetryError when nothing in it has a time."""
    events = Events(memory_bytes)
    with ByteStream(path) as source:
        stream = EventStream(source, (), CHROME)
        events.take(stream)
    found = found_in(events, flat=True)
    notes = stream_notes(stream, events.seen)
    notes += [f"events left out, {reason}: {count:,}" for reason, count in events.left_out.items() if count]
    if found.overlapping:
        notes.append(f"slices that overlap their predecessor on the same thread: {found.overlapping:,}")
    if not found.sections:
        raise TelemetryError(str(path), f"{NAME} in which nothing has a time", "record some work")
    notes.append("cycle counts TS1 to TS5 are not used: queue wait is not measured")
    return Capture(Header(source="aiu", clock=found.clock), merged_batches(found.sections, found.words), notes)
