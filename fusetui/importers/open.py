"""Open any capture: contract files as they are, foreign ones through the importer that knows them.

A format is one module of this package with `NAME`, `sniff` and `read` (see `fusetui.importers.capture.Importer`), and
with `read_together(paths, memory_bytes)` when a run is several files of it. Files are told apart by content, never by
name; folders and archives by what is in them. Foreign formats are text and are parsed in this process, so `isolate`
only concerns contract files.
"""

from __future__ import annotations

import importlib
import pkgutil
import stat
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Final, TypeVar, cast

import fusetui.importers
from fusetui.importers.archive import kind_of, unpacked
from fusetui.importers.bytestream import GZIP_MAGIC, head_of
from fusetui.importers.capture import Capture, Importer
from fusetui.importers.folders import files_in, join, one_format, read_all, read_folder
from fusetui.importers.foreign import recognised
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.folder import folder_segments
from fusetui.telemetry.open import PARQUET_MAGIC, is_contract, open_trace
from fusetui.telemetry.source import Trace
from fusetui.telemetry.spool import SpooledTrace

_SNIFF_BYTES: Final = 1 << 20

_Chosen = Sequence[tuple[Path, Importer]]
_Read = TypeVar("_Read")


@cache
def importers() -> tuple[Importer, ...]:
    """The importer modules of this package: by name, those that open a format in general (`GENERIC`) last."""
    modules = [importlib.import_module(f"fusetui.importers.{found.name}") for found in _modules()]
    modules.sort(key=lambda module: getattr(module, "GENERIC", False))
    return tuple(cast(Importer, module) for module in modules if hasattr(module, "sniff") and hasattr(module, "read"))


def _modules() -> list[pkgutil.ModuleInfo]:
    return sorted(pkgutil.iter_modules(fusetui.importers.__path__), key=lambda found: found.name)


def open_capture(paths: Sequence[Path], *, memory_bytes: int, isolate: bool = False) -> Trace:
    """The capture in one file, folder or archive, or in several files: ranks of one job, tables or logs of one run.

    memory_bytes  about what importing may hold; more goes to temporary files
    isolate       parse a contract file in a child process
    Errors: TelemetryError that names what the file is when it cannot be opened.
    """
    if not paths:
        raise TelemetryError("no file", "nothing to open", "name a capture")
    if len(paths) == 1:
        return _open_one(paths[0], memory_bytes, isolate)
    chosen = [(path, _importer_of(path, alone=False)) for path in paths]
    return _spooled(f"{len(paths)} files", join(_guarded(read_all, chosen, memory_bytes // 2)), memory_bytes)


def _open_one(path: Path, memory_bytes: int, isolate: bool) -> Trace:
    if _is_folder(path):
        if folder_segments(path):
            return open_trace(path, isolate=isolate)
        return _open_folder(path, path, "a directory", memory_bytes, isolate)
    first = _first_bytes(path)
    if kind := kind_of(path, first):
        with unpacked(path, kind) as folder:
            return _open_folder(folder, path, f"{kind} archive", memory_bytes, isolate)
    importer = _claims(path, first)
    if importer is None and is_contract(first):
        return open_trace(path, isolate=isolate)
    chosen = [(path, importer or _importer_of(path, alone=True))]
    return _spooled(str(path), join(_guarded(read_all, chosen, memory_bytes // 2)), memory_bytes)


def _open_folder(folder: Path, where: Path, what: str, memory_bytes: int, isolate: bool) -> Trace:
    """The captures in `folder` as one; an archive is called `where`, and is read before this returns."""
    files = files_in(folder)
    found = [(path, _claims(path, _start_of(path))) for path in files]
    chosen = [(path, importer) for path, importer in found if importer is not None]
    contract = [path for path in files if is_contract(_start_of(path))] if not chosen else []
    if contract and (only := _one_contract(contract)) is not None:
        trace = open_trace(only, isolate=isolate)
        return trace if folder == where else _copied(trace, str(where), memory_bytes)
    if not chosen:
        many = f" but {len(contract)} contract files" if contract else ""
        raise TelemetryError(str(where), f"{what} without any capture to import{many}", "name the capture files in it")
    try:
        kept = one_format(str(where), chosen)
        capture = _guarded(partial(read_folder, str(where)), kept, memory_bytes // 2)
    except TelemetryError as error:
        # Files inside an archive lie where nobody can look.
        inside = error.where.replace(str(folder), str(where))
        raise TelemetryError(inside, error.what, error.remedy) from None
    if other := len(files) - len(kept):
        capture.notes.append(f"files beside them that are no captures: {other:,}")
    return _spooled(str(where), capture, memory_bytes)


def _one_contract(files: list[Path]) -> Path | None:
    """The capture that these contract files are, when they are one: a file, or the segments of a recording."""
    parent = files[0].parent
    if set(files) == set(folder_segments(parent).values()):
        return parent
    return files[0] if len(files) == 1 else None


def _copied(trace: Trace, where: str, memory_bytes: int) -> Trace:
    """A contract capture from an archive, whose files are about to go away."""
    try:
        batches = (trace.read(number) for number in range(len(trace.index().rows)))
        copy = SpooledTrace(batches, trace.header, memory_bytes=memory_bytes, notes=list(trace.notes), where=where)
        while not copy.wait_complete(1.0):
            pass
        return copy
    finally:
        trace.close()


def _spooled(where: str, capture: Capture, memory_bytes: int) -> Trace:
    return SpooledTrace(
        capture.batches, capture.header, memory_bytes=memory_bytes // 2, notes=capture.notes, where=where
    )


def _guarded(read: Callable[[_Chosen, int], _Read], chosen: _Chosen, memory_bytes: int) -> _Read:
    try:
        return read(chosen, memory_bytes)
    except MemoryError:
        where = str(chosen[0][0])
        raise TelemetryError(where, "out of memory while reading it", "give it more with --memory") from None


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _start_of(path: Path) -> bytes:
    """The first bytes of a file in a folder, b"" when there are none to be had."""
    try:
        return _first_bytes(path)
    except TelemetryError:
        return b""


def _claims(path: Path, first: bytes) -> Importer | None:
    """The importer that knows the file; of contract files only what says in its footer that it is another's."""
    if not first or (is_contract(first) and not first.startswith(PARQUET_MAGIC)):
        return None
    head = head_of(path, _SNIFF_BYTES)
    if first.startswith(PARQUET_MAGIC):
        head += _tail_of(path)
    return next((importer for importer in importers() if importer.sniff(head)), None)


def _tail_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _SNIFF_BYTES))
            return file.read(_SNIFF_BYTES)
    except OSError as error:
        raise TelemetryError(str(path), f"cannot be read ({error.strerror})") from None


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
    importer = _claims(path, first)
    if importer is not None:
        return importer
    if not alone and is_contract(first):
        raise TelemetryError(str(path), "only profiler traces of the ranks of one job open together", "open it alone")
    head = head_of(path, _SNIFF_BYTES)
    packed = "gzip of: " if first.startswith(GZIP_MAGIC) else ""
    if not head:
        raise TelemetryError(str(path), f"{packed}nothing in it", "was the profiler stopped before it wrote?")
    kind = recognised(head, path)
    raise TelemetryError(str(path), packed + kind.what, kind.remedy)
