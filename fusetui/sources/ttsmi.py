"""Tenstorrent devices through snapshots of `tt-smi -s`, taken one after another.

Each snapshot starts the tool anew, so a period of some seconds (`tt-smi:period=5`) is kinder to a small host. Its
numbers are padded strings and its SMBus words hex. Temperatures of newer boards are 16.16 fixed point there, finer
than the printed one: 0x22d522 is 34.83 °C.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fusetui.sources.device_rows import DeviceReading, Sample, number, reading
from fusetui.sources.device_source import DeviceSource, period_of
from fusetui.sources.device_tool import Tool
from fusetui.sources.spec import OpenOptions
from fusetui.telemetry.header import Header

NAMES: Final = ("tt-smi",)
SYNTAX: Final = "tt-smi, tt-smi:period=5: clocks, power and temperature of Tenstorrent devices"

_CAUTIONS: Final = (
    "utilisation, memory, queue: tt-smi tells none; clocks and power say that a device works, not how well",
    "fan speed: left out, its unit differs by board",
)
_GAUGES: Final = (
    ("voltage", "voltage", "V"),
    ("current", "current", "A"),
    ("power", "power", "W"),
    ("ai clock", "aiclk", "MHz"),
)
_AGREE_C: Final = 1.0
_MAX_DEVICES: Final = 1024


class TtSmiProbe:
    """Runs tt-smi. tool: the command, replaceable in tests."""

    name = "tt-smi"
    streams = False
    cautions = _CAUTIONS

    def __init__(self, tool: Tool | None = None) -> None:
        self._tool = tool or Tool(("tt-smi", "-s"))

    def open(self) -> Header:
        self._tool.find()
        return Header(source="tt-smi")

    def read(self) -> Sample:
        printed, problem = self._tool.ask()
        return Sample(problem=problem) if problem else parse_snapshot(printed)

    def missing(self) -> Sequence[str]:
        return ()

    def stop(self) -> None:
        self._tool.stop()

    def close(self) -> None:
        self._tool.close()


def parse_snapshot(printed: bytes) -> Sample:
    """Counters of all devices in what `tt-smi -s` prints; a problem instead when that is no snapshot."""
    # Some versions print warnings before the JSON.
    begin = printed.find(b"{")
    try:
        snapshot = json.loads(printed[max(begin, 0) :])
    except (ValueError, RecursionError) as error:
        return Sample(problem=f"tt-smi: printed no JSON ({error})")
    devices = snapshot.get("device_info") if isinstance(snapshot, dict) else None
    if not isinstance(devices, list):
        return Sample(problem="tt-smi: the snapshot has no device_info")
    readings = [
        r for i, device in enumerate(devices[:_MAX_DEVICES]) if isinstance(device, dict) for r in _device(i, device)
    ]
    return Sample(readings, problem="" if readings else "tt-smi: no device tells anything")


def _device(at: int, device: Mapping[str, Any]) -> Iterator[DeviceReading]:
    told = device.get("telemetry")
    telemetry = told if isinstance(told, dict) else {}
    for name, key, unit in _GAUGES:
        yield from reading(name, telemetry.get(key), unit, at)
    smbus = device.get("smbus_telem")
    raw = smbus.get("ASIC_TEMPERATURE") if isinstance(smbus, dict) else None
    yield from reading("temperature", temperature_c(telemetry.get("asic_temperature"), raw), "°C", at)


def temperature_c(printed: object, raw: object) -> float | None:
    """The temperature in °C: the SMBus word as 16.16 fixed point where it agrees with the printed one, else that.

    Older boards pack other things into the same word, so alone it counts only when it reads as a temperature.
    """
    coarse, fine = number(printed), fixed_point(raw)
    if fine is None or (coarse is not None and abs(fine - coarse) > _AGREE_C):
        return coarse
    return fine if coarse is not None or 0 < fine < 130 else None


def fixed_point(word: object) -> float | None:
    """A hex word as signed 16.16 fixed point; None when it is none."""
    try:
        value = int(word, 16) if isinstance(word, str) else None
    except ValueError:
        return None
    if value is None or not 0 <= value < 1 << 32:
        return None
    return (value - (1 << 32) if value >= 1 << 31 else value) / 65536


def open_spec(spec: str, options: OpenOptions) -> DeviceSource:
    """`tt-smi`, `tt-smi:period=SECONDS`."""
    return DeviceSource(TtSmiProbe(), period_of(spec))
