"""The commands as a user or a script meets them: in a process of their own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from fusetui.data import data_dir
from fusetui.telemetry.schema import SCHEMA, build_batch

KEYS = {
    "executions",
    "requests",
    "span_ns",
    "busy_ns",
    "launch",
    "queue_wait_ns",
    "latency_ns",
    "imbalance",
    "streams",
    "cores",
    "source_health",
}


def fusetui(*args: str, timeout: float = 60, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fusetui.cli", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, **options)  # type: ignore[call-overload,no-any-return]


def write_capture(path: Path, rows: int = 1000) -> Path:
    """`rows` executions: enqueued every 100 ns, waiting 10·(i mod 100) ns, running 50 ns on core i mod 4."""
    i = range(rows)
    batch = build_batch(
        {
            "kind": "execution",
            "name": "gemm",
            "enqueue_ns": [100 * k for k in i],
            "start_ns": [100 * k + 10 * (k % 100) for k in i],
            "end_ns": [100 * k + 10 * (k % 100) + 50 for k in i],
            "core": [k % 4 for k in i],
            "stream": "s",
        }
    )
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, SCHEMA) as writer:
        writer.write_batch(batch)
    return path


def test_snapshot_of_a_capture_is_exact_json(tmp_path: Path) -> None:
    done = fusetui("snapshot", str(write_capture(tmp_path / "c.arrows")), "--json")
    assert done.returncode == 0, done.stderr
    got = json.loads(done.stdout)
    assert set(got) >= KEYS
    assert got["executions"] == 1000
    assert got["requests"] == 0
    wait = got["queue_wait_ns"]
    assert (wait["n"], wait["p50"], wait["p95"], wait["p99"], wait["max"]) == (1000, 490, 940, 980, 990)
    assert got["latency_ns"]["p99"] == 1030
    assert got["imbalance"]["lambda"] == pytest.approx(0.0, abs=0.01)


def test_snapshot_for_people_shows_the_same_numbers(tmp_path: Path) -> None:
    done = fusetui("snapshot", str(write_capture(tmp_path / "c.arrows")))
    assert done.returncode == 0
    assert "980 ns" in done.stdout
    assert "1,000" in done.stdout


def test_snapshot_with_a_window_and_a_filter(tmp_path: Path) -> None:
    capture = str(write_capture(tmp_path / "c.arrows"))
    done = fusetui("snapshot", capture, "--json", "--filter", "core = 3")
    assert json.loads(done.stdout)["executions"] == 250
    done = fusetui("snapshot", capture, "--json", "--window", "10us")
    assert 80 <= json.loads(done.stdout)["executions"] <= 110


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["snapshot", "nowhere.arrows"], 3, "nowhere.arrows"),
        (["snapshot", "sample:nothing"], 3, "no such sample"),
        (["snapshot", "sim", "--window", "soon"], 2, "not a duration"),
        (["live", "tcp:0.0.0.0:9"], 3, "token"),
        (["frobnicate"], 2, "frobnicate"),
        (["export", "sample:torch-serving", "--format", "parquet"], 2, "needs a file"),
    ],
)
def test_bad_usage_is_one_clear_line(args: list[str], code: int, words: str) -> None:
    done = fusetui(*args)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    assert words in done.stderr
    assert done.stdout == ""


def test_bad_filter_points_at_the_fault(tmp_path: Path) -> None:
    done = fusetui("snapshot", str(write_capture(tmp_path / "c.arrows")), "--filter", "wait >> 3")
    assert done.returncode == 2
    assert "^" in done.stderr


@pytest.mark.parametrize("sample", sorted(p.name.split(".")[0] for p in data_dir("sample_traces").glob("*.arrows")))
def test_every_sample_opens(sample: str) -> None:
    done = fusetui("snapshot", f"sample:{sample}", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["executions"] > 100


@pytest.mark.parametrize("form", ["arrows", "parquet", "csv", "json"])
def test_export_keeps_every_value(tmp_path: Path, form: str) -> None:
    capture = write_capture(tmp_path / "c.arrows")
    target = tmp_path / f"out.{form}"
    assert fusetui("export", str(capture), "-o", str(target)).returncode == 0
    read = {"arrows": pl.read_ipc_stream, "parquet": pl.read_parquet, "csv": pl.read_csv, "json": pl.read_ndjson}
    table = read[form](target)
    assert table["start_ns"].to_list() == [100 * k + 10 * (k % 100) for k in range(1000)]
    assert table["name"].cast(pl.Utf8).unique().to_list() == ["gemm"]
    again = fusetui("export", str(capture), "-o", str(target))
    assert (again.returncode, "exists" in again.stderr) == (2, True)


def test_record_then_snapshot(tmp_path: Path) -> None:
    target = tmp_path / "sim.arrows"
    done = fusetui("record", "load:seed=4", "-o", str(target), "--for", "2s")
    assert done.returncode == 0, done.stderr
    seen = json.loads(fusetui("snapshot", str(target), "--json").stdout)
    assert seen["executions"] > 100
    assert seen["header"]["source"] == "synthetic load"


def test_sigterm_ends_a_recording_cleanly(tmp_path: Path) -> None:
    target = tmp_path / "sim.arrows"
    command = [sys.executable, "-m", "fusetui.cli", "record", "load:seed=4", "-o", str(target)]
    recording = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not target.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.5)
    os.kill(recording.pid, signal.SIGTERM)
    _, said = recording.communicate(timeout=20)
    assert recording.returncode == 0
    assert "recorded" in said
    assert json.loads(fusetui("snapshot", str(target), "--json").stdout)["executions"] > 0


def test_a_closed_pipe_is_not_an_error(tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "c.arrows", rows=100_000)
    shell = f"{sys.executable} -m fusetui.cli export {capture} --format csv | head -1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.startswith('"kind"')
    assert "Traceback" not in done.stderr
