"""Captures in a folder, or in an archive that was unpacked into one: which of its files are, and what they make."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fusetui.importers.capture import Capture, Importer
from fusetui.importers.merge import merge_views
from fusetui.importers.ranks import merge_ranks
from fusetui.telemetry.errors import TelemetryError

MAX_FILES: Final = 10_000
_MAX_DEPTH: Final = 8
_IGNORED: Final = ("__MACOSX", "__pycache__")


def files_in(folder: Path, depth: int = 0) -> list[Path]:
    """Regular files in a folder and those in it, by name; nothing hidden, no links to elsewhere.

    Raises TelemetryError when the folder cannot be read or has more than MAX_FILES.
    """
    found: list[Path] = []
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise TelemetryError(str(folder), f"cannot be read ({error.strerror})") from None
    for entry in entries:
        if entry.name.startswith(".") or entry.name in _IGNORED or entry.is_symlink():
            continue
        if entry.is_dir() and depth < _MAX_DEPTH:
            found += files_in(entry, depth + 1)
        elif entry.is_file():
            found.append(entry)
        if len(found) > MAX_FILES:
            raise TelemetryError(str(folder), f"more than {MAX_FILES:,} files in it", "name the capture files")
    return found


def one_format(where: str, chosen: Sequence[tuple[Path, Importer]]) -> list[tuple[Path, Importer]]:
    """The files of the one format that is there. Raises TelemetryError when there are several formats.

    Files of a general format (`GENERIC`) count only when there is no other.
    """
    special = [(path, by) for path, by in chosen if not getattr(by, "GENERIC", False)]
    kept = special or list(chosen)
    names = list(dict.fromkeys(by.NAME for _, by in kept))
    if len(names) > 1:
        raise TelemetryError(where, f"captures of several formats ({', '.join(names)})", "name the files of one run")
    return kept


def read_all(chosen: Sequence[tuple[Path, Importer]], memory_bytes: int) -> list[tuple[str, Capture]]:
    """(file stem, capture) of each file; files of a format with `read_together` are one capture."""
    captures: list[tuple[str, Capture]] = []
    share = memory_bytes // len(chosen)
    done: set[str] = set()
    for path, by in chosen:
        together = getattr(by, "read_together", None)
        if together is None:
            captures.append((_stem(path), by.read(path, share)))
        elif by.NAME not in done:
            done.add(by.NAME)
            paths = [other for other, importer in chosen if importer is by]
            read = together(paths, share * len(paths)) if len(paths) > 1 else by.read(path, share)
            captures.append((_stem(path), read))
    return captures


def read_folder(where: str, chosen: Sequence[tuple[Path, Importer]], memory_bytes: int) -> Capture:
    """The captures of a folder as one. Raises TelemetryError when they do not say that they belong to one run."""
    if all(hasattr(by, "read_together") for _, by in chosen):
        return join(read_all(chosen, memory_bytes))
    captures: list[tuple[str, Capture]] = []
    ranks: set[int] = set()
    for path, by in chosen:
        capture = by.read(path, memory_bytes // len(chosen))
        captures.append((_stem(path), capture))
        if len(chosen) > 1 and capture.origin_ns is None:
            if capture.rank is None or capture.rank in ranks:
                what = f"{len(chosen)} captures, and {path.name} does not say that it is one more rank of a job"
                raise TelemetryError(where, what, "name the files that belong together")
            ranks.add(capture.rank)
    return join(captures)


def join(captures: list[tuple[str, Capture]]) -> Capture:
    """Logs of one clock as views of one run, others as the ranks of one job."""
    if len(captures) == 1:
        return captures[0][1]
    if all(capture.origin_ns is not None for _, capture in captures):
        return merge_views([capture for _, capture in captures])
    return merge_ranks(captures)


def _stem(path: Path) -> str:
    return path.name.split(".")[0]
