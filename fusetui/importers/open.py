"""Open any capture: contract files as they are, foreign ones through the importer that knows them.

A format is one module of this package with `NAME`, `sniff` and `read` (see `fusetui.importers.capture.Importer`).
Files are told apart by content, never by name. Foreign formats are text and are parsed in this process, so `isolate`
only concerns contract files.
"""

from __future__ import annotations

import importlib
import pkgutil
import stat
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final, cast

import fusetui.importers
from fusetui.importers.bytestream import GZIP_MAGIC, head_of
from fusetui.importers.capture import Capture, Importer
from fusetui.importers.foreign import name_of
from fusetui.importers.merge import merge_views
from fusetui.importers.ranks import merge_ranks
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.open import is_contract, open_trace
from fusetui.telemetry.source import Trace
from fusetui.telemetry.spool import SpooledTrace

_SNIFF_BYTES: Final = 1 << 20


@cache
def importers() -> tuple[Importer, ...]:
    """The importer modules of this package: by name, those that open a format in general (`GENERIC`) last."""
    modules = [importlib.import_module(f"fusetui.importers.{found.name}") for found in _modules()]
    modules.sort(key=lambda module: getattr(module, "GENERIC", False))
    return tuple(cast(Importer, module) for module in modules if hasattr(module, "sniff") and hasattr(module, "read"))


def _modules() -> list[pkgutil.ModuleInfo]:
    return sorted(pkgutil.iter_modules(fusetui.importers.__path__), key=lambda found: found.name)


def open_capture(paths: Sequence[Path], *, memory_bytes: int, isolate: bool = False) -> Trace:
    """The capture in one file, or in several: the ranks of one job, or the logs of one server on one clock.

    memory_bytes  about what importing may hold; more goes to temporary files
    isolate       parse a contract file in a child process
    Errors: TelemetryError that names what the file is when it cannot be opened.
    """
    if not paths:
        raise TelemetryError("no file", "nothing to open", "name a capture")
    if len(paths) == 1 and _is_contract(paths[0]):
        return open_trace(paths[0], isolate=isolate)
    chosen = [(path, _importer_of(path, alone=len(paths) == 1)) for path in paths]
    captures = [(path.name.split(".")[0], _read(path, by, memory_bytes // (2 * len(paths)))) for path, by in chosen]
    capture = captures[0][1] if len(captures) == 1 else _together(captures)
    where = str(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
    return SpooledTrace(
        capture.batches, capture.header, memory_bytes=memory_bytes // 2, notes=capture.notes, where=where
    )


def _together(captures: list[tuple[str, Capture]]) -> Capture:
    if all(capture.origin_ns is not None for _, capture in captures):
        return merge_views([capture for _, capture in captures])
    return merge_ranks(captures)


def _read(path: Path, importer: Importer, memory_bytes: int) -> Capture:
    try:
        return importer.read(path, memory_bytes)
    except MemoryError:
        raise TelemetryError(str(path), "out of memory while reading it", "give it more with --memory") from None


def _is_contract(path: Path) -> bool:
    return is_contract(_first_bytes(path))


def _first_bytes(path: Path) -> bytes:
    where = str(path)
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise TelemetryError(where, "a directory, not a capture", "name the capture files in it")
        if not stat.S_ISREG(status.st_mode):
            raise TelemetryError(where, "not a regular file", "use `fusetui live` for pipes and sockets")
        with path.open("rb") as file:
            first = file.read(8)
    except OSError as error:
        raise TelemetryError(where, f"cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise TelemetryError(where, f"not a path ({error})") from None
    if not first:
        raise TelemetryError(where, "the file is empty", "was the profiler stopped before it wrote?")
    return first


def _importer_of(path: Path, *, alone: bool) -> Importer:
    first = _first_bytes(path)
    if not alone and is_contract(first):
        raise TelemetryError(str(path), "only profiler traces of the ranks of one job open together", "open it alone")
    head = head_of(path, _SNIFF_BYTES)
    for importer in importers():
        if importer.sniff(head):
            return importer
    kind = name_of(head) if head else "nothing in it"
    packed = "gzip of: " if first.startswith(GZIP_MAGIC) else ""
    known = ", ".join(importer.NAME for importer in importers())
    raise TelemetryError(str(path), f"{packed}{kind}, which cannot be opened yet", f"opens: Arrow, Parquet, {known}")
