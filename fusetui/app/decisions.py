"""What people decided about findings: JSON lines beside the bookmarks; another decision is another line."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from fusetui.app.state_file import append_line, file_of, read_lines, state_folder
from fusetui.telemetry.text import safe_text

STATUSES: Final = ("open", "accepted", "fixed", "rolled back")
MAX_TEXT: Final = 500
_TEXTS: Final = ("at", "finding", "subject", "sentence", "owner", "status", "fix", "rollback", "guardrail")


@dataclass(frozen=True, slots=True)
class Decision:
    """at: UTC with seconds; finding, subject: what a finding is known by; sentence: what it said then.

    guardrail  what must hold from now on, as a rule or in words
    """

    at: str
    finding: str
    subject: str
    sentence: str
    owner: str
    status: str
    fix: str
    rollback: str
    guardrail: str


class Decisions:
    """The decisions about one capture, in the order in which they were taken.

    key     names the capture, as for bookmarks
    broken  lines of the file that could not be read; they stay in it
    """

    def __init__(self, key: str, folder: Path | None = None) -> None:
        self.path = file_of(key, folder or state_folder() / "decisions")
        taken, self.broken = read_lines(self.path, _parse)
        self.all: tuple[Decision, ...] = tuple(taken)

    def add(self, decision: Decision) -> None:
        """Append one. Raises OSError; the decision is then kept for this session only."""
        self.all = (*self.all, decision)
        append_line(self.path, asdict(decision))

    def of(self, finding: str, subject: str) -> tuple[Decision, ...]:
        """Those about a finding, the newest last."""
        return tuple(one for one in self.all if (one.finding, one.subject) == (finding, subject))


def now_utc() -> str:
    """The time a decision is taken at: `2026-11-30T03:10:41Z`."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _parse(fields: dict[str, Any]) -> Decision | None:
    texts = {key: safe_text(str(fields.get(key, "")), MAX_TEXT) for key in _TEXTS}
    return Decision(**texts) if texts["finding"] and texts["status"] in STATUSES else None
