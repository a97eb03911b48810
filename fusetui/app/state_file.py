"""Files that only grow: JSON lines in the user's state folder, one appended at a time, nothing ever rewritten."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

T = TypeVar("T")

MAX_BYTES: Final = 4 << 20
MAX_LINES: Final = 10_000


def state_folder() -> Path:
    """Where fusetui keeps what it remembers."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "fusetui"


def file_of(key: str, folder: Path) -> Path:
    """The file of a capture; anything in its key but letters, digits, `-`, `_` and `.` is replaced."""
    name = re.sub(r"[^A-Za-z0-9._-]", "_", key).strip(".")[:120] or "capture"
    return folder / f"{name}.jsonl"


def append_line(path: Path, fields: Mapping[str, Any]) -> None:
    """Append one object. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    line = json.dumps(fields, ensure_ascii=True).encode() + b"\n"
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        # A torn last line must not swallow this one.
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line
        # One write with O_APPEND: two sessions on the same capture never mix their lines.
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def read_lines(path: Path, parse: Callable[[dict[str, Any]], T | None]) -> tuple[list[T], int]:
    """What `parse` makes of each line, in order, and how many lines could not be read (they stay in the file)."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES)
    except OSError:
        # None yet, or not ours to read: there is nothing to show either way.
        return [], 0
    found: list[T] = []
    broken = 0
    for line in raw.splitlines()[:MAX_LINES]:
        if not line.strip():
            continue
        try:
            fields: Any = json.loads(line)
        except (ValueError, RecursionError):
            fields = None
        item = parse(fields) if isinstance(fields, dict) else None
        if item is None:
            broken += 1
        else:
            found.append(item)
    return found, broken
