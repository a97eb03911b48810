"""The AMD SMI source against a stand-in of the library with known values."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from device_looks import values

from fusetui.sources.amdsmi import AmdSmiProbe
from fusetui.sources.registry import open_source
from fusetui.telemetry.errors import TelemetryError

NA = "N/A"


class AmdSmiException(Exception):  # noqa: N818
    pass


class Library:
    """One device of 8 dies, of which the fourth tells nothing."""

    AmdSmiException = AmdSmiException
    AmdSmiMemoryType = SimpleNamespace(VRAM=0)

    def __init__(self) -> None:
        self.table: dict[str, Any] = {
            "average_gfx_activity": 93,
            "average_umc_activity": NA,
            "current_socket_power": 65535,
            "average_socket_power": 551,
            "current_gfxclk": NA,
            "current_gfxclks": [NA, 2100, 2099],
            "current_uclk": 1300,
            "temperature_hotspot": 71,
            "temperature_mem": 58,
            "throttle_status": False,
            "xcp_stats.gfx_busy_inst": [[95, 94, 93, 0xFFFFFFFF, 96, 12, 97, 0], [NA] * 8],
        }
        self.broken = False

    def amdsmi_init(self) -> None: ...

    def amdsmi_shut_down(self) -> None: ...

    def amdsmi_get_processor_handles(self) -> list[int]:
        return [0]

    def amdsmi_get_gpu_asic_info(self, device: int) -> dict[str, str]:
        return {"market_name": "AMD Instinct MI300X"}

    def amdsmi_get_gpu_metrics_info(self, device: int) -> dict[str, Any]:
        if self.broken:
            raise AmdSmiException("device busy")
        return self.table

    def amdsmi_get_gpu_memory_usage(self, device: int, kind: int) -> int:
        return 5 << 30

    def amdsmi_get_gpu_memory_total(self, device: int, kind: int) -> int:
        return 192 << 30


def opened(library: Library) -> AmdSmiProbe:
    probe = AmdSmiProbe(library)
    assert probe.open().hardware == {"device 0": "AMD Instinct MI300X"}
    return probe


def test_values_and_units() -> None:
    probe = opened(Library())
    found = values(probe.read())
    assert {key[0]: value for key, value in found.items() if key[2] is None} == {
        "gpu busy": (93.0, "%"),
        "power": (551.0, "W"),
        "gfx clock": (2100.0, "MHz"),
        "memory clock": (1300.0, "MHz"),
        "temperature, hot spot": (71.0, "°C"),
        "temperature, memory": (58.0, "°C"),
        "memory used": (5 * 2.0**30, "B"),
        "memory total": (192 * 2.0**30, "B"),
        "throttled": (0.0, "0/1"),
    }
    assert probe.missing() == ("memory busy: device 0 does not tell",)


def test_dies_are_cores() -> None:
    found = values(opened(Library()).read())
    busy = {core: value[0] for (name, device, core), value in found.items() if core is not None and device == 0}
    assert busy == {0: 95.0, 1: 94.0, 2: 93.0, 4: 96.0, 5: 12.0, 6: 97.0, 7: 0.0}
    assert found["xcd 5 busy", 0, 5] == (12.0, "%")


def test_throttling_turns_are_marks() -> None:
    library = Library()
    probe = opened(library)
    assert probe.read().marks == []
    library.table["throttle_status"] = True
    sample = probe.read()
    assert sample.marks == ["device 0 throttled"]
    assert values(sample)["throttled", 0, None] == (1.0, "0/1")
    library.table["throttle_status"] = NA
    assert ("throttled", 0, None) not in values(probe.read())
    library.table["throttle_status"] = False
    assert probe.read().marks == ["device 0 no longer throttled"]


def test_a_device_without_a_metrics_table_still_tells_its_memory() -> None:
    library = Library()
    probe = opened(library)
    library.broken = True
    sample = probe.read()
    assert sample.problem == "device 0: device busy"
    assert set(values(sample)) == {("memory used", 0, None), ("memory total", 0, None)}


def test_no_package_is_one_line_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "amdsmi", None)
    with pytest.raises(TelemetryError, match=r"amdsmi is missing; pip install 'fusetui\[amd\]'"):
        open_source("amdsmi")
