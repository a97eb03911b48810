"""Mutated Kineto files: read or refused with a line, never a crash, never a hang."""

from __future__ import annotations

import gzip
import os
import random
from pathlib import Path

import pytest
from kineto_samples import BASE, MEMORY, kernel, launch, operator, rows_of, text_of, write

from fusetui.importers import kineto
from fusetui.telemetry.errors import TelemetryError

CASES = 1000 if os.environ.get("FUSETUI_FUZZ") else 150
_TOKENS = [b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"nan", b"1e999", b"null", b"\xff", b"\0", b"-", b'"ph"']


def sample() -> bytes:
    events = [operator("aten::mm", 1, 90, **{"External id": 4, "Input Dims": [[2, 2]], "Input type": ["float"]})]
    for i in range(12):
        events += [launch("cudaLaunchKernel", i * 10.5, 1.25, i + 1), kernel(f"k{i}", i * 10.5 + 5, 2, i + 1)]
    top = {"deviceProperties": [{"id": 0, "name": "X"}], "distributedInfo": {"rank": 0}, "baseTimeNanoseconds": BASE}
    return text_of(events, **top).encode()


def mutate(data: bytes, noise: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(noise.randint(1, 6)):
        at, other = noise.randrange(len(out)), noise.randrange(len(out))
        match noise.randrange(6):
            case 0:
                out[at] = noise.randrange(256)
            case 1:
                out[at:at] = noise.choice(_TOKENS)
            case 2:
                del out[at : at + noise.randint(1, 40)]
            case 3:
                low, high = sorted((at, other))
                out[at:at] = out[low : min(high, low + 400)]
            case 4:
                del out[max(1, at) :]
            case _:
                out[at : at + 4] = str(noise.choice([1 << 63, 1 << 70, -1, 1e17, 0.1])).encode()
        if not out:
            return b"{"
    return bytes(out)


@pytest.mark.parametrize("block", range(10))
def test_mutations_are_read_or_refused(tmp_path: Path, block: int) -> None:
    data, read = sample(), 0
    lines: list[str] = []
    for case in range(block, CASES, 10):
        noise = random.Random(case)
        content = mutate(data, noise)
        if case % 4 == 0:
            content = mutate(gzip.compress(content), noise)
        path = write(tmp_path / "fuzz.json", content)
        try:
            rows = rows_of(kineto.read(path, MEMORY))
        except TelemetryError as error:
            lines.append(str(error))
        else:
            assert all(row["end_ns"] >= row["start_ns"] for row in rows)
            read += 1
    assert read + len(lines) == len(range(block, CASES, 10))
    assert read >= len(range(block, CASES, 10)) // 3
    assert not any("\n" in line for line in lines)
