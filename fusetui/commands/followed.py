"""Text logs as live sources: the one place that knows both how a log is followed and what its lines mean."""

from __future__ import annotations

from pathlib import Path
from stat import S_ISREG

from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.source import Source

_HEAD_BYTES = 1 << 20


def open_log(spec: str) -> Source | None:
    """The log at a path, followed; None when there is no text file. Raises TelemetryError when it cannot be read."""
    from fusetui.importers.bytestream import head_of
    from fusetui.importers.follow import lines_of
    from fusetui.importers.open import importers
    from fusetui.sources.log_follow import LogSource
    from fusetui.telemetry.open import is_contract

    path = Path(spec)
    try:
        if not S_ISREG(path.stat().st_mode):
            return None
        with path.open("rb") as file:
            first = file.read(8)
    except (OSError, ValueError):
        return None
    if is_contract(first):
        return None
    head = head_of(path, _HEAD_BYTES)
    by = next((importer for importer in importers() if importer.sniff(head)), None)
    if by is not None and not hasattr(by, "follow"):
        raise TelemetryError(spec, f"{by.NAME}: a capture, no log that grows", f"open it with `fusetui replay {spec}`")
    return LogSource(spec, lines_of)
