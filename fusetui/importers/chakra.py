"""Chakra execution traces (`.et`): a metadata message, then one protobuf message per node, each behind its length.

Nodes with a start are executions. Traces made for a simulator have none: their nodes are marks at time 0, in file
order. A node that sends, receives or is a collective has its size as shape key.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.kineto_batches import Columns, Section, merged_batches
from fusetui.importers.protowire import LENGTH, VARINT, Fields, fields_of
from fusetui.importers.rows import Words
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import EXECUTION, MARK

NAME: Final = "Chakra execution trace"

_NAME, _TYPE, _START_US, _DURATION_US, _ATTRIBUTE = 2, 3, 6, 7, 10
_ATTRIBUTE_NAME, _INT64, _UINT64, _BOOL = 1, 9, 13, 27
_TYPES: Final = ("node", "metadata", "load", "store", "compute", "send", "receive", "collective")
_CHUNK: Final = 1 << 20
_MAX_US: Final = 4 * 10**15
_HOST, _DEVICE = "operators of the host", "operators of the device"

Ints = npt.NDArray[np.int64]


def sniff(head: bytes) -> bool:
    """A message that names a Chakra schema, near the beginning."""
    return b"{" not in head[:1] and b"-chakra." in head[:512] and b"schema" in head[:64]


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a trace. Raises TelemetryError when there is no node in it."""
    data, notes = _bytes(path, memory_bytes // 8)
    starts, sizes, whole = _messages(data)
    nodes = fields_of(np.frombuffer(data, np.uint8), starts[1:], sizes[1:])
    if not len(nodes.broken):
        raise TelemetryError(str(path), f"{NAME} without one whole node")
    if not whole:
        notes.append("the end of the file is missing: later nodes are not in it")
    if nodes.broken.any():
        notes.append(f"nodes that could only be read in part: {int(nodes.broken.sum()):,}")
    words = {"name": Words(memory_bytes // 16), "shape": Words(memory_bytes // 16), "stream": Words(1 << 16)}
    columns = _words(data, nodes, words)
    start, took = (_whole(nodes.last(number, VARINT)) for number in (_START_US, _DURATION_US))
    timed = (start > 0) & (start <= _MAX_US) & (took <= _MAX_US - start)
    clock_zero = int(start[timed].min()) if timed.any() else 0
    sections = _sections(columns, (start - clock_zero) * 1000, took * 1000, timed)
    notes += _notes(timed, took)
    texts: dict[str, list[str | None]] = {name: [*found.texts()] for name, found in words.items()}
    return Capture(Header(source="chakra", clock="trace"), merged_batches(sections, texts), notes)


def _bytes(path: Path, room: int) -> tuple[bytes, list[str]]:
    with ByteStream(path) as stream:
        parts: list[bytes] = []
        while room > 0 and (part := stream.read(_CHUNK)):
            parts.append(part)
            room -= len(part)
        notes = [stream.damage] if stream.damage else []
    if room <= 0:
        notes.append("only the beginning was read: more does not fit in --memory")
    return b"".join(parts), notes


def _messages(data: bytes) -> tuple[Ints, Ints, bool]:
    """Starts and sizes of the whole messages, and whether the file ends with one."""
    starts: list[int] = []
    sizes: list[int] = []
    at, end = 0, len(data)
    while at < end:
        size, shift = 0, 0
        while at < end and shift < 35:
            byte = data[at]
            at, size, shift = at + 1, size | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                break
        else:
            return np.array(starts, np.int64), np.array(sizes, np.int64), False
        if at + size > end:
            return np.array(starts, np.int64), np.array(sizes, np.int64), False
        starts.append(at)
        sizes.append(size)
        at += size
    return np.array(starts, np.int64), np.array(sizes, np.int64), True


def _words(data: bytes, nodes: Fields, words: dict[str, Words]) -> dict[str, Ints]:
    """Codes of name, shape and stream per node; -1 where there is none."""
    count = len(nodes.broken)
    owner, at, size = nodes.only(_NAME, LENGTH)
    types = np.minimum(nodes.last(_TYPE, VARINT), len(_TYPES) - 1).astype(np.int64).tolist()
    names = [_TYPES[kind] for kind in types]
    for node, start, length in zip(owner.tolist(), at.tolist(), size.tolist(), strict=True):
        if length:
            names[node] = data[start : start + length].decode("utf-8", "replace")
    shape, stream = np.full(count, -1), np.full(count, -1)
    for node, key, value in _attributes(data, nodes):
        if key == b"comm_size":
            shape[node] = words["shape"][f"bytes={value}"]
        elif key == b"is_cpu_op":
            stream[node] = words["stream"][_HOST if value else _DEVICE]
    return {"name": words["name"].codes(names).astype(np.int64), "shape": shape, "stream": stream}


def _attributes(data: bytes, nodes: Fields) -> list[tuple[int, bytes, int]]:
    """(node, name, value) of the attributes that are whole numbers or truths."""
    owner, at, size = nodes.only(_ATTRIBUTE, LENGTH)
    inner = fields_of(np.frombuffer(data, np.uint8), at.astype(np.int64), size)
    value = np.maximum.reduce([inner.last(number, VARINT) for number in (_INT64, _UINT64, _BOOL)])
    which, start, length = inner.only(_ATTRIBUTE_NAME, LENGTH)
    return [
        (int(owner[i]), data[s : s + n], int(value[i]))
        for i, s, n in zip(which.tolist(), start.tolist(), length.tolist(), strict=True)
    ]


def _sections(columns: dict[str, Ints], start: Ints, took: Ints, timed: npt.NDArray[np.bool_]) -> list[Section]:
    ran, bare = np.flatnonzero(timed), np.flatnonzero(~timed)

    def executions(picked: Ints) -> Columns:
        rows = ran[picked]
        return {**_of(columns, rows), "start_ns": start[rows], "end_ns": start[rows] + took[rows]}

    def marks(picked: Ints) -> Columns:
        nothing = np.zeros(len(picked), np.int64)
        return {**_of(columns, bare[picked]), "start_ns": nothing, "end_ns": nothing}

    found = [
        Section(EXECUTION, start[ran] + took[ran], executions),
        Section(MARK, np.zeros(len(bare), np.int64), marks),
    ]
    return [section for section in found if len(section.end)]


def _of(columns: dict[str, Ints], rows: Ints) -> Columns:
    return {name: values[rows] for name, values in columns.items()}


def _whole(values: npt.NDArray[np.uint64]) -> Ints:
    return np.minimum(values, np.uint64(_MAX_US + 1)).astype(np.int64)


def _notes(timed: npt.NDArray[np.bool_], took: Ints) -> list[str]:
    if timed.all():
        return []
    lasting = int(((took > 0) & ~timed).sum())
    told = f", {lasting:,} of them a duration" if lasting else ""
    return [
        f"{int((~timed).sum()):,} of {len(timed):,} nodes have no start{told}: such a trace is made to be simulated"
    ]
