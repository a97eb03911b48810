"""XPlane profiles (`*.xplane.pb`, also gzipped) of JAX, TensorFlow and PyTorch/XLA: a protobuf XSpace.

What becomes what: as in `xprof`, of which this is the source. Beside that: the device facts, the host, the versions
and, where the profile says when it began, times since the epoch; programs compiled again are plans of their own.

The names of a plane stand behind its events, so the file is walked once for the names of a plane and once for its
events; a gzipped one goes to a temporary file for that.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import BinaryIO, Final

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.kineto_batches import merged_batches
from fusetui.importers.protowire import LENGTH, Spans
from fusetui.importers.xplane_lines import Reader
from fusetui.importers.xplane_meta import Plane, line_at, plane_at
from fusetui.importers.xprof_rows import DEVICE, HOST, Line, Profile
from fusetui.importers.xprof_sections import STEP_LINE, clock_of, found_in, is_work_line, streamed_planes
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.text import safe_text

NAME: Final = "XPlane profile (JAX, XProf)"

_START = re.compile(rb"\A\x0a[\s\S]{1,12}\x12[\s\S](?:/(?:host|device):|Task Environment)")
_PLANES, _ERRORS, _WARNINGS, _HOSTS = 1, 2, 3, 4
_MOST_PLANES: Final = 4096
_MOST_LINES: Final = 1 << 16
_EPOCH_SINCE_NS: Final = 10**17
_GIB: Final = 1 << 30


def sniff(head: bytes) -> bool:
    """The first field is a plane whose name is that of a host or a device."""
    return bool(_START.match(head))


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a profile. Raises TelemetryError when nothing compiled and no kernel ran in it."""
    with tempfile.TemporaryFile(prefix="fusetui-") as room, ByteStream(path) as source:
        if source.gzipped:
            while part := source.read(1 << 20):
                room.write(part)
            return _read(room, path, memory_bytes, source.damage)
        with path.open("rb", buffering=0) as file:
            return _read(file, path, memory_bytes, "")


def _read(file: BinaryIO, path: Path, memory_bytes: int, damage: str) -> Capture:
    size = file.seek(0, 2)
    spans = Spans(file)
    space = _Space(spans, memory_bytes)
    reached = 0
    for number, wire, at, length in spans.fields(0, size):
        reached = at + length
        if wire == LENGTH:
            space.take(number, at, length)
    notes = [f"{damage}; what came before was read"] if damage else []
    if reached < size or spans.clamped:
        notes.append(f"not readable as a profile from byte {reached:,} on; what came before was read")
    found = found_in(space.profile, space.shift())
    notes += [*space.notes(), *found.notes]
    if not found.sections:
        reason = f" ({'; '.join(notes)})" if notes else ""
        raise TelemetryError(
            str(path), f"{NAME} in which no kernel and no compiled module ran{reason}", "profile some work"
        )
    return Capture(space.header(), merged_batches(found.sections, found.words), notes)


class _Space:
    """The planes of one file."""

    def __init__(self, spans: Spans, memory_bytes: int) -> None:
        self.profile = Profile.within(memory_bytes)
        self._spans = spans
        self._reader = Reader(spans, self.profile)
        self._room = memory_bytes // 8
        self._planes: list[Plane] = []
        self._absolute = False
        self._host: str | None = None
        self._remarks: list[str] = []
        self._full = False

    def take(self, number: int, at: int, size: int) -> None:
        """One field of the space."""
        if number == _PLANES and len(self._planes) < _MOST_PLANES:
            self._take_plane(at, size)
        elif number == _HOSTS and self._host is None:
            self._host = self._text(at, size) or None
        elif number in (_ERRORS, _WARNINGS) and len(self._remarks) < 8:
            self._remarks.append(f"the profiler remarked: {self._text(at, size)}")

    def _take_plane(self, at: int, size: int) -> None:
        plane = plane_at(self._spans, at, size, self._room)
        self._full |= plane.full
        lines = plane.lines if plane.name.startswith((HOST, DEVICE)) else []
        self._reader.enter(plane)
        names = [line_at(self._spans, *line) for line in lines]
        known = [Line(plane.name, name) for name, _ in names]
        streamed = streamed_planes(known)
        for (start, length), line, (_, base_ns) in zip(lines, known, names, strict=True):
            on_host, steps = plane.name.startswith(HOST), line.name == STEP_LINE
            if not on_host and not steps and not is_work_line(line, streamed):
                continue
            if len(self.profile.lines) >= _MOST_LINES:
                self._full = True
                break
            self._absolute |= base_ns >= _EPOCH_SINCE_NS
            self.profile.lines.append(line)
            code = len(self.profile.lines) - 1
            self._reader.take(start, length, code, base_ns, marked_only=on_host, steps=steps)
        # Only the facts are needed from here on.
        plane.lines, plane.event_names, plane.stat_names = [], {}, {}
        self._planes.append(plane)

    def shift(self) -> int | None:
        """What to add to the times as read to get those since the epoch; None when nobody says."""
        if self._absolute:
            return 0
        began = (plane.facts.get("profile_start_time") for plane in self._planes)
        return next((b for b in began if isinstance(b, int) and _EPOCH_SINCE_NS <= b < 4 * 10**18), None)

    def notes(self) -> list[str]:
        notes = list(self._remarks)
        if self._reader.broken:
            notes.append(f"unreadable events skipped: {self._reader.broken:,}")
        if self.profile.left_out:
            notes.append(f"events left out, without usable times: {self.profile.left_out:,}")
        if self._reader.seen == 1_000_000:
            notes.append("exactly 1,000,000 events: some writers stop there without a word, so the end may be missing")
        if self._full or self.profile.names.full or self.profile.plans.full:
            notes.append("too many different names for the memory budget: the rest is left out or reads …")
        return notes

    def header(self) -> Header:
        facts = {
            key: value for plane in self._planes if plane.name.startswith(HOST) for key, value in plane.facts.items()
        }
        return Header(
            source="xplane",
            clock=clock_of(self.shift()),
            host=self._host,
            hardware=dict(filter(None, map(_hardware, self._planes))),
            build={
                name: safe_text(str(facts[name]), 80) for name in ("jax_version", "jaxlib_version") if name in facts
            },
        )

    def _text(self, at: int, size: int) -> str:
        return safe_text(self._spans.bytes_at(at, min(size, 1000)).decode("utf-8", "replace"), 200)


def _hardware(plane: Plane) -> tuple[str, str] | None:
    kind, _, number = plane.name.removeprefix(DEVICE).partition(":")
    if not plane.name.startswith(DEVICE) or not number.isdecimal():
        return None
    facts = plane.facts
    parts = [str(facts.get("device_vendor") or facts.get("device_type_string") or kind)]
    cores, memory = facts.get("core_count"), facts.get("memory_size")
    if isinstance(cores, int):
        parts.append(f"{cores} cores")
    if isinstance(memory, int):
        parts.append(f"{memory / _GIB:.0f} GiB")
    return safe_text(f"device {number}", 40), safe_text(", ".join(parts), 200)
