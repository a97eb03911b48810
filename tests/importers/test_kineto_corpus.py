"""Real captures against reference values measured with other tools."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fusetui.importers import kineto
from fusetui.importers.capture import Capture

_CORPUS = os.environ.get("FUSETUI_CORPUS")
pytestmark = pytest.mark.skipif(not _CORPUS, reason="set FUSETUI_CORPUS to a folder with traces/ and reference/")
_ROOT = Path(_CORPUS or ".")
_FOLDERS = ("kineto", "kineto_rocm", "kineto_mtia", "local/torch")


def _captures() -> list[Path]:
    if not _CORPUS:
        return []
    files = (path for folder in _FOLDERS for path in sorted((_ROOT / "traces" / folder).glob("*.json*")))
    return [path for path in files if not path.name.endswith(("_summary.json", "_et.json"))]


def _reference() -> dict[str, Any]:
    document = json.loads((_ROOT / "reference/traces/summary_reference.json").read_text())
    return {name: entry["ours"] for name, entry in document["files"].items() if "ours" in entry}


def _busy_ns(start: npt.NDArray[np.int64], end: npt.NDArray[np.int64]) -> int:
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    reach = np.concatenate([start[:1], np.maximum.accumulate(end)[:-1]])
    return int(np.maximum(0, end - np.maximum(start, reach)).sum())


def _measures(capture: Capture) -> dict[str, int]:
    parts = []
    for batch in capture.batches:
        batch.validate(full=True)
        kinds = batch.column("kind").dictionary_decode().to_pylist()
        chosen = np.array([kind == "execution" for kind in kinds])
        columns = {name: batch.column(name) for name in ("start_ns", "end_ns", "enqueue_ns", "launch_ns")}
        numbers = [column.fill_null(-1).to_numpy()[chosen] for column in columns.values()]
        parts.append(np.stack([part.astype(np.int64) for part in numbers]))
    start, end, enqueue, cost = np.concatenate(parts, axis=1)
    joined = enqueue >= 0
    return {
        "gpu_events": len(start),
        "joined": int(joined.sum()),
        "gpu_without_launch": int((~joined).sum()),
        "queue_raw_negative(kernel starts before API returns)": int((start < enqueue)[joined].sum()),
        "start_before_api_start": int((start < enqueue - cost)[joined].sum()),
        "zero_dur_gpu": int((start == end).sum()),
        "busy_union_ns": _busy_ns(start, end),
        "span_ns": int(end.max() - start.min()),
    }


@pytest.mark.parametrize("path", _captures(), ids=lambda path: path.name)
def test_capture_opens_and_agrees_with_the_reference(path: Path) -> None:
    capture = kineto.read(path, 256 << 20)
    found = _measures(capture)
    assert found["gpu_events"] > 0
    wanted = _reference().get(path.name)
    if wanted is not None:
        assert found == {key: wanted[key] for key in found}


def test_every_reference_has_its_capture() -> None:
    assert set(_reference()) <= {path.name for path in _captures()}
    assert len(_reference()) == 42
