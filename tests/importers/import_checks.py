"""What every importer's tests ask of a capture."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fusetui.importers.capture import Capture
from fusetui.importers.open import open_capture
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.source import Trace

MEMORY = 64 << 20
CASES = 1000 if os.environ.get("FUSETUI_FUZZ") else 200


def corpus(*parts: str) -> Path:
    """A file of the reference folder; skips without it."""
    root = os.environ.get("FUSETUI_CORPUS")
    if not root:
        pytest.skip("set FUSETUI_CORPUS to a folder with traces/")
    return Path(root, "traces", *parts)


def rows_of(capture: Capture) -> list[dict[str, Any]]:
    """All rows, each without its nulls; batches are valid and in order of end time."""
    found: list[dict[str, Any]] = []
    for batch in capture.batches:
        batch.validate(full=True)
        found += [{key: value for key, value in row.items() if value is not None} for row in batch.to_pylist()]
    assert [row["end_ns"] for row in found] == sorted(row["end_ns"] for row in found)
    return found


def kind_of(rows: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["kind"] == kind]


def opened(*paths: Path) -> tuple[list[dict[str, Any]], Trace]:
    """Rows through the one door for every file."""
    trace = open_capture(list(paths), memory_bytes=MEMORY)
    while not trace.complete:
        trace.refresh()
    rows = [
        {key: value for key, value in row.items() if value is not None}
        for number in range(len(trace.index().rows))
        for row in trace.read(number).to_pylist()
    ]
    trace.close()
    return rows, trace


def mutate(data: bytes, noise: random.Random) -> bytes:
    """Some bytes changed, left out, doubled or cut off."""
    out = bytearray(data)
    for _ in range(noise.randint(1, 8)):
        at, other = noise.randrange(len(out)), noise.randrange(len(out))
        match noise.randrange(5):
            case 0:
                out[at] = noise.randrange(256)
            case 1:
                out[at : at + noise.randint(1, 64)] = bytes(noise.randint(1, 64))
            case 2:
                low, high = sorted((at, other))
                out[at:at] = out[low : min(high, low + 400)]
            case 3 if noise.random() < 0.3:
                del out[max(16, at) :]
            case _:
                out[at : at + 8] = str(noise.choice([1 << 63, -1, 10**17, 0])).encode()[:8]
    return bytes(out)


def fuzzed(sample: bytes, path: Path, read: Callable[[Path, int], Capture], *, least: int) -> None:
    """Mutations of a file are read or refused with one line; at least `least` of a hundred are read."""
    good, lines = 0, list[str]()
    for case in range(CASES):
        path.write_bytes(mutate(sample, random.Random(case)))
        try:
            rows = rows_of(read(path, MEMORY))
        except TelemetryError as error:
            lines.append(str(error))
        else:
            assert all(row["end_ns"] >= row["start_ns"] for row in rows)
            good += 1
    assert good + len(lines) == CASES
    assert not any("\n" in line for line in lines)
    assert good * 100 >= least * CASES
