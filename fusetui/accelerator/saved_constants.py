"""Calibrations that a person keeps: JSON files in the configuration folder, found by device and element type."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from fusetui.accelerator.constants import Constants, load_constants
from fusetui.accelerator.hardware import Hardware


def constants_folder() -> Path:
    """Where saved calibrations are looked for."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "fusetui" / "constants"


def saved_constants(
    hw: Hardware, dtype: str, complain: Callable[[str], None] = lambda _: None
) -> tuple[Constants, Path] | None:
    """The saved calibration of `hw` for `dtype` and its file, the newest of several; None without one.

    A file that is not JSON is passed over, and `complain` is told in a line; one for this device with wrong content
    raises AcceleratorError.
    """
    folder = constants_folder()
    if not folder.is_dir():
        return None
    for path in sorted(folder.glob("*.json"), key=lambda p: p.stat().st_mtime_ns, reverse=True):
        try:
            tables = json.loads(path.read_text())
        except (OSError, ValueError, RecursionError) as error:
            complain(f"{path}: passed over: {error}")
            continue
        tables = tables if isinstance(tables, list) else []
        keys = {(str(t.get("hardware")).lower(), t.get("dtype")) for t in tables if isinstance(t, dict)}
        if (hw.name.lower(), dtype) in keys:
            return load_constants(path, dtype), path
    return None
