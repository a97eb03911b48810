"""The machine this runs on, as a hardware description: cores and caches read, rates derived and marked as such."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path
from typing import Any, Final

from fusetui.accelerator.hardware import Hardware

_CPUINFO: Final = Path("/proc/cpuinfo")
_CACHE: Final = Path("/sys/devices/system/cpu/cpu0/cache")
_CLOCK_HZ: Final = 2.5e9  # when the system does not tell
_DRAM_BYTES_PER_S: Final = 12e9  # of one core; a few cores share less than their sum
_DRAM_CORES: Final = 8
_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def host_description() -> dict[str, Any]:
    """Table of this CPU in the form of a preset file, with a source for every value."""
    text = _CPUINFO.read_text(errors="replace") if _CPUINFO.is_file() else ""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    clock = _clock_hz(text)
    lanes, vectors = _lanes(text)
    peak = cores * clock * lanes * 2 * 2
    own, shared = _caches()
    return {
        "name": "host",
        "title": _field(text, "model name") or "host CPU",
        "kind": "cpu",
        "cores": cores,
        "clock_hz": clock,
        "matrix_flops": {"fp32": peak, "fp64": peak / 2},
        "vector_flops": {"fp32": peak, "fp64": peak / 2},
        "sram_bytes_per_core": own,
        "l2_bytes": shared,
        "l2_bytes_per_s": 16.0 * clock * cores,
        "dram_bytes": _memory_bytes(),
        "dram_bytes_per_s": _DRAM_BYTES_PER_S * min(cores, _DRAM_CORES),
        "mma": {"fp32": [6, 2 * lanes, 1], "fp64": [6, lanes, 1]},
        "launch": {"call_ns": 1000.0, "gap_ns": 500.0, "latency_ns": 1000.0, "graph_gap_ns": 200.0},
        "sources": {
            "cores": "cores this process may use",
            "clock_hz": "/proc/cpuinfo, or 2.5 GHz where it does not tell",
            "matrix_flops": f"derived: {vectors}, two multiply-adds per clock and core",
            "vector_flops": f"derived: {vectors}, two multiply-adds per clock and core",
            "sram_bytes_per_core": "private second-level cache, /sys, or 512 KiB",
            "l2_bytes": "shared last-level cache, /sys, or 8 MiB",
            "l2_bytes_per_s": "guess: 16 B per clock and core",
            "dram_bytes": "os.sysconf",
            "dram_bytes_per_s": "guess: 12 GB/s per core, eight cores at most; calibrate",
            "mma": "register block of common fp32 kernels, 6 rows by two vectors",
            "launch": "guess: a call between operators of an inference runtime",
        },
    }


def one_core(hw: Hardware) -> Hardware:
    """The same machine with one of its cores: what short measurements are made on."""
    share = 1 / hw.cores
    return dataclasses.replace(
        hw,
        cores=1,
        matrix_flops={name: rate * share for name, rate in hw.matrix_flops.items()},
        vector_flops={name: rate * share for name, rate in hw.vector_flops.items()},
        l2_bytes_per_s=hw.l2_bytes_per_s * share,
        dram_bytes_per_s=hw.dram_bytes_per_s / min(hw.cores, _DRAM_CORES),
    )


def _clock_hz(text: str) -> float:
    listed = _CACHE.parent / "cpufreq" / "cpuinfo_max_freq"
    if listed.is_file():
        return float(listed.read_text()) * 1e3
    megahertz = _field(text, "cpu MHz")
    return float(megahertz) * 1e6 if megahertz else _CLOCK_HZ


def _lanes(text: str) -> tuple[int, str]:
    flags = _field(text, "flags").split()
    if "avx512f" in flags:
        return 16, "AVX-512"
    if "avx2" in flags:
        return 8, "AVX2"
    return 4, "128-bit vectors"


def _caches() -> tuple[int, int]:
    """(private bytes per core, shared bytes)."""
    sizes: dict[int, int] = {}
    for index in sorted(_CACHE.glob("index*")):
        level, size = (index / "level").read_text().strip(), (index / "size").read_text().strip()
        match = re.fullmatch(r"(\d+)([KMG]?)", size)
        if match and level.isdigit():
            sizes[int(level)] = int(match[1]) * _UNITS.get(match[2], 1)
    return sizes.get(2, 512 << 10), sizes.get(3, 8 << 20)


def _memory_bytes() -> int:
    names = os.sysconf_names
    if "SC_PHYS_PAGES" in names and "SC_PAGE_SIZE" in names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 8 << 30


def _field(text: str, name: str) -> str:
    match = re.search(rf"^{re.escape(name)}\s*:\s*(.*)$", text, re.MULTILINE)
    return match[1].strip() if match else ""
