"""Perfetto traces (`*.pftrace`, `*.perfetto-trace`): the track events in a protobuf stream of packets.

What becomes what: as in `chrome`. Slices of a track are executions, instants marks, counters counters. Data sources
other than track events (scheduling, heaps, ftrace) are passed over, and so are flows and compressed packets.
Times count from the epoch where a clock snapshot says how the trace's clock relates to it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.chrome import track_notes
from fusetui.importers.chrome_events import Events
from fusetui.importers.chrome_sections import found_in
from fusetui.importers.kineto_batches import merged_batches
from fusetui.importers.perfetto_packets import Packets
from fusetui.importers.protowire import fields_of, pieces
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header

NAME: Final = "Perfetto trace"

_WINDOW: Final = 1 << 20
_MAX_PACKET: Final = 64 << 20
_PACKET: Final = 1
_TAGS: Final = frozenset({6, 8, 10, 11, 12, 13, 33, 36, 58, 59, 60, 79, 89, 90})


def sniff(head: bytes) -> bool:
    """A stream of packets of which the first ones have fields that packets have."""
    if not head.startswith(b"\x0a"):
        return False
    start_of = head[: 1 << 16]
    starts, sizes, used = pieces(start_of, _PACKET, False)
    ends = [start + size for start, size in zip(starts, sizes, strict=True)]
    if not ends or (len(ends) == 1 and used < len(start_of)):
        return False
    if any(start_of[end : end + 1] not in (b"\x0a", b"") for end in ends[:8]):
        return False
    few = fields_of(np.frombuffer(start_of, np.uint8), np.array(starts[:8], np.int64), np.array(sizes[:8], np.int64))
    # An XPlane profile, too, is a stream of field 1; its planes begin with an id (1) or a name (2).
    return bool(len(few.number)) and not few.broken.any() and int(few.number[0]) in _TAGS


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a trace. Raises TelemetryError when it has no track event with a time."""
    events = Events(memory_bytes)
    packets = Packets(events)
    notes: list[str] = []
    with ByteStream(path) as source:
        carry = b""
        while True:
            chunk = source.read(max(_WINDOW, len(carry)))
            data = carry + chunk
            starts, sizes, used = pieces(data, _PACKET, not chunk)
            packets.take(data, starts, sizes)
            carry = data[used:]
            if not chunk:
                break
            if len(carry) > _MAX_PACKET:
                notes.append(f"a packet of over {_MAX_PACKET >> 20} MiB: what came before was read")
                break
        notes += [f"{source.damage}; what came before was read"] if source.damage else []
    if packets.broken:
        notes.append(f"packets that end badly: {packets.broken:,}")
    notes += [f"{reason} left out: {count:,}" for reason, count in packets.left_out.items()]
    found = found_in(events)
    notes += track_notes(events, found)
    if not found.sections:
        reason = f" ({'; '.join(notes)})" if notes else ""
        raise TelemetryError(str(path), f"{NAME} without one track event{reason}", "record the track_event source")
    header = Header(source="perfetto", clock=found.clock)
    return Capture(header, merged_batches(found.sections, found.words), notes)
