"""The log of an SGLang server (its stderr): a line per prefill batch and per some decode batches.

Each number is a reading of a counter at the time of its line, the stream is the rank (`TP0`). `cuda graph: False` of a
decode batch means that no captured graph fitted and the eager path ran: `decode graph` is 1 or 0 there, mapped planned
or fallback, with the batch size as shape.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from fusetui.importers.azure_llm import timestamps_ns
from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.follow import ReadingLines
from fusetui.importers.lines import line_chunks
from fusetui.importers.readings import Readings
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import FALLBACK, MAPPINGS, PLANNED

NAME: Final = "SGLang server log"

_BATCH: Final = (
    rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,9})?)(?: ([\w ]{1,40}))?\] (?:Decode|Prefill) batch[.,] ?"
)
_LINE: Final = re.compile(_BATCH + rb"([^\n]{1,4096})")
_VALUE: Final = re.compile(r"(#?[A-Za-z][\w /()-]{0,40}?): *(\d{1,15}(?:\.\d{1,9})?|True|False)(?=,|\s|$)")
# name in the log: (counter, unit, factor)
_KNOWN: Final = {
    "#running-req": ("running requests", None, 1.0),
    "#queue-req": ("pending requests", None, 1.0),
    "#retracted-req": ("retracted requests", None, 1.0),
    "#new-seq": ("prefill requests", None, 1.0),
    "#new-token": ("prefill tokens", "tokens", 1.0),
    "#cached-token": ("cached tokens", "tokens", 1.0),
    "#token": ("tokens in the KV cache", "tokens", 1.0),
    "token usage": ("GPU KV cache", "%", 100.0),
    "gen throughput (token/s)": ("generation throughput", "tokens/s", 1.0),
    "input throughput (token/s)": ("prompt throughput", "tokens/s", 1.0),
    "accept len": ("accepted length", "tokens", 1.0),
}
_GRAPH: Final = "cuda graph"
_RUNNING: Final = "#running-req"

Reading = tuple[str, float, str, str | None, str | None, str | None, int]


def sniff(head: bytes) -> bool:
    """A line of a batch."""
    return bool(_LINE.search(head))


def follow() -> ReadingLines:
    """A log that grows."""
    return ReadingLines(NAME, _Log().take, lambda: {"server": "SGLang"}, "sglang")


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a log. Raises TelemetryError when no line of a batch in it has a time."""
    log, rows, bad = _Log(), Readings(str(path), memory_bytes), 0
    with ByteStream(path) as stream:
        for chunk in line_chunks(stream):
            bad += log.take(chunk, rows)
        notes = [stream.damage] if stream.damage else []
    notes.append("times are local and in whole seconds: taken as UTC")
    notes.append("only some decode batches are logged, and no request: --export-metrics-to-file has every request")
    notes += [f"readings left out: no time: {bad:,}"] if bad else []
    notes += [] if log.graphs else ["no line says whether a CUDA graph ran"]
    return rows.capture(Header(source="sglang", clock="epoch", build={"server": "SGLang"}), notes)


class _Log:
    """One log while it is read. graphs: lines that said whether a CUDA graph ran."""

    graphs = 0

    def take(self, chunk: bytes, rows: Readings) -> int:
        """Put the readings of these lines into `rows`; returns how many had no time."""
        found = [reading for match in _LINE.finditer(chunk) for reading in _readings(*map(_text, match.groups()))]
        self.graphs += sum(row[2] == "decode graph" for row in found)
        texts = pa.array([row[0].replace(",", ".") for row in found], pa.utf8())
        return rows.add(
            timestamps_ns(texts), np.array([row[1] for row in found]), name=[row[2] for row in found],
            unit=[row[3] for row in found], stream=[row[4] for row in found], shape=[row[5] for row in found],
            mapping=np.array([row[6] for row in found], np.int8),
        )  # fmt: skip


def _text(part: bytes | None) -> str:
    return (part or b"").decode("utf-8", "replace")


def _readings(at: str, rank: str, line: str) -> list[Reading]:
    """(time, value, counter, unit, stream, shape, mapping) of the numbers in one line."""
    values = dict(_VALUE.findall(line))
    found: list[Reading] = []
    for name, (counter, unit, factor) in _KNOWN.items():
        text = values.get(name, "")
        if text[:1].isdigit():
            found.append((at, float(text) * factor, counter, unit, rank or None, None, -1))
    if values.get(_GRAPH) in ("True", "False"):
        ran = values[_GRAPH] == "True"
        shape = f"batch={values[_RUNNING]}" if values.get(_RUNNING, "").isdigit() else None
        mapping = MAPPINGS.index(PLANNED if ran else FALLBACK)
        found.append((at, float(ran), "decode graph", None, rank or None, shape, mapping))
    return found
