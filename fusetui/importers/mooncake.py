"""Mooncake request traces (JSON lines): timestamp in ms, input and output tokens, hashes of the prompt's blocks.

The hashes tell which prompts share a beginning; the contract has no place for them, so they are left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.lines import line_chunks
from fusetui.importers.requestlog import RequestLog

NAME: Final = "Mooncake trace"

_KEYS: Final = tuple(re.compile(rb'"' + key + rb'"\s*:') for key in (b"timestamp", b"input_length", b"output_length"))


class _Row(msgspec.Struct):
    timestamp: float
    input_length: float
    output_length: float


_DECODER: Final = msgspec.json.Decoder(_Row)


def sniff(head: bytes) -> bool:
    """A JSON object with the three keys in the first line."""
    line = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
    return line.startswith(b"{") and all(key.search(line) for key in _KEYS)


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a trace. Raises TelemetryError when no row can be read."""
    log = RequestLog(str(path), memory_bytes // 2)
    bad = 0
    with ByteStream(path) as stream:
        for chunk in line_chunks(stream):
            rows, failed = _decoded(chunk)
            bad += failed
            table = np.array([(r.timestamp, r.input_length, r.output_length) for r in rows]).reshape(-1, 3)
            log.add(table[:, 0] / 1e3, table[:, 1], table[:, 2])
        damage = stream.damage
    log.bad += bad
    notes = ["block hashes left out: what prompts share is not shown", *([damage] if damage else [])]
    return log.capture("mooncake", clock="trace", build={"log": NAME}, notes=notes)


def _decoded(chunk: bytes) -> tuple[list[_Row], int]:
    """The rows of a chunk and the number of lines that are none."""
    try:
        return _DECODER.decode_lines(chunk), 0
    except (msgspec.DecodeError, UnicodeDecodeError):
        rows, bad = [], 0
    for line in chunk.splitlines():
        try:
            rows.append(_DECODER.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError):
            bad += bool(line.strip())
    return rows, bad
