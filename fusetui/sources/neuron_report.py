"""One report of neuron-monitor as counters. Keys differ by version and any value may be null."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fusetui.sources.device_rows import DeviceReading, Sample, number, reading
from fusetui.telemetry.text import safe_text

_MAX_CORES: Final = 65536
_MAX_RUNTIMES: Final = 1024


def parse_report(report: Mapping[str, Any]) -> Sample:
    """Counters of all runtimes in a report; latencies in s, shares in %, memory in B.

    device  of a core: its number over the cores per device, where the report tells those
    """
    per_device = number(_map(report, "neuron_hardware_info").get("neuroncore_per_device_count"))
    runtimes = report.get("neuron_runtime_data")
    readings: list[DeviceReading] = []
    marks: list[str] = []
    problems: list[str] = []
    several = isinstance(runtimes, list) and len(runtimes) > 1
    for at, runtime in enumerate(runtimes[:_MAX_RUNTIMES] if isinstance(runtimes, list) else ()):
        if not isinstance(runtime, dict):
            continue
        tag = f"{runtime.get('neuron_runtime_tag') or at}: " if several else ""
        body = _map(runtime, "report")
        cores = _map(body, "neuroncore_counters")
        readings += _cores(_map(cores, "neuroncores_in_use"), int(per_device) if per_device else 0)
        readings += _memory(tag, _map(_map(body, "memory_used"), "neuron_runtime_used_bytes"))
        # The newer name first: it says the same of the same.
        work = _map(body, "execution_stats") or _map(body, "inference_stats")
        readings += _work(tag, work)
        marks += _errors(tag, _map(work, "error_summary"))
        problems += [str(part["error"]) for part in (runtime, cores, work) if part.get("error")]
    return Sample(readings, marks, safe_text(f"neuron-monitor: {problems[0]}", 300) if problems else "")


def _cores(cores: Mapping[str, Any], per_device: int) -> Iterator[DeviceReading]:
    for key, core in cores.items():
        if key.isascii() and key.isdigit() and len(key) < 6 and int(key) < _MAX_CORES and isinstance(core, dict):
            at = int(key)
            device = at // per_device if per_device > 0 else None
            yield from reading(f"core {at} busy", core.get("neuroncore_utilization"), "%", device, at)


def _memory(tag: str, used: Mapping[str, Any]) -> Iterator[DeviceReading]:
    yield from reading(f"{tag}memory used, host", used.get("host"), "B")
    device = used.get("neuron_device")
    yield from reading(f"{tag}memory used, devices", used.get("device") if device is None else device, "B")


def _work(tag: str, work: Mapping[str, Any]) -> Iterator[DeviceReading]:
    done = _map(work, "execution_summary") or _map(work, "inference_summary")
    for name in ("completed", "failed_to_queue", "timed_out", "completed_with_err", "incorrect_input"):
        yield from reading(f"{tag}executions {name.replace('_', ' ')}", done.get(name), "per report")
    for kind in ("total", "device"):
        latency = _map(_map(work, "latency_stats"), f"{kind}_latency")
        for level in ("p50", "p99", "p100"):
            yield from reading(f"{tag}latency {kind} {level}", latency.get(level), "s")


def _errors(tag: str, errors: Mapping[str, Any]) -> Iterator[str]:
    for kind, count in errors.items():
        found = number(count)
        if found:
            yield f"{tag}{found:.0f} {kind} errors"


def _map(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    child = parent.get(key)
    return child if isinstance(child, dict) else {}
