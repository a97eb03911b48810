"""Which described accelerator a capture ran on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fusetui.accelerator.presets import HOST, hardware_names

if TYPE_CHECKING:
    from fusetui.telemetry.header import Header


def hardware_of(header: Header) -> str | None:
    """The preset whose name the capture's device has, `host` for a capture without devices, None for unknown ones.

    `host` is the machine that fusetui runs on, which need not be the one that was profiled.
    """
    devices = [text for key, text in header.hardware.items() if key.startswith("device")]
    if not devices:
        providers = header.hardware.get("providers", "CPU")
        return HOST if providers == "CPU" else None
    words = set(re.findall(r"[a-z0-9-]+", devices[0].lower()))
    named = [name for name in hardware_names() if name.lower() in words]
    if named:
        return max(named, key=len)
    return HOST if "cpu" in words else None
