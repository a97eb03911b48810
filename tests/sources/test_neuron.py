"""neuron-monitor: reports of known content, and the ways they come in."""

from __future__ import annotations

import io
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from device_looks import install, rows, values

from fusetui.sources.device_source import DeviceSource
from fusetui.sources.neuron import NeuronProbe
from fusetui.sources.neuron_report import parse_report
from fusetui.sources.registry import open_source
from fusetui.sources.spec import OpenOptions
from fusetui.telemetry.errors import TelemetryError


def report(**changes: Any) -> dict[str, Any]:
    """Two cores of two devices busy; cores 1 and 2 of five."""
    body = {
        "neuroncore_counters": {
            "neuroncores_in_use": {
                "1": {"neuroncore_utilization": 42.5, "effective_flops": 5},
                "2": {"neuroncore_utilization": None},
                "4": {"neuroncore_utilization": 7},
                "x": {"neuroncore_utilization": 1},
            },
            "error": "",
        },
        "execution_stats": {
            "error_summary": {"hardware": 2, "generic": 0, "model": None},
            "execution_summary": {"completed": 123, "timed_out": 4},
            "latency_stats": {
                "total_latency": {"p50": 0.011, "p75": 0.012, "p99": 0.0125, "p100": 0.02},
                "device_latency": None,
            },
            "error": "",
        },
        "memory_used": {"neuron_runtime_used_bytes": {"host": 1000, "neuron_device": 2000}},
        **changes,
    }
    runtime = {"neuron_runtime_tag": "app", "error": "", "report": body}
    return {"neuron_runtime_data": [runtime], "neuron_hardware_info": {"neuroncore_per_device_count": 2}}


def test_cores_belong_to_devices_and_null_is_absent() -> None:
    found = values(parse_report(report()))
    cores = {key: value for key, value in found.items() if key[0].startswith("core")}
    assert cores == {("core 1 busy", 0, 1): (42.5, "%"), ("core 4 busy", 2, 4): (7.0, "%")}


def test_work_latency_memory_and_errors() -> None:
    sample = parse_report(report())
    found = {key[0]: value for key, value in values(sample).items() if key[2] is None}
    assert found == {
        "memory used, host": (1000.0, "B"),
        "memory used, devices": (2000.0, "B"),
        "executions completed": (123.0, "per report"),
        "executions timed out": (4.0, "per report"),
        "latency total p50": (0.011, "s"),
        "latency total p99": (0.0125, "s"),
        "latency total p100": (0.02, "s"),
    }
    assert sample.marks == ["2 hardware errors"]
    assert sample.problem == ""
    assert {row["kind"] for row in rows(sample)} == {"counter", "mark"}


def test_both_spellings_of_device_memory_and_of_the_work() -> None:
    used = {"neuron_runtime_used_bytes": {"device": 77}}
    old = {"inference_summary": {"completed": 5}, "latency_stats": {"device_latency": {"p50": 0.5}}}
    found = values(parse_report(report(memory_used=used, execution_stats=None, inference_stats=old)))
    assert found["memory used, devices", None, None] == (77.0, "B")
    assert found["executions completed", None, None] == (5.0, "per report")
    assert found["latency device p50", None, None] == (0.5, "s")


def test_several_runtimes_are_told_apart() -> None:
    both = report()
    both["neuron_runtime_data"] *= 2
    both["neuron_runtime_data"][1] = {**both["neuron_runtime_data"][0], "neuron_runtime_tag": "b\x1bd"}
    both["neuron_runtime_data"][1]["report"] = report(neuroncore_counters={})["neuron_runtime_data"][0]["report"]
    names = {row["name"] for row in rows(parse_report(both))}
    assert {"app: executions completed", "b·d: executions completed"} <= names


def test_an_idle_or_failing_runtime() -> None:
    idle = {"neuron_runtime_data": None, "neuron_hardware_info": None}
    assert parse_report(idle) == ([], [], "")
    failing = report(neuroncore_counters={"error": "no\ndevice", "neuroncores_in_use": None})
    assert parse_report(failing).problem == "neuron-monitor: no device"


def test_reports_from_stdin_until_its_end() -> None:
    lines = b"\n" + json.dumps(report()).encode() + b"\n{broken\n[]\n"
    probe = NeuronProbe("-", io.BytesIO(lines))
    probe.open()
    first, second, third = probe.read(), probe.read(), probe.read()
    assert first is not None
    assert len(first.readings) == 9
    assert second is not None
    assert second.problem.startswith("neuron-monitor: a line is no JSON")
    assert third is not None
    assert third.problem == "neuron-monitor: a line is no report"
    assert probe.read() is None


def test_reports_from_a_file_end(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text(json.dumps(report()) + "\n")
    source = open_source(f"neuron:{tmp_path}/reports")
    (batch,) = source.poll(10)
    assert batch.num_rows == 10
    for thread in threading.enumerate():
        if thread.name == "ask neuron":
            thread.join(10)
    assert source.health().state == "ended"
    source.close()


def test_the_command_is_run_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid_file = tmp_path / "pid"
    body = (
        f"import os\nopen({str(pid_file)!r}, 'w').write(str(os.getpid()))\n"
        f"print({json.dumps(report())!r}, flush=True)\ntime.sleep(600)"
    )
    install(tmp_path, "neuron-monitor", body, monkeypatch)
    source = open_source("neuron")
    (batch,) = source.poll(20)
    assert batch.num_rows == 10
    assert source.health().state == "live"
    source.close()
    for thread in threading.enumerate():
        if thread.name == "ask neuron":
            thread.join(10)
    assert source.health().state == "ended"
    assert source.health().last_error == ""
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


def test_a_command_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "neuron-monitor", "sys.exit('no neuron driver\\x1b[2J')", monkeypatch)
    source = open_source("neuron")
    for thread in threading.enumerate():
        if thread.name == "ask neuron":
            thread.join(20)
    assert source.health().state == "failed"
    assert source.health().last_error == "neuron-monitor: ended with code 1: no neuron driver·[2J"
    source.close()


def test_a_missing_command_or_pipe_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TelemetryError, match="neuron-monitor: no such command on PATH"):
        open_source("neuron")
    with pytest.raises(TelemetryError, match="no such pipe or file"):
        open_source("neuron:/no/such")


def test_the_documented_sample() -> None:
    corpus = os.environ.get("FUSETUI_CORPUS")
    if not corpus:
        pytest.skip("FUSETUI_CORPUS is not set")
    path = Path(corpus) / "traces" / "metrics" / "neuron_monitor_docs_sample.json"
    found = values(parse_report(json.loads(path.read_text())))
    assert [found[f"core {i} busy", 0, i][0] for i in range(4)] == [42.01, 42.019999999999996, 42.03, 42.04]
    assert found["latency total p99", None, None] == (0.01100012, "s")
    assert found["latency device p50", None, None] == (0.01000008, "s")
    assert found["memory used, devices", None, None] == (2e6, "B")


def test_stdin_is_the_one_given() -> None:
    assert OpenOptions().stdin is None
    data = io.BytesIO(json.dumps(report()).encode())
    source = open_source("neuron:-", stdin=data)
    assert isinstance(source, DeviceSource)
    assert source.poll(10)[0].num_rows == 10
    source.close()
