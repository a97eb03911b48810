"""Files that commands write: never over anything without --force, never over a capture, never half."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from gzip import GzipFile
from pathlib import Path
from typing import IO, cast

from fusetui.telemetry.errors import TelemetryError


def in_the_way(target: Path, captures: Sequence[Path], *, force: bool) -> str:
    """Why `target` must not be written; "" when it may."""
    if not target.exists():
        return ""
    if any(capture.exists() and target.samefile(capture) for capture in captures):
        return f"{target} is the capture itself, which is never written to"
    return "" if force else f"{target} exists; use --force to overwrite it"


def write_whole(target: Path, write: Callable[[IO[bytes]], int]) -> int:
    """Write through a temporary file beside the target, packed when its name ends in .gz; returns what `write` does.

    Raises TelemetryError when it cannot be written; then nothing is left behind.
    """
    partial = target.with_name(target.name + ".part")
    try:
        with partial.open("wb") as sink:
            if target.suffix == ".gz":
                # Without a name and a time in it the same rows make the same file.
                with GzipFile(filename="", mode="wb", compresslevel=6, fileobj=sink, mtime=0) as packed:
                    rows = write(cast("IO[bytes]", packed))
            else:
                rows = write(sink)
        partial.replace(target)
    except OSError as error:
        raise TelemetryError(str(target), f"cannot be written ({error.strerror})") from None
    finally:
        partial.unlink(missing_ok=True)
    return rows
