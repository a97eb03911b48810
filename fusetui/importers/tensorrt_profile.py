"""Layer times of one run as `trtexec --exportProfile` writes them when it ran once: {"count": 1}, then a layer a row.

Each layer is an execution and the run a request, as in `tensorrt_layers`. Over more runs the file only has sums and
means, of which no run is made up.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.tensorrt_layers import laid_end_to_end
from fusetui.telemetry.errors import TelemetryError

NAME: Final = "TensorRT layer profile (trtexec --exportProfile)"

_START: Final = re.compile(rb'\A\s*\[\s*\{\s*"count"\s*:\s*\d+\s*\}\s*(?:,\s*\{\s*"name"\s*:|\])')
_REMEDY: Final = "profile one run (--iterations=1 --duration=0), or open what trtexec --exportTimes wrote"
_LARGEST: Final = 64 << 20


class _Row(msgspec.Struct):
    count: int = 0
    name: str = ""
    time_ms: float = msgspec.field(default=-1.0, name="timeMs")


def sniff(head: bytes) -> bool:
    """An array that begins with the number of runs, then has layers."""
    return bool(_START.match(head[:8192]))


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a profile. Raises TelemetryError when it is of several runs, not whole, or has no layer."""
    with ByteStream(path) as source:
        parts: list[bytes] = []
        while part := source.read():
            parts.append(part)
            if sum(map(len, parts)) > min(_LARGEST, memory_bytes // 8):
                raise TelemetryError(str(path), f"{NAME} too large for the memory", "give it more with --memory")
    try:
        head, *layers = msgspec.json.decode(b"".join(parts), type=list[_Row])
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        why = source.damage or str(error)
        raise TelemetryError(str(path), f"{NAME} that cannot be read ({why})", "is the file whole?") from None
    if head.count != 1:
        raise TelemetryError(str(path), f"{NAME} with sums of {head.count:,} runs, the times of none", _REMEDY)
    names = [row.name or "layer" for row in layers]
    return laid_end_to_end(str(path), NAME, names, np.array([[row.time_ms for row in layers]], np.float64))
