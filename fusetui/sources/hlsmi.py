"""Intel Gaudi devices through the table that `hl-smi -Q … -f csv` prints, asked once a period."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fusetui.sources.device_csv import cells, heading, row_readings
from fusetui.sources.device_rows import Sample
from fusetui.sources.device_source import DeviceSource, period_of
from fusetui.sources.device_tool import Tool
from fusetui.sources.spec import OpenOptions
from fusetui.telemetry.header import Header

NAMES: Final = ("hl-smi",)
SYNTAX: Final = "hl-smi, hl-smi:period=5: utilisation, memory, power and temperature of Gaudi devices"

_BUSY: Final = "device busy: as hl-smi counts it, over its own period; not how much of the device was used"
_NAMES: Final = {
    "utilization.aip": "device busy",
    "memory.used": "memory used",
    "memory.total": "memory total",
    "temperature.aip": "temperature",
    "power.draw": "power",
}


class HlSmiProbe:
    """Runs hl-smi. tool: the command, replaceable in tests."""

    name = "hl-smi"
    streams = False
    cautions = (_BUSY, "clocks, throttling, cores: hl-smi's table tells none")

    def __init__(self, tool: Tool | None = None) -> None:
        self._tool = tool or Tool(("hl-smi", "-Q", ",".join(("index", *_NAMES)), "-f", "csv"))

    def open(self) -> Header:
        self._tool.find()
        return Header(source="hl-smi", build={"device busy means": _BUSY})

    def read(self) -> Sample:
        printed, problem = self._tool.ask()
        return Sample(problem=problem) if problem else parse_table(printed.decode(errors="replace"))

    def missing(self) -> Sequence[str]:
        return ()

    def stop(self) -> None:
        self._tool.stop()

    def close(self) -> None:
        self._tool.close()


def parse_table(printed: str) -> Sample:
    """Counters of all devices; a problem instead when there is no table with a device number in it."""
    lines = [line for line in printed.splitlines() if line.strip()]
    begin = next((at for at, line in enumerate(lines) if heading(cells(line)[0])[0] == "index"), None)
    if begin is None:
        return Sample(problem="hl-smi: printed no table that begins with index")
    headings = [heading(cell) for cell in cells(lines[begin])]
    rows = [row_readings(headings, cells(line), "index", _NAMES) for line in lines[begin + 1 :]]
    readings = [reading for row in rows for reading in row]
    return Sample(readings, problem="" if readings else "hl-smi: no device tells anything in a known unit")


def open_spec(spec: str, options: OpenOptions) -> DeviceSource:
    """`hl-smi`, `hl-smi:period=SECONDS`."""
    return DeviceSource(HlSmiProbe(), period_of(spec))
