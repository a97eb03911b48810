"""Mutated request logs: read or refused with a line, never a crash, never rows that end before they start."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from request_log_samples import ALL
from test_kineto_fuzz import mutate

from fusetui.importers.open import open_capture
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.gate import conform

CASES = 200


@pytest.mark.parametrize("name", sorted(ALL))
def test_mutations_are_read_or_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "fuzz.dat"
    read = 0
    refusals: list[str] = []
    for case in range(CASES):
        path.write_bytes(mutate(ALL[name], random.Random(case)))
        try:
            trace = open_capture([path], memory_bytes=16 << 20)
            assert trace.wait_complete(30)  # type: ignore[attr-defined]
        except TelemetryError as error:
            refusals.append(str(error))
            continue
        for number in range(len(trace.index().rows)):
            _, dropped = conform(trace.read(number), "fuzz")
            assert dropped == 0
        trace.close()
        read += 1
    assert read + len(refusals) == CASES
    assert read >= CASES // 20
    assert not any("\n" in line for line in refusals)
