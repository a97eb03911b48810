"""The header of a Kineto capture: devices, versions and rank from its top-level keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fusetui.telemetry.header import Clock, Header
from fusetui.telemetry.text import safe_text

_MAX_DEVICES: Final = 64
_VERSIONS: Final = {
    "schemaVersion": "Kineto schema",
    "cupti_version": "CUPTI",
    "roctracer_version": "ROCtracer",
}


def kineto_header(top: Mapping[str, Any], clock: Clock) -> Header:
    """Header from the top-level keys of a Kineto file; keys of a wrong type are ignored."""
    host = top.get("host_name")
    return Header(
        source="kineto",
        clock=clock,
        host=safe_text(host, 200) if isinstance(host, str) and host else None,
        hardware=_hardware(top),
        build=_build(top),
    )


def rank_of(top: Mapping[str, Any]) -> int | None:
    """Rank in the distributed job, None when the capture does not say."""
    rank = _mapping(top.get("distributedInfo")).get("rank")
    return rank if type(rank) is int and 0 <= rank < 1 << 31 else None


def base_time_ns(top: Mapping[str, Any]) -> int | None:
    """What event times are relative to, ns since the epoch; None when they are absolute or relative to an unknown."""
    base = top.get("baseTimeNanoseconds")
    if isinstance(base, str) and base.isdecimal() and len(base) < 20:
        base = int(base)
    return base if type(base) is int and 0 < base < 5 * 10**18 else None


def _hardware(top: Mapping[str, Any]) -> dict[str, str]:
    devices = top.get("deviceProperties") or top.get("computeProperties")
    facts: dict[str, str] = {}
    for device in (devices if isinstance(devices, list) else [])[:_MAX_DEVICES]:
        fields = _mapping(device)
        parts = [str(fields.get("name") or "unnamed")]
        if type(fields.get("numSms")) is int:
            parts.append(f"{fields['numSms']} SMs")
        if type(fields.get("totalGlobalMem")) is int:
            parts.append(f"{fields['totalGlobalMem'] / (1 << 30):.0f} GiB")
        facts[safe_text(f"device {fields.get('id', len(facts))}", 40)] = safe_text(", ".join(parts), 200)
    return facts


def _build(top: Mapping[str, Any]) -> dict[str, str]:
    facts = {name: safe_text(str(top[key]), 40) for key, name in _VERSIONS.items() if _scalar(top.get(key))}
    for key, name in (("cuda_runtime_version", "CUDA runtime"), ("cuda_driver_version", "CUDA driver")):
        version = top.get(key)
        if type(version) is int:
            facts[name] = f"{version // 1000}.{version % 1000 // 10}"
    for key, name in (("hip_runtime_version", "HIP runtime"), ("hip_driver_version", "HIP driver")):
        version = top.get(key)
        if type(version) is int:
            facts[name] = f"{version // 10**7}.{version // 10**5 % 100}.{version % 10**5}"
    info = _mapping(top.get("distributedInfo"))
    for key, name in (("nccl_version", "NCCL"), ("backend", "distributed backend"), ("world_size", "world size")):
        if _scalar(info.get(key)):
            facts[name] = safe_text(str(info[key]), 40)
    return facts


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _scalar(value: object) -> bool:
    return isinstance(value, (int, str)) and not isinstance(value, bool)
