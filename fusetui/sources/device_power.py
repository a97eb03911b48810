"""Devices that the kernel has put to sleep: any question would wake them, so they are asked only when told to."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fusetui.telemetry.errors import TelemetryError

NVIDIA: Final = "0x10de"
AMD: Final = "0x1002"
_DISPLAY_CLASSES: Final = ("0x03", "0x12")
"""PCI base classes: display controllers, processing accelerators."""


def asleep(vendor: str, root: Path = Path("/sys")) -> bool:
    """Whether there are devices of this PCI vendor and all of them are suspended."""
    states = [
        _text(device / "power/runtime_status")
        for device in _listed(root / "bus/pci/devices")
        if _text(device / "vendor") == vendor and _text(device / "class").startswith(_DISPLAY_CLASSES)
    ]
    return bool(states) and all(state == "suspended" for state in states)


def refuse_to_wake(name: str, vendor: str, root: Path = Path("/sys")) -> None:
    """Raises TelemetryError when looking would wake the devices."""
    if asleep(vendor, root):
        raise TelemetryError(name, "the device sleeps and looking would wake it", "start what uses it first")


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
