"""What rules may read: a snapshot, and what comes with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fusetui.analysis.snapshot import Snapshot
from fusetui.telemetry.header import Header

if TYPE_CHECKING:
    from fusetui.analysis.attribution.causes import Causes


@dataclass(frozen=True, slots=True)
class Measures:
    """snapshot: the window; header: of its trace; causes: of the same window; baseline: another one to compare with."""

    snapshot: Snapshot
    header: Header
    causes: Causes | None = None
    baseline: Snapshot | None = None
