"""Google TPUs through the metrics service that libtpu runs beside a program that uses them (package tpu-info).

Asked over gRPC on loopback once a second; the service is there while such a program runs and no longer. Run times of
programs are what libtpu keeps of them, in buckets: a quantile is a bracket.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from fusetui.sources.device_rows import DeviceReading, Sample, reading
from fusetui.sources.device_source import PERIOD_S, DeviceSource
from fusetui.sources.prometheus_hist import quantile_bracket
from fusetui.sources.spec import OpenOptions, parameters
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.text import safe_text

NAMES: Final = ("tpu",)
SYNTAX: Final = "tpu, tpu:port=8431,period=2: counters of Google TPUs (needs the package tpu-info)"

PORT: Final = 8431
_TIMEOUT_S: Final = 2.0
_MOST_DEVICES: Final = 1024
_MOST_BUCKETS: Final = 4096
_GAUGES: Final = {
    "tpu.runtime.tensorcore.dutycycle.percent": ("tensorcore busy", "%"),
    "tpu.runtime.hbm.utilization.percent": ("memory bandwidth used", "%"),
    "tpu.runtime.hbm.memory.usage.bytes": ("memory used", "B"),
    "tpu.runtime.hbm.memory.total.bytes": ("memory total", "B"),
    "tpu.runtime.tensorcore.idle_duration.seconds": ("tensorcore idle for", "s"),
    "hlo.queue.size.gauge": ("programs queued", ""),
}
_RUNS: Final = "hlo.execution.timing.distribution.microseconds"
_QUANTILES: Final = (("p50", 0.5, 1), ("p95", 0.95, 1), ("p99", 0.99, 100))
_CAUTIONS: Final = (
    "tensorcore busy: share of time a program was on the core, not how much of it did work",
    "cores: libtpu tells of chips; work and waits of single operators need a profile (xplane)",
)

Ask = Callable[[str], Iterable[Any]]
"""The metrics of a name, as messages of libtpu; raises ConnectionError."""


class TpuProbe:
    """Asks libtpu. ask: what stands in for the service in tests."""

    name = "tpu"
    streams = False
    cautions = _CAUTIONS

    def __init__(self, port: int = PORT, ask: Ask | None = None) -> None:
        self._port, self._ask = port, ask
        self._absent: tuple[str, ...] = ()

    def open(self) -> Header:
        if self._ask is None:
            self._ask = _service(self._port)
        return Header(source="tpu", hardware={"service": f"libtpu on port {self._port}"})

    def read(self) -> Sample:
        assert self._ask is not None
        readings: list[DeviceReading] = []
        absent: list[str] = []
        problem = ""
        for name in (*_GAUGES, _RUNS):
            try:
                found = list(_readings(name, self._ask(name)))
            except ConnectionError as error:
                problem = safe_text(str(error), 200)
                break
            readings += found
            absent += [] if found else [f"{name}: this libtpu does not tell"]
        self._absent = tuple(absent) if readings else ()
        return Sample(readings, (), problem)

    def missing(self) -> Sequence[str]:
        return self._absent

    def stop(self) -> None:
        """A question ends at its deadline."""

    def close(self) -> None:
        """The channel goes with the probe."""


def _readings(name: str, metrics: Iterable[Any]) -> Iterator[DeviceReading]:
    for _, metric in zip(range(_MOST_DEVICES), metrics, strict=False):
        device = _device(metric.attribute.value)
        if name == _RUNS:
            yield from _runs(metric.distribution, device)
            continue
        row, unit = _GAUGES[name]
        field = metric.gauge.WhichOneof("value")
        value = getattr(metric.gauge, field) if field in ("as_int", "as_double") else None
        yield from reading(row, value, unit, device)


def _device(value: Any) -> int | None:
    """The chip: a number of its own, or the ordinal in a list of attributes, in newer versions as text."""
    listed = [each.value for each in value.kvlist_attr.attributes if each.key == "device_ordinal"]
    for one in listed or [value]:
        if one.WhichOneof("attr") == "int_attr" and 0 <= one.int_attr < 1 << 20:
            return int(one.int_attr)
        text = one.string_attr
        if text.isascii() and text.isdigit() and len(text) < 7:
            return int(text)
    return None


def _runs(distribution: Any, device: int | None) -> Iterator[DeviceReading]:
    """Count, mean and brackets of the run times in s; the buckets are in µs and grow by a factor."""
    counts = np.array(distribution.bucket_counts[:_MOST_BUCKETS], np.float64)
    n = float(counts.sum())
    if n <= 0:
        return
    yield from reading("program run n", n, "", device)
    yield from reading("program run mean", distribution.mean * 1e-6, "s", device)
    buckets = distribution.bucket_options.exponential_buckets
    if not (buckets.scale > 0 and buckets.growth_factor > 1):
        return
    with np.errstate(over="ignore"):
        bounds = buckets.scale * buckets.growth_factor ** np.arange(len(counts)) * 1e-6
    bounds[buckets.num_finite_buckets + 1 :] = np.inf  # what is beyond the last of them
    for label, q, least in _QUANTILES:
        bracket = quantile_bracket(bounds, counts, q) if n >= least else None
        if bracket is not None:
            yield from reading(f"program run {label} lo", bracket.lo, "s", device)
            yield from reading(f"program run {label} hi", bracket.hi, "s", device)


def _service(port: int) -> Ask:
    """libtpu's service on this machine. Raises TelemetryError when the package is missing."""
    try:
        grpc = importlib.import_module("grpc")
        messages = importlib.import_module("tpu_info.proto.tpu_metric_service_pb2")
        stubs = importlib.import_module("tpu_info.proto.tpu_metric_service_pb2_grpc")
    except ImportError:
        raise TelemetryError("tpu", "the package tpu-info is missing", "pip install tpu-info") from None
    channel = grpc.secure_channel(f"localhost:{port}", grpc.local_channel_credentials())
    stub = stubs.RuntimeMetricServiceStub(channel)

    def ask(name: str) -> Iterable[Any]:
        try:
            answer = stub.GetRuntimeMetric(messages.MetricRequest(metric_name=name), timeout=_TIMEOUT_S)
        except grpc.RpcError as error:
            if error.code() in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT):
                return ()
            where = f"libtpu on port {port}"
            raise ConnectionError(f"{where}: {error.code().name.lower()}; is a program using the TPU?") from None
        metrics: Iterable[Any] = answer.metric.metrics
        return metrics

    return ask


def open_spec(spec: str, options: OpenOptions) -> DeviceSource:
    """`tpu`, `tpu:port=PORT,period=SECONDS`."""
    given = {"port": float(PORT), "period": PERIOD_S, **parameters(spec, ("port", "period"))}
    if not (1 <= given["port"] < 65536 and 0.1 <= given["period"] <= 3600):
        raise TelemetryError(spec, "port or period out of range", "ports 1 to 65535, 0.1 to 3600 seconds")
    return DeviceSource(TpuProbe(int(given["port"])), given["period"])
