"""sha256 of the bytes of a capture: of a file with its further segments, or of everything in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from fusetui.telemetry.chain import segment_path
from fusetui.telemetry.errors import TelemetryError

_BLOCK: Final = 1 << 20


def hash_of_captures(paths: Sequence[Path]) -> str:
    """64 hexadecimal digits. Of one file they are its sha256, as `sha256sum` prints; segments follow one another.

    Of a folder, or of several captures, it is that of the lines `<sha256>  <relative name>`, sorted; hidden files (the
    lock of a recorder) are no part of it.
    Raises TelemetryError when something cannot be read.
    """
    if len(paths) == 1 and not paths[0].is_dir():
        return _of_file(paths[0])
    lines = []
    for path in paths:
        files = _visible_files(path) if path.is_dir() else [path]
        lines += [f"{_of_file(file)}  {file.relative_to(path.parent).as_posix()}" for file in files]
    return sha256("\n".join(sorted(lines)).encode("utf-8", "surrogateescape")).hexdigest()


def _visible_files(folder: Path) -> list[Path]:
    return sorted(found for found in folder.rglob("*") if found.is_file() and not found.name.startswith("."))


def _of_file(path: Path) -> str:
    found = sha256()
    part, number = path, 0
    try:
        while True:
            with part.open("rb") as file:
                while block := file.read(_BLOCK):
                    found.update(block)
            number += 1
            part = segment_path(path, number)
            if not part.is_file():
                return found.hexdigest()
    except OSError as error:
        raise TelemetryError(str(part), f"cannot be read ({error.strerror})") from None
