"""Packed files made plain: zip, tar, zstd, xz, bzip2 and gzip, told by content, into a folder that goes away.

What is inside is not trusted: only regular files are taken, their names become plain names inside the folder, and
how many, how large and how much larger than the archive they may be is limited.
"""

from __future__ import annotations

import contextlib
import lzma
import re
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Final, Protocol

import pyarrow as pa

from fusetui.importers.bytestream import GZIP_MAGIC, MAX_EXPANSION, ByteStream, head_of
from fusetui.telemetry.errors import TelemetryError

MAX_MEMBERS: Final = 10_000
_FREE_BYTES: Final = 64 << 20  # below this size a ratio proves nothing
_CHUNK: Final = 1 << 20
_MAX_DEPTH: Final = 6
_TAR_AT: Final = slice(257, 262)
_ODD = re.compile(r"[^\w.+=@ -]")
_ERRORS: Final = (
    zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, EOFError, ValueError, NotImplementedError, RuntimeError,
    pa.ArrowException, OSError,
)  # fmt: skip


_PACKERS: Final = {b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ\0": "xz", b"BZh": "bzip2", GZIP_MAGIC: "gzip"}


class _Bytes(Protocol):
    """What content is read from."""

    def read(self, size: int, /) -> bytes: ...
    def close(self) -> None: ...


def _opened(path: Path, kind: str) -> _Bytes:
    if kind == "gzip":
        return ByteStream(path)
    if kind == "xz":
        return lzma.open(path)
    stream: _Bytes = pa.input_stream(str(path), compression=kind.replace("bzip2", "bz2"))
    return stream


def kind_of(path: Path, first: bytes) -> str:
    """What packs the file that begins with `first` and must be undone to look inside, "" for nothing.

    A gzipped file counts only when it holds a tar: importers read the others as they are.
    """
    if first.startswith(b"PK\x03\x04"):
        return "zip"
    if first.startswith(GZIP_MAGIC):
        return "tar.gz" if head_of(path, 512)[_TAR_AT] == b"ustar" else ""
    for magic, kind in _PACKERS.items():
        if first.startswith(magic):
            return kind
    return "tar" if head_of(path, 512)[_TAR_AT] == b"ustar" else ""


@contextmanager
def unpacked(path: Path, kind: str) -> Iterator[Path]:
    """A folder with the files inside an archive of that kind, gone afterwards.

    Raises TelemetryError when it is damaged, hostile, or no room is left for it.
    """
    where = str(path)
    with tempfile.TemporaryDirectory(prefix="fusetui-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            budget = _Budget(where, path.stat().st_size)
            if kind == "zip":
                _from_zip(path, folder, budget)
            elif kind in ("tar", "tar.gz"):
                _from_tar(path, folder, budget)
            else:
                _from_stream(path, kind, folder, budget)
        except _ERRORS as error:
            reason = str(error) or type(error).__name__
            raise TelemetryError(
                where, f"{kind} archive that cannot be read ({reason})", "unpack it yourself"
            ) from None
        yield folder


@contextmanager
def plain(path: Path) -> Iterator[Path]:
    """`path`, or a plain copy of it for the time being when it is gzipped: for formats that need random access."""
    with path.open("rb") as file:
        packed = file.read(2) == GZIP_MAGIC
    if not packed:
        yield path
        return
    with unpacked(path, "gzip") as folder:
        copy = next(folder.iterdir())
        try:
            yield copy
        except TelemetryError as error:
            # The copy lies where nobody can look.
            raise TelemetryError(error.where.replace(str(copy), str(path)), error.what, error.remedy) from None


class _Budget:
    """How much may still be unpacked."""

    def __init__(self, where: str, size: int) -> None:
        self._where = where
        self._bytes = max(_FREE_BYTES, MAX_EXPANSION * size)
        self._members = MAX_MEMBERS

    def member(self) -> None:
        self._members -= 1
        if self._members < 0:
            raise TelemetryError(self._where, f"more than {MAX_MEMBERS:,} files in it", "unpack it yourself")

    def copy(self, source: _Bytes, target: Path) -> None:
        """All of `source`; a member that is cut off or damaged keeps what came before, at least one byte."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as sink:
            while True:
                try:
                    part = source.read(_CHUNK)
                except (EOFError, zipfile.BadZipFile, lzma.LZMAError, pa.ArrowException, OSError):
                    if not sink.tell():
                        raise
                    break
                if not part:
                    break
                self._bytes -= len(part)
                if self._bytes < 0:
                    what = f"expands more than {MAX_EXPANSION}-fold"
                    raise TelemetryError(self._where, what, "unpack it yourself if you trust it")
                sink.write(part)


def _from_zip(path: Path, folder: Path, budget: _Budget) -> None:
    with zipfile.ZipFile(path) as archive:
        for number, info in enumerate(archive.infolist()):
            if info.is_dir() or info.flag_bits & 1:
                continue
            budget.member()
            with archive.open(info) as source:
                budget.copy(source, _inside(folder, info.filename, number))


def _from_tar(path: Path, folder: Path, budget: _Budget) -> None:
    with tarfile.open(path, "r:*") as archive:
        for number, info in enumerate(archive):
            source: IO[bytes] | None = archive.extractfile(info) if info.isreg() else None
            if source is None:
                continue
            budget.member()
            with source:
                budget.copy(source, _inside(folder, info.name, number))


def _from_stream(path: Path, kind: str, folder: Path, budget: _Budget) -> None:
    target = folder / (path.stem or "content")
    with contextlib.closing(_opened(path, kind)) as source:
        budget.copy(source, target)
    if head_of(target, 512)[_TAR_AT] == b"ustar":
        _from_tar(target, folder, budget)
        target.unlink()


def _inside(folder: Path, name: str, number: int) -> Path:
    """Where a member goes: its own name with everything odd taken out, made unique by its number."""
    parts = [_ODD.sub("_", part)[:80] for part in PurePosixPath(name.replace("\\", "/")).parts]
    parts = [part for part in parts if part.strip("._ ") and part != "/"][-_MAX_DEPTH:]
    target = folder.joinpath(*parts) if parts else folder / f"member {number}"
    return target.with_name(f"{number} {target.name}"[:120]) if target.exists() else target
