"""Mutated ONNX Runtime profiles: read or refused with a line, never a crash, never a hang."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from kineto_samples import rows_of, write
from onnxruntime_samples import runs, text_of
from test_kineto_fuzz import mutate

from fusetui.importers import onnxruntime
from fusetui.telemetry.errors import TelemetryError

CASES = 200


@pytest.mark.parametrize("block", range(4))
def test_mutations_are_read_or_refused(tmp_path: Path, block: int) -> None:
    data, read = text_of(runs(6)).encode(), 0
    lines: list[str] = []
    for case in range(block, CASES, 4):
        path = write(tmp_path / "fuzz.json", mutate(data, random.Random(case)))
        try:
            rows = rows_of(onnxruntime.read(path, 1 << 20))
        except TelemetryError as error:
            lines.append(str(error))
        else:
            assert all(row["end_ns"] >= row["start_ns"] >= 0 for row in rows)
            read += 1
    assert read + len(lines) == CASES // 4
    assert read >= CASES // 8
    assert not any("\n" in line for line in lines)
