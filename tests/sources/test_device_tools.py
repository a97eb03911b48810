"""tt-smi, xpu-smi and hl-smi: tables and snapshots of known content, and tools that misbehave."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from device_looks import install, values

from fusetui.sources.device_csv import heading
from fusetui.sources.device_power import asleep
from fusetui.sources.device_rows import Sample, number
from fusetui.sources.device_tool import Tool
from fusetui.sources.hlsmi import HlSmiProbe, parse_table
from fusetui.sources.registry import open_source
from fusetui.sources.ttsmi import TtSmiProbe, fixed_point, parse_snapshot, temperature_c
from fusetui.sources.xpusmi import XpuSmiProbe
from fusetui.telemetry.errors import TelemetryError

SNAPSHOT = {
    "device_info": [
        {
            "telemetry": {
                "voltage": "0.72",
                "current": " 23.0",
                "power": " 16.0",
                "aiclk": " 800",
                "asic_temperature": "34.8",
                "fan_speed": " 38",
            },
            "smbus_telem": {"ASIC_TEMPERATURE": "0x22d522"},
        },
        {"telemetry": {"power": "N/A", "aiclk": ""}, "smbus_telem": None},
    ]
}


def test_sixteen_sixteen_temperature() -> None:
    assert fixed_point("0x22d522") == pytest.approx(34.8326, abs=1e-4)
    assert fixed_point("0xfffe8000") == -1.5
    assert fixed_point("N/A") is None
    assert fixed_point("0x1ffffffff") is None
    assert fixed_point(7) is None


def test_the_finer_temperature_counts_only_where_it_agrees() -> None:
    assert temperature_c("34.8", "0x22d522") == pytest.approx(34.8326, abs=1e-4)
    assert temperature_c("61.3", "0x2f80214") == 61.3  # an older board: other things in the same word
    assert temperature_c(None, "0x22d522") == pytest.approx(34.8326, abs=1e-4)
    assert temperature_c(None, "0x2f80214") is None
    assert temperature_c(None, "0x0") is None


def test_a_snapshot() -> None:
    sample = parse_snapshot(b"warning: old firmware\n" + json.dumps(SNAPSHOT).encode())
    found = values(sample)
    assert found.pop(("temperature", 0, None)) == (pytest.approx(34.8326, abs=1e-4), "°C")
    assert found == {
        ("voltage", 0, None): (0.72, "V"),
        ("current", 0, None): (23.0, "A"),
        ("power", 0, None): (16.0, "W"),
        ("ai clock", 0, None): (800.0, "MHz"),
    }


@pytest.mark.parametrize(
    ("printed", "problem"),
    [
        (b"", "printed no JSON"),
        (b"{", "printed no JSON"),
        (b"[" * 100_000, "printed no JSON"),
        (b"[]", "no device_info"),
        (b'{"device_info": {}}', "no device_info"),
        (b'{"device_info": [null, 3]}', "no device tells anything"),
    ],
)
def test_no_snapshot_is_a_problem(printed: bytes, problem: str) -> None:
    sample = parse_snapshot(printed)
    assert problem in sample.problem
    assert not sample.readings


def test_the_sampled_board() -> None:
    corpus = os.environ.get("FUSETUI_CORPUS")
    if not corpus:
        pytest.skip("FUSETUI_CORPUS is not set")
    found = values(parse_snapshot((Path(corpus) / "traces/metrics/tt_smi_s_p300c_sample.json").read_bytes()))
    assert round(found["temperature", 0, None][0], 2) == 34.83
    assert found["ai clock", 0, None] == (800.0, "MHz")


def test_a_tool_is_polled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "tt-smi", f"assert sys.argv[1:] == ['-s']\nprint({json.dumps(SNAPSHOT)!r})", monkeypatch)
    source = open_source("tt-smi")
    (batch,) = source.poll(20)
    assert batch.num_rows == 5
    source.close()
    assert source.health().state == "ended"


def test_a_tool_that_hangs_or_floods_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "tt-smi", "time.sleep(600)", monkeypatch)
    probe = TtSmiProbe(Tool(("tt-smi", "-s"), timeout_s=0.2))
    assert probe.read() == Sample(problem="tt-smi gave no answer within 0.2 s")
    probe.close()
    install(tmp_path, "tt-smi", "while True: print('x' * 100_000)", monkeypatch)
    probe = TtSmiProbe(Tool(("tt-smi", "-s")))
    assert probe.read() == Sample(problem="tt-smi printed over 8 MiB")
    probe.close()
    install(tmp_path, "tt-smi", "sys.stderr.write('first\\nno board\\n'); sys.exit(3)", monkeypatch)
    probe = TtSmiProbe(Tool(("tt-smi", "-s")))
    assert probe.read() == Sample(problem="tt-smi ended with code 3: no board")
    probe.close()


@pytest.mark.parametrize("name", ["tt-smi", "xpu-smi", "hl-smi"])
def test_a_missing_tool_is_one_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TelemetryError, match=f"{name}: no such command on PATH"):
        open_source(name)


XPU_HEAD = (
    "Timestamp, DeviceId, GPU Utilization (%), GPU Power (W), GPU Frequency (MHz),"
    " GPU Core Temperature (Celsius Degree), GPU Memory Used (MiB), Odd (furlongs)\n"
)
XPU = (
    XPU_HEAD
    + """06:14:46.000,    0, 12.50, 118.20, 1350, 41.00, 66.00, 3
06:14:46.000,    1, N/A, 7.5, , N/A, 0.5, 3
"""
)


def test_xpu_smi_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "xpu-smi", f"print({XPU!r}, end='')\nsys.stdout.flush()\ntime.sleep(600)", monkeypatch)
    probe = XpuSmiProbe()
    probe.open()
    head, first, second = probe.read(), probe.read(), probe.read()
    assert head == Sample()
    assert first is not None
    assert values(first) == {
        ("gpu busy", 0, None): (12.5, "%"),
        ("power", 0, None): (118.2, "W"),
        ("gpu clock", 0, None): (1350.0, "MHz"),
        ("temperature", 0, None): (41.0, "°C"),
        ("memory used", 0, None): (66.0 * (1 << 20), "B"),
    }
    assert second is not None
    assert values(second) == {
        ("power", 1, None): (7.5, "W"),
        ("memory used", 1, None): (0.5 * (1 << 20), "B"),
    }
    probe.close()


HL = """index, utilization.aip [%], memory.used [MiB], memory.total [MiB], temperature.aip [C], power.draw [W]
0, 31 %, 768 MiB, 98304 MiB, 40 C, 231 W
1, 101 %, 768, N/A, 40, 90 K
"""


def test_hl_smi_table() -> None:
    found = values(parse_table("note: something\n" + HL))
    assert found == {
        ("device busy", 0, None): (31.0, "%"),
        ("memory used", 0, None): (768.0 * (1 << 20), "B"),
        ("memory total", 0, None): (98304.0 * (1 << 20), "B"),
        ("temperature", 0, None): (40.0, "°C"),
        ("power", 0, None): (231.0, "W"),
        ("memory used", 1, None): (768.0 * (1 << 20), "B"),
        ("temperature", 1, None): (40.0, "°C"),
    }
    assert parse_table("").problem == "hl-smi: printed no table that begins with index"
    assert "known unit" in parse_table("index, power.draw\n0, 5\n").problem


def test_hl_smi_is_asked_for_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "hl-smi", f"assert sys.argv[3:] == ['-f', 'csv']\nprint({HL!r})", monkeypatch)
    probe = HlSmiProbe()
    probe.open()
    assert len(probe.read().readings) == 7
    probe.close()


def test_headings_and_numbers() -> None:
    assert heading("GPU Power (W)") == ("gpu power", "w")
    assert heading("power.draw [W]") == ("power.draw", "w")
    assert heading("DeviceId") == ("deviceid", "")
    assert [number(v) for v in (" 23.0", 3, True, "N/A", "nan", "inf", None, [], 10**400)] == [23.0, 3.0] + [None] * 7


def test_sleeping_devices_are_seen(tmp_path: Path) -> None:
    assert not asleep("0x10de", tmp_path)
    for name, vendor, kind, state in (
        ("a", "0x10de", "0x030200", "suspended"),
        ("b", "0x10de", "0x040300", "active"),  # its sound function
        ("c", "0x1002", "0x030000", "active"),
    ):
        device = tmp_path / "bus/pci/devices" / name
        (device / "power").mkdir(parents=True)
        (device / "vendor").write_text(vendor + "\n")
        (device / "class").write_text(kind + "\n")
        (device / "power/runtime_status").write_text(state + "\n")
    assert asleep("0x10de", tmp_path)
    assert not asleep("0x1002", tmp_path)
