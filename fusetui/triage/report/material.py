"""What a report is made from: measures that somebody else took, and how the command line named the trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fusetui.analysis.snapshot import Snapshot
from fusetui.telemetry.header import Header
from fusetui.triage.finding import Triage

if TYPE_CHECKING:
    from fusetui.analysis.attribution.causes import Causes
    from fusetui.analysis.changepoint.changes import Change
    from fusetui.analysis.compare import Comparison
    from fusetui.triage.quality import Reading


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A file of the trace, or all of a folder, with the sha256 of its bytes in hex; size_bytes None: of a folder."""

    name: str
    sha256: str
    size_bytes: int | None


@dataclass(frozen=True, slots=True)
class Bookmarked:
    """A window that somebody marked, ns on the trace clock."""

    from_ns: int
    to_ns: int
    label: str = ""
    filter: str = ""


@dataclass(frozen=True, slots=True)
class Decided:
    """What somebody decided about a finding: at is UTC, status "open", "accepted", "fixed" or "rolled back"."""

    at: str
    finding: str
    owner: str
    status: str
    change: str
    rollback: str
    guardrail: str


@dataclass(frozen=True, slots=True)
class Material:
    """One trace, measured.

    spec        the trace as commands name it; baseline: the one it is compared with, "" for none
    rows        in the trace, all windows; first_ns: its first event, from which positions in commands count
    window_ns, filter  what the measures were limited to, None and "" for all of it
    hardware    given for a capture that names none
    causes      from the twin, or why there are none
    changes     of p95 within the trace, in order of time; changes_why: why none can be told
    comparison  against the baseline; quality: before and after
    options, quality_options  words of the command line that change what is told: commands that print it again need them
    mapping     the closed-loop report (`analysis.retune.report.report_of`), None where it says nothing
    notes       of reading: what is missing, broken or cut
    """

    spec: str
    files: tuple[TraceFile, ...]
    rows: int
    first_ns: int
    header: Header
    snapshot: Snapshot
    triage: Triage
    causes: Causes | str
    window_ns: int | None = None
    filter: str = ""
    hardware: str = ""
    changes: Sequence[Change] = ()
    changes_why: str = ""
    baseline: str = ""
    comparison: Comparison | None = None
    quality: tuple[Reading, ...] = ()
    options: tuple[str, ...] = ()
    quality_options: tuple[str, ...] = ()
    mapping: Mapping[str, Any] | None = None
    bookmarks: tuple[Bookmarked, ...] = ()
    decided: tuple[Decided, ...] = ()
    notes: tuple[str, ...] = ()
