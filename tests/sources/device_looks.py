"""What the tests of device sources share: looking at a source's rows, and commands that are scripts."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fusetui.sources.device_rows import Sample, sample_batch
from fusetui.telemetry.schema import SCHEMA

Values = dict[tuple[str, int | None, int | None], tuple[float, str]]


def values(sample: Sample) -> Values:
    """(name, device, core) -> (value, unit)."""
    found = {(r.name, r.device, r.core): (r.value, r.unit) for r in sample.readings}
    assert len(found) == len(sample.readings), "a series twice in one sample"
    return found


def rows(sample: Sample) -> list[dict[str, Any]]:
    """As rows of the contract at time 7, which must be valid."""
    batch: pa.RecordBatch = sample_batch(sample, 7)
    batch.validate(full=True)
    assert batch.schema == SCHEMA
    return batch.to_pylist()


def install(folder: Path, name: str, body: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python script as the command `name`, first on PATH."""
    script = folder / name
    script.write_text(f"#!{sys.executable}\nimport sys, time\n{body}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return script
