"""Bookmarks of a capture: JSON lines in the user's state folder, appended to, never beside the capture."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from fusetui.app.state_file import append_line, file_of, read_lines, state_folder
from fusetui.telemetry.text import safe_text

MAX_LABEL: Final = 200


@dataclass(frozen=True, slots=True, order=True)
class Bookmark:
    """A window worth coming back to, [t0_ns, t1_ns] on the trace clock, and what was on the screen."""

    t0_ns: int
    t1_ns: int
    label: str = ""
    filter: str = ""
    screen: str = "overview"


class Bookmarks:
    """The bookmarks of one capture, in time order.

    key     names the capture
    broken  lines of the file that could not be read; they stay in it
    """

    def __init__(self, key: str, folder: Path | None = None) -> None:
        self.path = file_of(key, folder or state_folder() / "bookmarks")
        marks, self.broken = read_lines(self.path, _parse)
        self.all: tuple[Bookmark, ...] = tuple(sorted(marks))

    def add(self, bookmark: Bookmark) -> None:
        """Append one. Raises OSError; the bookmark is then kept for this session only."""
        self.all = tuple(sorted((*self.all, bookmark)))
        append_line(self.path, asdict(bookmark))

    def beside(self, position_ns: int, direction: int) -> Bookmark | None:
        """The next (1) or the previous (-1) bookmark from a position: by its end, where a jump puts the view."""
        later = [mark for mark in self.all if (mark.t1_ns - position_ns) * direction > 0]
        return min(later, key=lambda mark: abs(mark.t1_ns - position_ns), default=None)


def _parse(fields: dict[str, Any]) -> Bookmark | None:
    t0, t1 = fields.get("t0_ns"), fields.get("t1_ns")
    if not isinstance(t0, int) or not isinstance(t1, int) or max(abs(t0), abs(t1)) >= 1 << 62:
        return None
    texts = {key: safe_text(str(fields.get(key, "")), MAX_LABEL) for key in ("label", "filter", "screen")}
    return Bookmark(t0, t1, texts["label"], texts["filter"], texts["screen"] or "overview")
