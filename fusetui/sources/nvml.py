"""NVIDIA devices through NVML, the driver's own library (package nvidia-ml-py, the extra `nvidia`).

Read-only queries, once a second: no profiling metrics, no per-process accounting, no setting is written. Units here:
shares in %, clocks in MHz, power in W (NVML: mW), memory in B, temperature in °C, throttle reasons 1 or 0.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from fusetui.sources.device_power import NVIDIA, refuse_to_wake
from fusetui.sources.device_rows import DeviceReading, Sample, reading
from fusetui.sources.device_source import DeviceSource, period_of
from fusetui.sources.spec import OpenOptions
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.text import safe_text

NAMES: Final = ("nvml",)
SYNTAX: Final = "nvml, nvml:period=2: counters of NVIDIA devices (needs the extra nvidia)"

_BUSY: Final = "gpu busy: share of time with any kernel on the device; one small kernel on one SM reads 100 %"
_CAUTIONS: Final = (
    _BUSY,
    "memory busy: share of time memory was read or written, not the bandwidth used",
    "cores: NVML tells nothing per SM; work, queue and waits need a profile or an Arrow producer",
)

_THROTTLE: Final = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal, by software",
    0x40: "thermal, by hardware",
    0x80: "power brake",
}
"""Bits of nvmlClocksEventReasons that hold clocks down against the device's will; idle and chosen clocks are not."""


class NvmlProbe:
    """Asks NVML. library: the module `pynvml`, or what stands in for it in tests."""

    name = "nvml"
    streams = False
    cautions = _CAUTIONS

    def __init__(self, library: Any = None) -> None:
        self._library = library
        self._devices: list[Any] = []
        self._throttled: set[tuple[int, str]] = set()
        self._absent: dict[tuple[int, str], str] = {}
        self._lock = threading.Lock()
        self._problem = ""
        self._ready = False

    def open(self) -> Header:
        nvml = self._library = self._library or _import()
        try:
            nvml.nvmlInit()
            self._ready = True
            driver = _text(nvml.nvmlSystemGetDriverVersion())
            self._devices = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
            names = [_text(nvml.nvmlDeviceGetName(device)) for device in self._devices]
        except nvml.NVMLError as error:
            raise TelemetryError(
                "nvml",
                f"the driver does not answer ({error})",
                "is it loaded, and the device passed to this container?",
            ) from None
        if not names:
            raise TelemetryError("nvml", "the driver has no devices")
        hardware = {f"device {i}": name for i, name in enumerate(names)}
        return Header(source="nvml", hardware=hardware, build={"driver": driver, "gpu busy means": _BUSY})

    def read(self) -> Sample:
        self._problem = ""
        readings: list[DeviceReading] = []
        marks: list[str] = []
        for number, device in enumerate(self._devices):
            readings += self._gauges(number, device)
            reasons = self._ask(number, "throttle reasons", self._reasons, device)
            if reasons is not None:
                readings += [
                    DeviceReading(f"throttled: {name}", float(bool(reasons & bit)), "0/1", number)
                    for bit, name in _THROTTLE.items()
                ]
                marks += self._turned(number, reasons)
        return Sample(readings, marks, self._problem)

    def missing(self) -> Sequence[str]:
        with self._lock:
            return tuple(self._absent.values())

    def stop(self) -> None:
        """A question to the driver cannot be called off."""

    def close(self) -> None:
        if self._ready:
            self._ready = False
            try:
                self._library.nvmlShutdown()
            except self._library.NVMLError as error:
                self._problem = f"nvml: did not shut down ({error})"

    def _gauges(self, number: int, device: Any) -> Iterator[DeviceReading]:
        nvml = self._library
        share = self._ask(number, "gpu busy", nvml.nvmlDeviceGetUtilizationRates, device)
        if share is not None:
            yield from reading("gpu busy", share.gpu, "%", number)
            yield from reading("memory busy", share.memory, "%", number)
        memory = self._ask(number, "memory used", nvml.nvmlDeviceGetMemoryInfo, device)
        if memory is not None:
            yield from reading("memory used", memory.used, "B", number)
            yield from reading("memory total", memory.total, "B", number)
        for name, clock in (("sm clock", nvml.NVML_CLOCK_SM), ("memory clock", nvml.NVML_CLOCK_MEM)):
            yield from reading(name, self._ask(number, name, nvml.nvmlDeviceGetClockInfo, device, clock), "MHz", number)
        for name, watch in (
            ("power", nvml.nvmlDeviceGetPowerUsage),
            ("power limit", nvml.nvmlDeviceGetEnforcedPowerLimit),
        ):
            milliwatts = self._ask(number, name, watch, device)
            yield from reading(name, None if milliwatts is None else milliwatts / 1000, "W", number)
        celsius = self._ask(number, "temperature", nvml.nvmlDeviceGetTemperature, device, nvml.NVML_TEMPERATURE_GPU)
        yield from reading("temperature", celsius, "°C", number)

    def _reasons(self, device: Any) -> int:
        current = getattr(self._library, "nvmlDeviceGetCurrentClocksEventReasons", None)
        return int((current or self._library.nvmlDeviceGetCurrentClocksThrottleReasons)(device))

    def _turned(self, number: int, reasons: int) -> Iterator[str]:
        for bit, name in _THROTTLE.items():
            key = (number, name)
            if bool(reasons & bit) == (key in self._throttled):
                continue
            if reasons & bit:
                self._throttled.add(key)
                yield f"device {number} throttled: {name}"
            else:
                self._throttled.discard(key)
                yield f"device {number} no longer throttled: {name}"

    def _ask(self, number: int, what: str, question: Callable[..., Any], *about: Any) -> Any:
        """The answer; None when the device does not tell, which `missing` then says, or failed to."""
        nvml = self._library
        try:
            answer = question(*about)
        except nvml.NVMLError as error:
            if getattr(error, "value", None) == nvml.NVML_ERROR_NOT_SUPPORTED:
                with self._lock:
                    self._absent[number, what] = f"{what}: device {number} does not tell"
            else:
                self._problem = f"device {number}, {what}: {error}"
            return None
        with self._lock:
            self._absent.pop((number, what), None)
        return answer


def _import() -> Any:
    refuse_to_wake("nvml", NVIDIA)
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        raise TelemetryError("nvml", "the package nvidia-ml-py is missing", "pip install 'fusetui[nvidia]'") from None


def _text(value: str | bytes) -> str:
    return safe_text(value.decode(errors="replace") if isinstance(value, bytes) else value, 200)


def open_spec(spec: str, options: OpenOptions) -> DeviceSource:
    """`nvml`, `nvml:period=SECONDS`."""
    return DeviceSource(NvmlProbe(), period_of(spec))
