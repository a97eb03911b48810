"""Bookmarks of a capture: JSON lines in the user's state folder, appended to, never beside the capture."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from fusetui.telemetry.text import safe_text

MAX_BYTES: Final = 4 << 20
MAX_BOOKMARKS: Final = 10_000
MAX_LABEL: Final = 200


@dataclass(frozen=True, slots=True, order=True)
class Bookmark:
    """A window worth coming back to, [t0_ns, t1_ns] on the trace clock, and what was on the screen."""

    t0_ns: int
    t1_ns: int
    label: str = ""
    filter: str = ""
    screen: str = "overview"


def state_folder() -> Path:
    """Where fusetui keeps what it remembers."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "fusetui"


class Bookmarks:
    """The bookmarks of one capture, in time order.

    key     names the capture; anything in it but letters, digits, `-`, `_` and `.` is replaced
    broken  lines of the file that could not be read; they stay in it
    """

    def __init__(self, key: str, folder: Path | None = None) -> None:
        name = re.sub(r"[^A-Za-z0-9._-]", "_", key).strip(".")[:120] or "capture"
        self.path = (folder or state_folder() / "bookmarks") / f"{name}.jsonl"
        self.broken = 0
        self.all: tuple[Bookmark, ...] = ()
        self._read()

    def add(self, bookmark: Bookmark) -> None:
        """Append one. Raises OSError; the bookmark is then kept for this session only."""
        self.all = tuple(sorted((*self.all, bookmark)))
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        line = json.dumps(asdict(bookmark), ensure_ascii=True).encode() + b"\n"
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.path, flags, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            # A torn last line must not swallow this one.
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                line = b"\n" + line
            # One write with O_APPEND: two sessions on the same capture never mix their lines.
            os.write(descriptor, line)
        finally:
            os.close(descriptor)

    def beside(self, position_ns: int, direction: int) -> Bookmark | None:
        """The next (1) or the previous (-1) bookmark from a position: by its end, where a jump puts the view."""
        later = [mark for mark in self.all if (mark.t1_ns - position_ns) * direction > 0]
        return min(later, key=lambda mark: abs(mark.t1_ns - position_ns), default=None)

    def _read(self) -> None:
        try:
            with self.path.open("rb") as file:
                raw = file.read(MAX_BYTES)
        except OSError:
            # None yet, or not ours to read: there is nothing to show either way.
            return
        marks: list[Bookmark] = []
        for line in raw.splitlines()[:MAX_BOOKMARKS]:
            if not line.strip():
                continue
            mark = _parse(line)
            if mark is None:
                self.broken += 1
            else:
                marks.append(mark)
        self.all = tuple(sorted(marks))


def _parse(line: bytes) -> Bookmark | None:
    try:
        fields: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    t0, t1 = fields.get("t0_ns"), fields.get("t1_ns")
    if not isinstance(t0, int) or not isinstance(t1, int) or max(abs(t0), abs(t1)) >= 1 << 62:
        return None
    texts = {key: safe_text(str(fields.get(key, "")), MAX_LABEL) for key in ("label", "filter", "screen")}
    return Bookmark(t0, t1, texts["label"], texts["filter"], texts["screen"] or "overview")
