"""PyTorch memory timelines (`export_memory_timeline` to `.raw.json.gz`): every change of the memory of tensors.

One list of [time in ns since the epoch, action, bytes, category]. The file already has the sign of each change, so
memory of a category is the running sum: a counter per category after each time at which it changed. What existed
before the recording has time -1 and is in the first values.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.readings import Readings
from fusetui.importers.rows import Rows
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header

NAME: Final = "PyTorch memory timeline"

_EVENT: Final = rb"\[\s*(-?\d{1,19})\s*,\s*([1-4])\s*,\s*(-?\d{1,15})\s*,\s*([0-7])\s*\]"
_EVENTS: Final = re.compile(_EVENT)
_OPENING: Final = re.compile(rb"\A\s*\[\s*" + _EVENT)
# In the order the file numbers them.
_CATEGORIES: Final = (
    "parameters", "optimiser state", "inputs", "temporaries", "activations", "gradients", "autograd detail", "unknown",
)  # fmt: skip
_TOTAL: Final = "memory of tensors"
_CHUNK: Final = 1 << 20
_CHANGE: Final = np.dtype([("at", "i8"), ("bytes", "i8"), ("category", "i1")])
_MAX_NS: Final = 4 * 10**18

Ints = npt.NDArray[np.int64]


def sniff(head: bytes) -> bool:
    """A list that begins with a list of time, action 1 to 4, bytes and category 0 to 7."""
    return bool(_OPENING.match(head[:4096].removeprefix(b"\xef\xbb\xbf")))


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a timeline. Raises TelemetryError when there is no change in it."""
    changes = Rows(_CHANGE, memory_bytes // 4)
    notes, opened = [], 0
    with ByteStream(path) as stream:
        rest = b""
        while part := stream.read(_CHUNK):
            text = rest + part
            cut = text.rfind(b"]") + 1
            opened += _take(changes, text[:cut])
            rest = text[cut:][-4096:]
        if stream.damage:
            notes.append(stream.damage)
    broken = opened - len(changes)
    if broken > 0:
        notes.append(f"changes left out: no time, action, bytes or category: {broken:,}")
    table = changes.table()
    timed = table["at"] >= 0
    if not timed.any():
        raise TelemetryError(str(path), f"{NAME} without one change that has a time")
    if not timed.all():
        notes.append(f"tensors from before the recording: {int((~timed).sum()):,}, in the first values")
    rows = Readings(str(path), memory_bytes // 4)
    at = np.where(timed, table["at"], table["at"][timed].min())
    order = np.argsort(at, kind="stable")
    _running(rows, _TOTAL, at[order], table["bytes"][order])
    for number, category in enumerate(_CATEGORIES):
        mine = order[table["category"][order] == number]
        _running(rows, f"memory of {category}", at[mine], table["bytes"][mine])
    return rows.capture(Header(source="pytorch-memory", clock="epoch"), notes)


def _take(changes: Rows, text: bytes) -> int:
    """Adds the changes in a piece of the file; returns how many lists it has with anything in them."""
    found = _EVENTS.findall(text)
    if found:
        times = [int(at) for at, _, _, _ in found]
        good = [-1 <= at < _MAX_NS for at in times]
        kept = [
            (at, int(size), int(kind)) for at, (_, _, size, kind), keep in zip(times, found, good, strict=True) if keep
        ]
        columns = np.array(kept, np.int64).reshape(-1, 3)
        changes.add(at=columns[:, 0], bytes=columns[:, 1], category=columns[:, 2])
    return len(re.findall(rb"\[(?=\s*[-\d])", text))


def _running(rows: Readings, name: str, at: Ints, changed: Ints) -> None:
    """The sum after each time, of changes in time order."""
    if not len(at):
        return
    last = np.append(np.flatnonzero(np.diff(at)), len(at) - 1)
    rows.add(at[last], np.cumsum(changed)[last].astype(np.float64), name=name, unit="B")
