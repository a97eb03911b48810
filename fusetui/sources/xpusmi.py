"""Intel GPUs through the table that `xpu-smi dump` prints, a line per device and second.

Columns are taken by their heading and printed unit, since versions 1 and 2 order them differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fusetui.sources.device_csv import cells, heading, row_readings
from fusetui.sources.device_rows import Sample
from fusetui.sources.device_source import DeviceSource
from fusetui.sources.device_tool import Tool
from fusetui.sources.spec import OpenOptions, no_parameters
from fusetui.telemetry.header import Header

NAMES: Final = ("xpu-smi",)
SYNTAX: Final = "xpu-smi: utilisation, memory, clock, power and temperature of Intel GPUs"

_BUSY: Final = "gpu busy: share of time any engine had work, not how much of the device it filled"
_CAUTIONS: Final = (
    _BUSY,
    "execution units (active, stalled, idle): left out, reading them switches a profiling mode on",
)
_METRICS: Final = "0,1,2,3,18"
_NAMES: Final = {
    "gpu utilization": "gpu busy",
    "gpu power": "power",
    "gpu frequency": "gpu clock",
    "gpu core temperature": "temperature",
    "gpu memory used": "memory used",
}


class XpuSmiProbe:
    """Reads `xpu-smi dump`. tool: the command, replaceable in tests."""

    name = "xpu-smi"
    streams = True
    cautions = _CAUTIONS

    def __init__(self, tool: Tool | None = None) -> None:
        self._tool = tool or Tool(("xpu-smi", "dump", "-d", "-1", "--metrics", _METRICS))
        self._headings: list[tuple[str, str]] = []

    def open(self) -> Header:
        self._tool.find()
        return Header(source="xpu-smi", build={"gpu busy means": _BUSY})

    def read(self) -> Sample | None:
        line = self._tool.line()
        if not line:
            return None
        values = cells(line.decode(errors="replace"))
        if values[0].lower() == "timestamp":
            self._headings = [heading(cell) for cell in values]
            return Sample()
        readings = list(row_readings(self._headings, values, "deviceid", _NAMES))
        return Sample(readings, problem="" if readings else "xpu-smi: a line tells nothing known")

    def missing(self) -> Sequence[str]:
        return ()

    def stop(self) -> None:
        self._tool.stop()

    def close(self) -> None:
        self._tool.close()


def open_spec(spec: str, options: OpenOptions) -> DeviceSource:
    """`xpu-smi`."""
    no_parameters(spec)
    return DeviceSource(XpuSmiProbe())
