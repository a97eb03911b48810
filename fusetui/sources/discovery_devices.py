"""Accelerators by their device nodes and PCI vendor; no driver is asked."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, NamedTuple

from fusetui.sources.device_power import asleep
from fusetui.telemetry.text import safe_text

_MAX_ENTRIES: Final = 4096


class Family(NamedTuple):
    """A kind of accelerator.

    nodes    pattern of device node paths below /dev, matched whole
    vendors  PCI vendor ids, none where other devices of the vendor look the same; classes: beginnings of PCI classes
    source   spec of the live source; "" when there is none, and `remedy` says what to do instead
    module, tool  what the source needs: a Python module, a command
    """

    name: str
    nodes: str
    vendors: tuple[str, ...]
    classes: tuple[str, ...]
    source: str = ""
    module: str = ""
    tool: str = ""
    remedy: str = ""


_COMPUTE: Final = ("0x03", "0x12")
FAMILIES: Final = (
    Family("NVIDIA GPU", r"nvidia\d+", ("0x10de",), _COMPUTE, "nvml", module="pynvml"),
    Family("AMD GPU", r"kfd", ("0x1002",), _COMPUTE, "amdsmi", module="amdsmi"),
    Family("AWS Neuron device", r"neuron\d+", (), (), "neuron", tool="neuron-monitor"),
    Family("Tenstorrent device", r"tenstorrent/\d+", ("0x1e52",), _COMPUTE, "tt-smi", tool="tt-smi"),
    Family("Gaudi device", r"accel/accel\d+|hl\d+", ("0x1da3",), _COMPUTE, "hl-smi", tool="hl-smi"),
    Family("Intel GPU", r"dri/renderD\d+", ("0x8086",), ("0x03",), "xpu-smi", tool="xpu-smi"),
    Family("Google TPU", r"accel\d+", (), (), "tpu", module="tpu_info"),
    Family(
        "Ascend NPU",
        r"davinci\d+",
        ("0x19e5",),
        _COMPUTE,
        remedy="run its NPU-Exporter and watch http://…:8082/metrics",
    ),
)


class Device(NamedTuple):
    """Devices of one family. number: PCI functions, or device nodes where there are more; nodes: paths below /dev."""

    family: Family
    number: int
    nodes: tuple[str, ...]
    readable: bool
    asleep: bool
    told: str


def devices(root: Path) -> list[Device]:
    """The families that are here; a folder that cannot be read holds nothing."""
    nodes, functions = _nodes(root / "dev"), _functions(root / "sys/bus/pci/devices")
    found = []
    for family in FAMILIES:
        own = [vendor for vendor, kind in functions if vendor in family.vendors and kind.startswith(family.classes)]
        named = tuple(node for node in nodes if re.fullmatch(family.nodes, node))
        # Render nodes and accel nodes are shared by vendors: they count only beside a device of this one.
        if not own and (not named or family.name in ("AMD GPU", "Gaudi device", "Intel GPU")):
            continue
        number = max(len(own), 0 if family.name in ("AMD GPU", "Intel GPU") else len(named), 1)
        readable = all(os.access(root / "dev" / node, os.R_OK) for node in named)
        told = _told(root, family, len(own), named)
        found.append(Device(family, number, named, readable, any(asleep(v, root / "sys") for v in set(own)), told))
    return found


def _told(root: Path, family: Family, functions: int, nodes: tuple[str, ...]) -> str:
    parts = [f"{functions} on PCI"] if functions else []
    if nodes:
        parts.append(f"/dev/{nodes[0]}" + (f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""))
    if family.source == "nvml":
        version = re.search(r"Kernel Module\D*([\d.]+)", _text(root / "proc/driver/nvidia/version"))
        parts += [f"driver {version[1]}"] if version else []
        models = {
            line.partition(":")[2].strip()
            for gpu in _listed(root / "proc/driver/nvidia/gpus")
            for line in _text(root / "proc/driver/nvidia/gpus" / gpu / "information").splitlines()
            if line.startswith("Model:")
        }
        parts += sorted(models)
    return safe_text(", ".join(parts), 200)


def _nodes(dev: Path) -> list[str]:
    """Paths below /dev, one folder deep where accelerators are kept in one."""
    top = _listed(dev)
    inner = [f"{folder}/{name}" for folder in ("dri", "accel", "tenstorrent") for name in _listed(dev / folder)]
    return sorted((*top, *inner), key=lambda name: (len(name), name))


def _functions(pci: Path) -> list[tuple[str, str]]:
    """(vendor, class) of each PCI function."""
    return [(_text(pci / name / "vendor").strip(), _text(pci / name / "class").strip()) for name in _listed(pci)]


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))[:_MAX_ENTRIES]
    except OSError:
        return []


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(65536).decode(errors="replace")
    except OSError:
        return ""
