"""PyTorch memory timelines: running sums per category."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from kineto_samples import MEMORY, rows_of, write

from fusetui.importers import torchmemory
from fusetui.telemetry.errors import TelemetryError

_CORPUS = os.environ.get("FUSETUI_CORPUS")
_T = 1_696_966_048_083_248_105
SAMPLE = json.dumps([[-1, 1, 500, 7], [-1, 1, 1000, 0], [_T, 2, 300, 4], [_T, 3, -1000, 0], [_T, 3, 900, 0],
                     [_T + 7, 4, -300, 4]]).encode()  # fmt: skip


def opened(tmp_path: Path, content: bytes) -> tuple[list[dict[str, Any]], list[str]]:
    capture = torchmemory.read(write(tmp_path / "memory.json", content), MEMORY)
    return rows_of(capture), capture.notes


@pytest.mark.parametrize("packed", [False, True])
def test_sums_per_category_after_each_time(tmp_path: Path, packed: bool) -> None:
    assert torchmemory.sniff(SAMPLE)
    rows, notes = opened(tmp_path, gzip.compress(SAMPLE) if packed else SAMPLE)
    assert {(r["name"], r["end_ns"] - _T, r["value"], r["unit"]) for r in rows} == {
        ("memory of tensors", 0, 1700.0, "B"),
        ("memory of tensors", 7, 1400.0, "B"),
        ("memory of unknown", 0, 500.0, "B"),
        ("memory of parameters", 0, 900.0, "B"),
        ("memory of activations", 0, 300.0, "B"),
        ("memory of activations", 7, 0.0, "B"),
    }
    assert notes == ["tensors from before the recording: 2, in the first values"]


def test_a_cut_or_odd_file_gives_what_is_whole(tmp_path: Path) -> None:
    odd = SAMPLE.replace(b"[-1, 1, 500, 7]", b"[-1, 1, 500, 9]")[:-4]
    rows, notes = opened(tmp_path, odd)
    assert max(r["value"] for r in rows if r["name"] == "memory of tensors") == 1200
    assert "changes left out: no time, action, bytes or category: 1" in notes


def test_a_timeline_without_times_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match="without one change that has a time"):
        opened(tmp_path, b"[[-1, 1, 500, 7]]")


@pytest.mark.skipif(not _CORPUS, reason="set FUSETUI_CORPUS to a folder with traces/ and reference/")
def test_real_timeline() -> None:
    name = "facebookresearch__HolisticTraceAnalysis__memory_analysis_memory_timeline.raw.gz"
    path = Path(_CORPUS or ".") / "traces/torch_memory" / name
    changes = json.loads(gzip.decompress(path.read_bytes()))
    rows = [row for row in rows_of(torchmemory.read(path, MEMORY)) if row["name"] == "memory of tensors"]
    assert len(changes) == 16845
    assert len(rows) == len({at for at, *_ in changes if at >= 0})
    assert rows[-1]["value"] == sum(size for _, _, size, _ in changes)
    total, peak = 0, 0
    first = min(at for at, *_ in changes if at >= 0)
    ordered = sorted(changes, key=lambda change: max(change[0], first))
    for (at, _, size, _), (following, *_) in zip(ordered, [*ordered[1:], [1 << 62]], strict=True):
        total += size
        peak = max(peak, total) if max(at, first) < max(following, first) else peak
    assert max(row["value"] for row in rows) == peak
