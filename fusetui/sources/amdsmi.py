"""AMD devices through AMD SMI (package amdsmi and ROCm's libamd_smi.so).

One reading of the metrics table per device and second; nothing is written. Busy per XCD, the compute dies of one
device, is the one vendor counter that shows imbalance within a device: its rows carry a core number.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fusetui.sources.device_power import AMD, refuse_to_wake
from fusetui.sources.device_rows import DeviceReading, Sample, reading
from fusetui.sources.device_source import DeviceSource, period_of
from fusetui.sources.spec import OpenOptions
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.text import safe_text

NAMES: Final = ("amdsmi",)
SYNTAX: Final = "amdsmi, amdsmi:period=2: counters of AMD devices, busy per XCD (needs ROCm and amdsmi)"

_BUSY: Final = "gpu busy: share of time the graphics and compute engine had work, not how much of the device it filled"
_CAUTIONS: Final = (
    _BUSY,
    "xcd busy: one instant of each die, so a second between looks hides short work",
    "throttling: whether, not why; the residency counters are left out",
)
_MAX_UINTS: Final = frozenset({0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF})
"""What the metrics table holds where it knows nothing."""

_GAUGES: Final = (
    ("gpu busy", ("average_gfx_activity",), "%"),
    ("memory busy", ("average_umc_activity",), "%"),
    ("power", ("current_socket_power", "average_socket_power"), "W"),
    ("gfx clock", ("current_gfxclk", "current_gfxclks"), "MHz"),
    ("memory clock", ("current_uclk",), "MHz"),
    ("temperature, hot spot", ("temperature_hotspot",), "°C"),
    ("temperature, memory", ("temperature_mem",), "°C"),
)
"""Name of the counter, fields of the metrics table of which the first known one counts, unit."""


class AmdSmiProbe:
    """Asks AMD SMI. library: the module `amdsmi`, or what stands in for it in tests."""

    name = "amdsmi"
    streams = False
    cautions = _CAUTIONS

    def __init__(self, library: Any = None) -> None:
        self._library = library
        self._devices: list[Any] = []
        self._throttled: set[int] = set()
        self._absent: set[str] = set()
        self._lock = threading.Lock()
        self._ready = False

    def open(self) -> Header:
        smi = self._library = self._library or _import()
        try:
            smi.amdsmi_init()
            self._ready = True
            self._devices = list(smi.amdsmi_get_processor_handles())
            names = [
                safe_text(str(smi.amdsmi_get_gpu_asic_info(d).get("market_name", "AMD")), 200) for d in self._devices
            ]
        except smi.AmdSmiException as error:
            raise TelemetryError("amdsmi", f"the driver does not answer ({error})", "is amdgpu loaded?") from None
        if not names:
            raise TelemetryError("amdsmi", "the driver has no devices")
        hardware = {f"device {i}": name for i, name in enumerate(names)}
        return Header(source="amdsmi", hardware=hardware, build={"gpu busy means": _BUSY})

    def read(self) -> Sample:
        readings: list[DeviceReading] = []
        marks: list[str] = []
        problem = ""
        for number, device in enumerate(self._devices):
            # Guests often have no metrics table, and tell their memory all the same.
            for part in (self._table, self._memory):
                try:
                    told, turned = part(number, device)
                except self._library.AmdSmiException as error:
                    problem = f"device {number}: {error}"
                    continue
                readings += told
                marks += turned
        return Sample(readings, marks, problem)

    def missing(self) -> Sequence[str]:
        with self._lock:
            return tuple(sorted(self._absent))

    def stop(self) -> None:
        """A question to the driver cannot be called off."""

    def close(self) -> None:
        if self._ready:
            self._ready = False
            with contextlib.suppress(self._library.AmdSmiException):
                self._library.amdsmi_shut_down()

    def _table(self, number: int, device: Any) -> tuple[list[DeviceReading], list[str]]:
        table = self._library.amdsmi_get_gpu_metrics_info(device)
        readings = [*self._gauges(number, table), *_xcds(number, table.get("xcp_stats.gfx_busy_inst"))]
        throttled = _known(table.get("throttle_status"))
        if not throttled:
            return readings, []
        readings += reading("throttled", float(bool(throttled[0])), "0/1", number)
        return readings, list(self._turned(number, bool(throttled[0])))

    def _memory(self, number: int, device: Any) -> tuple[list[DeviceReading], list[str]]:
        smi, vram = self._library, self._library.AmdSmiMemoryType.VRAM
        used = reading("memory used", smi.amdsmi_get_gpu_memory_usage(device, vram), "B", number)
        return used + reading("memory total", smi.amdsmi_get_gpu_memory_total(device, vram), "B", number), []

    def _gauges(self, number: int, table: Mapping[str, Any]) -> Iterator[DeviceReading]:
        for name, fields, unit in _GAUGES:
            known = [value for field in fields for value in _known(table.get(field))]
            found = reading(name, known[0], unit, number) if known else []
            line = f"{name}: device {number} does not tell"
            with self._lock:
                (self._absent.discard if found else self._absent.add)(line)
            yield from found

    def _turned(self, number: int, throttled: bool) -> Iterator[str]:
        if throttled == (number in self._throttled):
            return
        if throttled:
            self._throttled.add(number)
            yield f"device {number} throttled"
        else:
            self._throttled.discard(number)
            yield f"device {number} no longer throttled"


def _known(value: Any) -> list[Any]:
    """What is known of a field or of the entries of one."""
    values = value if isinstance(value, list) else [value]
    return [v for v in values if isinstance(v, (int, float)) and v not in _MAX_UINTS]


def _xcds(number: int, partitions: Any) -> Iterator[DeviceReading]:
    """Busy per XCD from rows per partition; the core number counts all places, known or not."""
    core = -1
    for row in partitions if isinstance(partitions, list) else ():
        for value in row if isinstance(row, list) else ():
            core += 1
            if _known(value):
                yield from reading(f"xcd {core} busy", value, "%", number, core)


def _import() -> Any:
    refuse_to_wake("amdsmi", AMD)
    said = io.StringIO()
    try:
        # Without its shared library the module prints and then fails on a missing key.
        with contextlib.redirect_stdout(said):
            return importlib.import_module("amdsmi")
    except ImportError:
        raise TelemetryError("amdsmi", "the package amdsmi is missing", "pip install 'fusetui[amd]'") from None
    except (KeyError, OSError, AttributeError) as error:
        told = said.getvalue().strip().splitlines()
        raise TelemetryError("amdsmi", told[0] if told else str(error), "install amd-smi-lib of ROCm") from None


def open_spec(spec: str, options: OpenOptions) -> DeviceSource:
    """`amdsmi`, `amdsmi:period=SECONDS`."""
    return DeviceSource(AmdSmiProbe(), period_of(spec))
