"""The log of alerts: a JSON line for each raise, each clear and each hook that failed; it only grows."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fusetui.telemetry.text import safe_text
from fusetui.triage.alert import AlertEvent
from fusetui.triage.alert_hooks import HookResult


class AlertLog:
    """Appends to one file, from any thread, and never raises.

    failed  why a line could not be written, "" while all is well
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failed = ""
        self._lock = threading.Lock()

    def append(self, event: AlertEvent) -> None:
        """A raise or a clear."""
        self._write(event.as_dict())

    def hook(self, result: HookResult) -> None:
        """How a hook went; only failures are written."""
        if not result.ok:
            self._write(
                {
                    "alert": result.alert, "what": f"{result.hook} failed", "of": result.what,
                    "at_ns": result.at_ns, "says": result.detail,
                }
            )  # fmt: skip

    def _write(self, fields: Mapping[str, Any]) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        line = json.dumps({"logged": now, **fields}, allow_nan=False).encode() + b"\n"
        try:
            with self._lock:
                self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                # One write with O_APPEND: lines of two sessions never mix.
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
                descriptor = os.open(self.path, flags, 0o600)
                try:
                    os.write(descriptor, line)
                finally:
                    os.close(descriptor)
        except OSError as error:
            self.failed = safe_text(f"{self.path}: cannot be written: {error.strerror}", 300)
