"""How exports call the processes of a trace viewer, so that what reads them back knows which tracks are work."""

from __future__ import annotations

from typing import Final

NO_DEVICE: Final = "no device"
NO_STREAM: Final = "no stream"
LAUNCHES: Final = "launch calls"
REQUESTS: Final = "requests"
BASE_KEY: Final = "fusetui_base_ns"
"""In `otherData` of a Chrome trace: what its times count from, ns since 1970 UTC, as text."""

_ON: Final = " on "


def device_process(device: int | None) -> str:
    """Work of a device."""
    return NO_DEVICE if device is None else f"device {device}"


def on_host(process: str, host: str) -> str:
    """A process of one of several machines."""
    return f"{process}{_ON}{host}" if host else process


def is_work(process: str) -> bool:
    """Whether an export put executions there whose device nobody knows."""
    return process == NO_DEVICE or process.startswith(NO_DEVICE + _ON)


def is_requests(process: str) -> bool:
    """Whether an export put requests there."""
    return process == REQUESTS or process.startswith(REQUESTS + _ON)
