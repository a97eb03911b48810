"""IBM AIU traces, and profiles that have no times at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from kineto_samples import MEMORY, executions, write

from fusetui.importers import aiu
from fusetui.importers.open import importers, open_capture
from fusetui.telemetry.errors import TelemetryError

_CORPUS = os.environ.get("FUSETUI_CORPUS")
_TRACES = Path(_CORPUS or ".") / "traces"
needs_corpus = pytest.mark.skipif(not _CORPUS, reason="set FUSETUI_CORPUS to a folder with traces/")
_CYCLES = {"TS1": "0xc06cc211", "TS5": "0xc0736e14", "Power": "0x438d671c"}


def edge(phase: str, name: str, ts: float) -> dict[str, Any]:
    return {"attr": _CYCLES, "name": name, "ph": phase, "pid": 0, "tid": 2009867741857745393, "ts": ts}


def test_overlapping_slices_pair_by_name_and_count_once(tmp_path: Path) -> None:
    events = [
        edge("B", "conv Cmpt Exec", 1475000720166.077),
        edge("E", "conv Cmpt Exec", 1475000720201.741),
        edge("B", "add DmaI", 1475000720190.5),
        edge("E", "add DmaI", 1475000720210.25),
        edge("B", "conv Cmpt Exec", 1475000720166.077),
        edge("E", "conv Cmpt Exec", 1475000720201.741),
    ]
    path = write(tmp_path / "a.json", json.dumps(events))
    assert next(i for i in importers() if i.sniff(path.read_bytes())).NAME == aiu.NAME
    capture = aiu.read(path, MEMORY)
    assert [(r["name"], r["start_ns"], r["end_ns"]) for r in executions(capture)] == [
        ("conv Cmpt Exec", 0, 35_664),
        ("add DmaI", 24_423, 44_173),
    ]
    assert capture.notes == [
        "events left out, that are written twice: 1",
        "slices that overlap their predecessor on the same thread: 1",
        "cycle counts TS1 to TS5 are not used: queue wait is not measured",
    ]


@needs_corpus
@pytest.mark.parametrize(
    ("name", "slices", "unpaired"), [("sample_flex_3062_job_4", 16, 0), ("basic_event_test_cases", 23, 2)]
)
def test_real_files(name: str, slices: int, unpaired: int) -> None:
    path = _TRACES / f"ibm_aiu/IBM__aiu-trace-analyzer__{name}.json"
    capture = aiu.read(path, MEMORY)
    rows = executions(capture)
    assert len(rows) == slices
    raw = json.loads(path.read_text())
    begins: dict[str, float] = {e["name"]: e["ts"] for e in raw if e["ph"] == "B"}
    took = {e["name"]: e["ts"] - begins[e["name"]] for e in raw if e["ph"] == "E"}
    took |= {e["name"]: e["dur"] for e in raw if e["ph"] == "X"}
    for row in rows:
        assert (row["end_ns"] - row["start_ns"]) / 1e3 == pytest.approx(took[row["name"]], abs=1e-3)
    assert any(f"the other: {unpaired}" in note for note in capture.notes) is bool(unpaired)


@pytest.mark.parametrize("spaces", ["", " "])
def test_a_proton_tree_is_refused_by_name(tmp_path: Path, spaces: str) -> None:
    tree = {"children": [], "frame": {"name": "ROOT", "type": "function"}, "metrics": {"count": 0, "time (ns)": 0}}
    text = json.dumps([tree, {"CUDA": {"0": {"arch": "89"}}}], separators=(f",{spaces}", f":{spaces}"))
    with pytest.raises(TelemetryError, match=r"Triton Proton profile, sums per kernel without times"):
        open_capture([write(tmp_path / "p.hatchet", text)], memory_bytes=MEMORY)


@needs_corpus
def test_real_proton_trees_are_refused_by_name() -> None:
    files = list((_TRACES / "proton_hatchet").glob("*.json"))
    assert len(files) == 2
    for path in files:
        with pytest.raises(TelemetryError, match="Triton Proton profile"):
            open_capture([path], memory_bytes=MEMORY)
