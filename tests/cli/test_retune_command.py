"""`fusetui retune`: the report, its forms and its exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fusetui.cli import main

_CORPUS = os.environ.get("FUSETUI_CORPUS")


@pytest.fixture(scope="module")
def drift(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A minute of the scenario whose shapes drift."""
    path = tmp_path_factory.mktemp("retune") / "drift.arrows"
    assert main(["simulate", "shape-drift", "-o", str(path)]) == 0
    return path


def test_the_report_as_json(drift: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retune", str(drift), "--json", "--max", "1"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["simulated"] is True
    assert report["header"]["build"]["scenario"].startswith("shape-drift")
    assert [plan["size"] for plan in report["offline_profile"]["plans"]] == [
        "sequence=128", "sequence=256", "sequence=512", "sequence=1024"
    ]  # fmt: skip
    telemetry = report["runtime_telemetry"]
    assert telemetry["latency_ns"]["n"] == report["model"]["fit"]["n"]
    assert telemetry["drift"]["verdict"] == "major"
    assert telemetry["metastable"] is None
    assert report["model"]["fit"]["good"] is True
    (action,) = report["actions"]
    assert action["before"]["p99_ns"] == telemetry["latency_ns"]["p99"]
    assert action["change"]["p99"] == pytest.approx(action["after"]["p99_ns"] / action["before"]["p99_ns"] - 1)
    assert action["evidence"]["replay"].startswith(f"fusetui replay {drift} --from ")
    assert action["owner"] == "compiler"
    assert action["does_not_prove"]


def test_the_report_for_people(drift: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retune", str(drift), "--markdown"]) == 0
    text = capsys.readouterr().out
    for section in (
        "# Closed-loop mapping report",
        "## Offline profile",
        "## Runtime telemetry",
        "## Retuning actions",
    ):
        assert section in text.splitlines() or section in text
    assert "no number is of a real device" in text
    assert "| model | policy | size |" in text
    assert "rollback: capture 128, 256, 512, 1024 as before" in text
    assert "switching cost: 6 plans to make, stall not known from this trace" in text
    assert main(["retune", str(drift)]) == 0
    plain = capsys.readouterr().out
    assert "RETUNING ACTIONS" in plain
    assert "|" not in plain.split("RUNTIME TELEMETRY")[1]


def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retune", str(tmp_path / "none.arrows")]) == 3
    broken = tmp_path / "broken.arrows"
    broken.write_bytes(b"no trace")
    assert main(["retune", str(broken)]) == 3
    capsys.readouterr()
    assert main(["retune", "sample:host-load"]) == 4
    assert "requests" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stopped:
        main(["retune", "sample:torch-serving", "--max", "0"])
    assert stopped.value.code == 2


def test_a_measured_capture_is_reproduced_and_says_what_it_cannot_verify(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retune", "sample:torch-serving", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["simulated"] is False
    assert report["model"]["exact"] is False
    assert report["model"]["fit"]["good"] is True
    assert report["actions"] == []
    (bucket,) = report["unverified"]
    assert bucket["title"] == "add buckets 150, 200 (raises the limit from 128 to 200)"
    assert bucket["after"] is None
    assert "capture it once and compare" in bucket["reason"]


@pytest.mark.skipif(_CORPUS is None, reason="FUSETUI_CORPUS is not set: no captures with changing shapes")
def test_changing_shapes_of_a_profile(capsys: pytest.CaptureFixture[str]) -> None:
    captures = Path(str(_CORPUS)) / "traces" / "local" / "torch"
    static, dynamic = (str(captures / f"torch_changing_shapes_{kind}.json.gz") for kind in ("static", "dynamic"))
    assert main(["retune", static, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    (advice,) = report["unverified"]
    assert advice["why"].startswith("8 compiles for 8 shapes took 21.2 s")
    assert "--measured" in advice["reason"]
    assert report["actions"] == []
    assert main(["retune", static, "--measured", dynamic, "--json"]) == 0
    (action,) = json.loads(capsys.readouterr().out)["actions"]
    assert action["state"] == "measured"
    assert action["reason"] == "another capture has 1 compile in 5.36 s instead of 8 in 21.2 s"
    assert main(["retune", dynamic]) == 4


def test_needs_no_application() -> None:
    code = (
        "import sys; from fusetui.cli import main; main(['retune', 'sample:torch-serving', '--json']);"
        "assert not {'textual', 'rich'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
