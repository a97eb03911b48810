"""The NVML source against a stand-in of the library with known values."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from device_looks import rows, values

from fusetui.sources.device_source import DeviceSource
from fusetui.sources.nvml import NvmlProbe
from fusetui.sources.registry import open_source
from fusetui.telemetry.errors import TelemetryError


class NVMLError(Exception):
    def __init__(self, value: int, text: str) -> None:
        super().__init__(text)
        self.value = value


class Library:
    """Two devices; the second is partitioned, so NVML tells no utilisation of it."""

    NVMLError = NVMLError
    NVML_ERROR_NOT_SUPPORTED = 3
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    def __init__(self) -> None:
        self.reasons = 0
        self.lost = False
        self.shut = 0
        self.loaded = True

    def nvmlInit(self) -> None:
        if not self.loaded:
            raise NVMLError(9, "Driver Not Loaded")

    def nvmlShutdown(self) -> None:
        self.shut += 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.65.06"

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetName(self, device: int) -> str | bytes:
        return b"NVIDIA H\x1b200" if device else "NVIDIA H200"

    def nvmlDeviceGetUtilizationRates(self, device: int) -> Any:
        if self.lost:
            raise NVMLError(15, "GPU is lost")
        if device:
            raise NVMLError(3, "Not Supported")
        return SimpleNamespace(gpu=87, memory=41)

    def nvmlDeviceGetMemoryInfo(self, device: int) -> Any:
        return SimpleNamespace(used=3 << 30, total=139 << 30, free=136 << 30)

    def nvmlDeviceGetClockInfo(self, device: int, clock: int) -> int:
        return {1: 1980, 2: 3201}[clock]

    def nvmlDeviceGetPowerUsage(self, device: int) -> int:
        return 412_345

    def nvmlDeviceGetEnforcedPowerLimit(self, device: int) -> int:
        return 700_000

    def nvmlDeviceGetTemperature(self, device: int, sensor: int) -> int:
        return 61

    def nvmlDeviceGetCurrentClocksEventReasons(self, device: int) -> int:
        return self.reasons if device == 0 else 1  # idle


def opened(library: Library) -> NvmlProbe:
    probe = NvmlProbe(library)
    probe.header = probe.open()  # type: ignore[attr-defined]
    return probe


def test_values_and_units() -> None:
    library = Library()
    found = values(opened(library).read())
    assert {key[0]: value for key, value in found.items() if key[1] == 0 and "throttled" not in key[0]} == {
        "gpu busy": (87.0, "%"),
        "memory busy": (41.0, "%"),
        "memory used": (3 * 2.0**30, "B"),
        "memory total": (139 * 2.0**30, "B"),
        "sm clock": (1980.0, "MHz"),
        "memory clock": (3201.0, "MHz"),
        "power": (412.345, "W"),
        "power limit": (700.0, "W"),
        "temperature": (61.0, "°C"),
    }


def test_what_a_device_does_not_tell_is_absent_and_named() -> None:
    probe = opened(Library())
    found = values(probe.read())
    assert ("gpu busy", 1, None) not in found
    assert found["power", 1, None] == (412.345, "W")
    assert probe.missing() == ("gpu busy: device 1 does not tell",)


def test_throttle_reasons_are_counters_and_their_turns_marks() -> None:
    library = Library()
    probe = opened(library)
    assert probe.read().marks == []
    library.reasons = 0x04 | 0x40 | 0x01 | 0x02  # power cap, thermal by hardware; idle and chosen clocks are neither
    sample = probe.read()
    on = {key[0] for key, value in values(sample).items() if key[0].startswith("throttled") and value[0] == 1.0}
    assert on == {"throttled: power cap", "throttled: thermal, by hardware"}
    assert sample.marks == ["device 0 throttled: power cap", "device 0 throttled: thermal, by hardware"]
    assert probe.read().marks == []
    library.reasons = 0x40
    assert probe.read().marks == ["device 0 no longer throttled: power cap"]


def test_rows_of_the_contract() -> None:
    library = Library()
    library.reasons = 0x08
    got = rows(opened(library).read())
    marks = [row for row in got if row["kind"] == "mark"]
    assert [row["name"] for row in marks] == ["device 0 throttled: hardware slowdown"]
    assert {row["start_ns"] for row in got} == {row["end_ns"] for row in got} == {7}
    assert all(row["core"] is None and row["device"] in (0, 1) for row in got if row["kind"] == "counter")


def test_header_says_what_utilisation_does_not_prove_and_names_are_safe() -> None:
    header = opened(Library()).header  # type: ignore[attr-defined]
    assert header.hardware == {"device 0": "NVIDIA H200", "device 1": "NVIDIA H·200"}
    assert header.build["driver"] == "580.65.06"
    assert "one small kernel on one SM reads 100 %" in header.build["gpu busy means"]


def test_a_lost_device_is_a_problem_and_the_rest_goes_on() -> None:
    library = Library()
    probe = opened(library)
    library.lost = True
    sample = probe.read()
    assert sample.problem == "device 1, gpu busy: GPU is lost"
    assert values(sample)["power", 0, None] == (412.345, "W")


def test_no_driver_is_one_line() -> None:
    library = Library()
    library.loaded = False
    with pytest.raises(TelemetryError, match="the driver does not answer \\(Driver Not Loaded\\); is it loaded"):
        DeviceSource(NvmlProbe(library))


def test_no_package_is_one_line_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)
    with pytest.raises(TelemetryError, match=r"nvidia-ml-py is missing; pip install 'fusetui\[nvidia\]'"):
        open_source("nvml")


@pytest.mark.parametrize("spec", ["nvml:period=0", "nvml:period=nan", "nvml:period=x", "nvml:rate=1"])
def test_a_wrong_period_is_refused(spec: str) -> None:
    with pytest.raises(TelemetryError, match=r"0\.1 to 3600|not a number|unknown parameter"):
        open_source(spec)


def test_live_then_closed() -> None:
    library = Library()
    source = DeviceSource(NvmlProbe(library), wall_ns=lambda: 9)
    try:
        (batch,) = source.poll(10)
        assert set(batch.column("end_ns").to_pylist()) == {9}
        health = source.health()
        assert (health.state, health.batches, health.rows) == ("live", 1, batch.num_rows)
        assert health.detail == "NVIDIA H200, NVIDIA H·200"
        assert "gpu busy: device 1 does not tell" in health.missing
    finally:
        source.close()
    for thread in threading.enumerate():
        if thread.name == "ask nvml":
            thread.join(5)
    assert source.health().state == "ended"
    assert library.shut == 1


def test_a_driver_that_never_answers_is_hung_and_blocks_nobody() -> None:
    library, release, asked = Library(), threading.Event(), threading.Event()

    def stuck(device: int) -> int:
        asked.set()
        release.wait(60)
        return 0

    library.nvmlDeviceGetPowerUsage = stuck  # type: ignore[method-assign]
    clock = [0.0]
    source = DeviceSource(NvmlProbe(library), monotonic_s=lambda: clock[0])
    try:
        assert asked.wait(10)
        assert source.poll(0.01) == ()
        assert source.health().state == "waiting"
        clock[0] = 5.5
        assert source.health().state == "hung"
        assert source.health().detail == "no answer for 6 s"
        source.close()
        assert source.health().state == "ended"
    finally:
        release.set()
