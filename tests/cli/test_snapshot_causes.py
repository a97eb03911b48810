"""`fusetui snapshot --causes`: both columns as text and as JSON, absent causes with their reason."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def fusetui(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fusetui.cli", *args], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("causes") / "bucket.arrows"
    done = fusetui("simulate", "bucket-worse-than-eager", "-o", str(target))
    assert done.returncode == 0, done.stderr
    return target


def test_both_columns_as_json(trace: Path) -> None:
    plain = json.loads(fusetui("snapshot", str(trace), "--json").stdout)["attribution"]
    assert "causes" not in plain
    both = json.loads(fusetui("snapshot", str(trace), "--causes", "--json").stdout)["attribution"]
    assert {name: both[name] for name in plain} == plain
    assert both["first_stage"] == "compile plan"
    p95 = both["causes"]["p95"]
    assert p95["named"] == "padding"
    assert sum(row["share_ns"] for row in p95["drivers"]) == pytest.approx(p95["as_is_ns"] - p95["without_all_ns"])
    tail = both["cohorts"]["p99"]
    assert sum(tail["mean_ns"].values()) == pytest.approx(tail["latency_ns"])
    assert {row["name"] for row in both["columns"]["p99"]} >= {"queueing", "padding", "planned"}


def test_both_columns_as_text(trace: Path) -> None:
    text = fusetui("snapshot", str(trace), "--causes").stdout
    assert "first stage  compile plan left its budget" in text
    assert "│ without it ≈ p95" in text
    assert "model fit p50 +0 %" in text
    assert "padding × queueing make each other worse" in text


def test_no_causes_say_why() -> None:
    told = json.loads(fusetui("snapshot", "sample:torch-training", "--causes", "--json").stdout)["attribution"][
        "causes"
    ]
    assert "enqueue_ns" in told["why"]
    live = fusetui("snapshot", "host", "--causes")
    assert live.returncode == 2
    assert "record one first" in live.stderr
