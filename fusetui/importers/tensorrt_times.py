"""Times of inferences as `trtexec --exportTimes` writes them: one flat record per inference, in milliseconds.

What becomes what
- The computation is an execution, and so are the copies to and from the device where there are some. The end of the
  enqueue call is enqueue_ns, so the queue wait is startComputeMs - endEnqMs; its duration is launch_ns.
- The inference is a request that takes latencyMs from the beginning of its input copy.
Times are written with six significant digits, durations with more of theirs: an end is the start plus the duration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.kineto_batches import Columns, Section, merged_batches
from fusetui.importers.rows import Rows
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import EXECUTION, REQUEST

NAME: Final = "TensorRT inference times (trtexec --exportTimes)"

_CHUNK: Final = 1 << 20
_RECORD = re.compile(rb"\{[^{}]*\}")
_FARTHEST_MS: Final = 1e12
_DIGITS: Final = 6
_ABSENT: Final = float("nan")
_NAMES: Final = ("compute", "host to device copy", "device to host copy", "inference")

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class _Row(msgspec.Struct, gc=False):
    startEnqMs: float  # noqa: N815 (the keys of the file)
    endEnqMs: float  # noqa: N815
    startComputeMs: float  # noqa: N815
    computeMs: float  # noqa: N815
    latencyMs: float  # noqa: N815
    startH2dMs: float = _ABSENT  # noqa: N815
    startD2hMs: float = _ABSENT  # noqa: N815
    h2dMs: float = 0.0  # noqa: N815
    d2hMs: float = 0.0  # noqa: N815


_OLD_NAMES: Final = (
    (b'"startInMs"', b'"startH2dMs"'),
    (b'"inMs"', b'"h2dMs"'),
    (b'"startOutMs"', b'"startD2hMs"'),
    (b'"outMs"', b'"d2hMs"'),
)
"""What the copies were called before TensorRT 8.4."""

_DECODER: Final = msgspec.json.Decoder(_Row)
_FIELDS: Final = _Row.__struct_fields__
_TIMES: Final = np.dtype([(name, "f8") for name in _FIELDS])


def sniff(head: bytes) -> bool:
    """An array of records with the times of the enqueue call and of the computation."""
    body = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:4096]
    return body.startswith(b"[") and b'"startEnqMs"' in body and b'"startComputeMs"' in body


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a file of times. Raises TelemetryError when no inference in it can be read."""
    rows = Rows(_TIMES, memory_bytes // 4)
    bad = 0
    with ByteStream(path) as source:
        for text in _texts(source):
            found, broken = _decoded(text)
            table = np.array([[getattr(row, name) for name in _FIELDS] for row in found]).reshape(-1, len(_FIELDS))
            good = _possible(table)
            bad += broken + int((~good).sum())
            rows.add(**{name: table[good, i] for i, name in enumerate(_FIELDS)})
        notes = [f"{source.damage}; what came before was read"] if source.damage else []
    if bad:
        notes.append(f"records left out, unreadable or without usable times: {bad:,}")
    table = rows.table()
    if not len(table):
        raise TelemetryError(str(path), f"{NAME} without one readable inference", "run trtexec with --iterations")
    sections = _sections(table)
    notes += _notes(table)
    header = Header(source="trtexec", clock="trace")
    return Capture(header, merged_batches(sections, {"name": list(_NAMES)}), notes)


def _texts(source: ByteStream) -> Iterator[bytes]:
    """The file in parts that end with a record."""
    rest = b""
    while part := source.read(_CHUNK):
        rest += part
        cut = rest.rfind(b"}") + 1
        yield rest[:cut]
        # A record is a few hundred bytes: more without an end is no record.
        rest = rest[cut:] if len(rest) - cut < _CHUNK else b""
    yield rest


def _decoded(text: bytes) -> tuple[list[_Row], int]:
    """The records in a part of the file and how many were unreadable."""
    if _OLD_NAMES[0][0] in text[:2048]:
        for old, new in _OLD_NAMES:
            text = text.replace(old, new)
    found, broken = [], 0
    for match in _RECORD.finditer(text):
        try:
            found.append(_DECODER.decode(match[0]))
        except (msgspec.DecodeError, UnicodeDecodeError):
            broken += 1
    return found, broken


def _possible(table: Floats) -> npt.NDArray[np.bool_]:
    row = dict(zip(_FIELDS, table.T, strict=True))
    good: npt.NDArray[np.bool_] = np.abs(np.nan_to_num(table)).max(axis=1, initial=0.0) < _FARTHEST_MS
    for name in ("computeMs", "latencyMs", "h2dMs", "d2hMs"):
        good &= row[name] >= 0
    good &= row["endEnqMs"] >= row["startEnqMs"]
    return good


def _sections(table: npt.NDArray[Any]) -> list[Section]:
    ns = {name: _ns(table[name]) for name in _FIELDS}
    zero = min(int(ns[name].min()) for name in ("startEnqMs", "startComputeMs"))
    began = np.where(np.isnan(table["startH2dMs"]), ns["startComputeMs"], ns["startH2dMs"])
    zero = min(zero, int(began.min()))
    enqueue, launch = ns["endEnqMs"] - zero, ns["endEnqMs"] - ns["startEnqMs"]

    def section(kind: str, name: str, start: Ints, took: Ints, chosen: Ints) -> Section:
        start = (start - zero)[chosen]
        end = start + took[chosen]

        def columns(rows: Ints) -> Columns:
            of = chosen[rows]
            return {
                "name": np.full(len(rows), _NAMES.index(name)), "enqueue_ns": enqueue[of], "start_ns": start[rows],
                "end_ns": end[rows], "launch_ns": launch[of], "request": of,
            }  # fmt: skip

        return Section(kind, end, columns)

    everything = np.arange(len(table))
    copies = [
        section(EXECUTION, name, ns[start], ns[took], chosen)
        for name, start, took in ((_NAMES[1], "startH2dMs", "h2dMs"), (_NAMES[2], "startD2hMs", "d2hMs"))
        if len(chosen := np.flatnonzero((table[took] > 0) & ~np.isnan(table[start])))
    ]
    return [
        section(EXECUTION, _NAMES[0], ns["startComputeMs"], ns["computeMs"], everything),
        *copies,
        section(REQUEST, _NAMES[3], began, ns["latencyMs"], everything),
    ]


def _ns(ms: Floats) -> Ints:
    nearest: Ints = np.rint(np.nan_to_num(ms) * 1e6).astype(np.int64)
    return nearest


def _notes(table: npt.NDArray[Any]) -> list[str]:
    notes = ["streams and layers are not in it: use nsys profile for those"]
    early = int((table["startComputeMs"] < table["endEnqMs"]).sum())
    if early:
        notes.append(f"computations that began before their enqueue call returned: {early:,} of {len(table):,}")
    last_ms = float(np.abs(table["startComputeMs"]).max())
    step_ms = 10.0 ** (np.floor(np.log10(max(last_ms, 1.0))) + 1 - _DIGITS)
    if step_ms >= 1e-3:
        notes.append(f"times have {_DIGITS} digits: queue waits come in steps of up to {step_ms * 1e3:g} us")
    return notes
