"""`fusetui simulate` as people and scripts see it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fusetui.accelerator.scenario.build import Run
from fusetui.accelerator.scenario.parse import load_scenario
from fusetui.commands.request_log import read_logs
from fusetui.commands.simulate_table import figures
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.open import open_trace

SMALL = """
title = "an MLP under load"
see = "a test"
seconds = 2

[hardware]
name = "A100"

[[model]]
name = "mlp"
block = "mlp"
size = "tokens"
planned = [256, 1024]

[[stream]]
name = "rows"
per_s = 300
[[stream.mix]]
tokens = [256, 900]
"""

LOGGED = SMALL.split("per_s")[0] + 'log = "azure.csv"\nspeed = 2\n'

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,480,10
2023-11-16 18:17:04.0319600,318,8
2023-11-16 18:17:05.9799600,110,27
2023-11-16 18:17:08.9799600,110,27
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def fusetui(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fusetui.cli", "simulate", *args], capture_output=True, text=True, timeout=120
    )


def test_the_same_seed_writes_the_same_bytes(scenario: Path, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.arrows", "b.arrows", "c.arrows")]
    for path, seed in zip(files, ("3", "3", "4"), strict=True):
        done = fusetui(str(scenario), "-o", str(path), "--seed", seed)
        assert done.returncode == 0, done.stderr
        assert done.stdout == ""
        assert "of 2 simulated seconds" in done.stderr
    assert files[0].read_bytes() == files[1].read_bytes() != files[2].read_bytes()
    trace = open_trace(files[0])
    assert (trace.header.source, trace.header.clock, trace.header.build["seed"]) == ("simulated", "trace", "3")
    assert fusetui(str(scenario), "-o", str(files[0])).returncode == 2, "it exists"
    assert not list(tmp_path.glob("*.part"))


def test_without_a_file_it_is_a_summary(scenario: Path) -> None:
    done = fusetui(str(scenario), "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    outcome = next(Run(load_scenario(str(scenario))).rounds()).outcome
    assert summary["requests"] == len(outcome.load)
    assert summary["latency_ns"]["max"] == int(outcome.latency_ns.max())
    assert summary["header"]["source"] == "simulated"
    text = fusetui(str(scenario)).stdout
    assert "scenario     an MLP under load" in text
    assert "latency" in text


def test_policies_are_compared_in_the_engines_numbers(scenario: Path) -> None:
    done = fusetui(str(scenario), "--policy", "none,balanced", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["simulated"] is True
    none, balanced = document["runs"]
    assert (none["policy"], balanced["policy"]) == ("none", "balanced")
    assert none["launches"] == 5.0
    assert balanced["launches"] == 3.0
    assert balanced["launch_ns"] < none["launch_ns"]
    for row in (none, balanced):
        assert sum(row["parts_ns"].values()) == pytest.approx(row["mean_ns"], rel=1e-9)
        assert row["p50_ns"] <= row["p95_ns"] <= row["p99_ns"]
        assert 0 < row["burst"] <= 1.0
    table = fusetui(str(scenario), "--policy", "none,balanced").stdout
    assert table.count("simulated") == 1
    assert "kernels" in table


def test_a_quantile_needs_enough_requests(scenario: Path) -> None:
    scenario.write_text(SMALL.replace("per_s = 300", "per_s = 20"))
    found = figures(Run(load_scenario(str(scenario))))
    assert 20 <= found["requests"] < 100
    assert found["p95_ns"] is not None
    assert found["p99_ns"] is None


def test_list_names_every_scenario_and_what_to_see() -> None:
    done = fusetui("--list")
    assert done.returncode == 0
    assert "case-study" in done.stdout
    assert "metastable-fallback" in done.stdout


@pytest.mark.parametrize(
    ("args", "code", "complaint"),
    [
        ([], 2, "name a scenario"),
        (["nowhere"], 3, "nowhere: no such scenario"),
        (["steady", "--policy", "bold"], 2, "'bold' is not known"),
        (["steady", "--policy", "none,balanced", "-o", "x"], 2, "choose one"),
        (["steady", "--live", "--json"], 2, "leave out -o and --json"),
        (["case-study", "--filter", "strem = 3"], 2, "--filter"),
        (["steady", "--seed", "-1"], 2, "not between 0 and 2^62"),
        (["steady", "-o", "/no/such/folder/x.arrows"], 3, "cannot be written"),
    ],
)
def test_what_is_wrong_is_one_line(args: list[str], code: int, complaint: str) -> None:
    done = fusetui(*args)
    assert done.returncode == code
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_request_log_is_replayed_with_its_shapes(tmp_path: Path) -> None:
    path = tmp_path / "logged.toml"
    path.write_text(LOGGED)
    (tmp_path / "azure.csv").write_text(AZURE)
    scenario = load_scenario(str(path))
    logs = read_logs(scenario, 64 << 20)
    load = next(Run(scenario, logs).rounds()).outcome.load
    # Twice as fast, and what comes after the two seconds is left out.
    assert load.arrival_ns.tolist() == [0, 26_000_000, 1_000_000_000]
    assert load.tokens.tolist() == [480, 318, 110]
    assert load.output.tolist() == [10, 8, 27]
    done = fusetui(str(path), "--json")
    assert json.loads(done.stdout)["requests"] == 3


def test_any_capture_with_shapes_is_a_log(scenario: Path, tmp_path: Path) -> None:
    """Also one of our own: what was simulated can be asked again of another runtime."""
    first = tmp_path / "azure.csv"
    assert fusetui(str(scenario), "-o", str(first)).returncode == 0
    path = tmp_path / "again.toml"
    path.write_text(LOGGED.replace("speed = 2", "speed = 1"))
    logs = read_logs(load_scenario(str(path)), 64 << 20)
    load = next(Run(load_scenario(str(scenario))).rounds()).outcome.load
    assert np.array_equal(logs["azure.csv"].arrival_ns, load.arrival_ns - load.arrival_ns[0])
    assert np.array_equal(logs["azure.csv"].tokens, load.tokens)


def test_a_capture_without_requests_is_no_log(tmp_path: Path) -> None:
    path = tmp_path / "logged.toml"
    path.write_text(LOGGED)
    (tmp_path / "azure.csv").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,0,1\n")
    with pytest.raises(TelemetryError, match="no request in it"):
        read_logs(load_scenario(str(path)), 64 << 20)
