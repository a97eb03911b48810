"""How much of a recording folder is kept: the oldest segments go, whole ones only."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fusetui.telemetry.sidecar import sidecar_path


@dataclass(frozen=True, slots=True)
class Keep:
    """Limits on what stays, the segment being written included; None is no limit, and the tightest one decides.

    files   segments
    bytes   their sizes with their indexes
    age_ns  time since a segment was last written to
    """

    files: int | None = None
    bytes: int | None = None
    age_ns: int | None = None

    @property
    def everything(self) -> bool:
        return self.files is None and self.bytes is None and self.age_ns is None


def prune(segments: Mapping[int, Path], writing: int, keep: Keep) -> int:
    """Remove the oldest of `segments` (by number) until the rest is within `keep`; returns how many went.

    writing  the segment being written, and any after it, stay whatever the limits
    Raises OSError when one cannot be removed.
    """
    if keep.everything:
        return 0
    now_ns = time.time_ns()
    kept_files = kept_bytes = 0
    removed = 0
    for number, path in sorted(segments.items(), reverse=True):
        size, written_ns = _facts(path)
        too_many = keep.files is not None and kept_files + 1 > keep.files
        too_large = keep.bytes is not None and kept_bytes + size > keep.bytes
        too_old = keep.age_ns is not None and now_ns - written_ns > keep.age_ns
        if number < writing and (removed or too_many or too_large or too_old):
            sidecar_path(path).unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            removed += 1
        else:
            kept_files += 1
            kept_bytes += size
    return removed


def _facts(path: Path) -> tuple[int, int]:
    """Bytes of a segment and its index, and when it was last written to."""
    size, written_ns = 0, time.time_ns()
    for file in (sidecar_path(path), path):
        try:
            status = file.stat()
        except FileNotFoundError:
            continue
        size += status.st_size
        written_ns = status.st_mtime_ns
    return size, written_ns
