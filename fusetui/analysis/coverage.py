"""What a capture tells and what it does not: for each fact the share of rows that have it, and every loss by its kind.

Counted batch by batch while the measures are taken; what a fact's absence costs and which option of the recording tool
would have told it stands in `coverage_facts`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fusetui.analysis.columns import COUNTER, EXECUTION, REQUEST, Words
from fusetui.analysis.coverage_facts import FACTS, Fact, option_for
from fusetui.analysis.snapshot import Launch
from fusetui.telemetry.schema import KINDS, SCHEMA

_GIVEN: Final = tuple(name for name in SCHEMA.names if name != "kind")
_LOSSES: Final = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("event cap", r"\b1,000,000 events"),
        (
            "truncated",
            r"what came before was read|is missing|cut off|file is cut|only in part|only the beginning"
            r"|ends in the middle|stops at",
        ),
        ("clock", r"clock error|time 0 and duration 0|usable times|impossible times|no common clock"),
        ("orphans", r"without its launch call|outside any range"),
        ("graph replay", r"graph launches|graphs are recorded as a whole"),
        ("clipped", r"began before (?:its launch|their enqueue) call"),
        ("overlapping", r"overlaps? (?:its|their) predecessor"),
        (
            "broken",
            r"unreadable|is damaged|goes in circles|not proper JSON|end badly|no rows left out"
            r"|could (?:not|only) be read|cannot read",
        ),
        ("units", r"not ns|whole (?:micro)?seconds|which unit|\d digits|scaled to|taken as UTC"),
        ("left out", r"left out|not shown"),
        (
            "not recorded",
            r"^no |\bno (?:request|queue wait|latency|start)|records? (?:it|them)|not measured|not in (?:it|this)"
            r"|whole test only",
        ),
    )
)
_COUNT: Final = re.compile(r"(?:: |^|\()(\d[\d,]*)(?= of |;|,? in the|\)|$| [a-z])")


class Coverage:
    """Counts cells that are not null, per kind of row and column."""

    def __init__(self) -> None:
        self._kinds = Words(known=KINDS)
        self._rows = np.zeros(len(KINDS), np.int64)
        self._cells = {name: np.zeros(len(KINDS), np.int64) for name in _GIVEN}

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in one canonical batch."""
        kind = self._kinds.ids(batch.column("kind"))
        rows = np.bincount(kind, minlength=len(KINDS))[: len(KINDS)]
        self._rows += rows
        for name, cells in self._cells.items():
            column = batch.column(name)
            if column.null_count == 0:
                cells += rows
            elif column.null_count < len(column):
                valid = pc.is_valid(column).to_numpy(zero_copy_only=False)
                cells += np.bincount(kind[valid], minlength=len(KINDS))[: len(KINDS)]

    def summary(self, source: str, launch: Launch, notes: Iterable[str]) -> dict[str, Any]:
        """As plain data.

        rows      rows of each kind
        columns   contract column -> rows that have a value, and their share of all rows
        facts     what can be known: rows that tell it, of how many, share (None: there are no such rows), and when some
                  or all lack it, what is `unknown` without and what `record`s it (None: nothing that we know of)
        launch    the join of work with its launch calls
        losses    `kind`, `count` (None: not a count) and `note` of each note of the capture
        truncated, capped  whether the end is missing, or an event limit was reached
        idle_doubtful      whether the device may have worked while it seems idle, as graphs were replayed
        """
        total = int(self._rows.sum())
        losses = [loss_of(note) for note in notes]
        return {
            "rows": {f"{kind}s": int(n) for kind, n in zip(KINDS, self._rows, strict=True)},
            "columns": {name: _share(int(cells.sum()), total) for name, cells in self._cells.items()},
            "facts": [self._fact(fact, source) for fact in FACTS],
            "launch": {
                "joined": launch.joined,
                "total": launch.total,
                "orphans": launch.orphans,
                "nodes": launch.nodes,
                "clipped": launch.clipped,
                "clock_errors": launch.clock_errors,
            },
            "losses": losses,
            "truncated": any(loss["kind"] == "truncated" for loss in losses),
            "capped": any(loss["kind"] == "event cap" for loss in losses),
            "idle_doubtful": any(loss["kind"] == "graph replay" for loss in losses),
        }

    def _fact(self, fact: Fact, source: str) -> dict[str, Any]:
        told, of, what = self._counted(fact.column)
        found = {"fact": fact.name, "of": what, **_share(told, of), "total": of}
        if of and told == of:
            return found | {"unknown": None, "record": None}
        return found | {"unknown": fact.unknown, "record": option_for(source, fact)}

    def _counted(self, column: str) -> tuple[int, int, str]:
        """Rows that tell it, of how many, and what these are."""
        ran, served = int(self._rows[EXECUTION]), int(self._rows[REQUEST])
        if column == "value":
            # A reading is a row of its own: there are some or none.
            return int(self._rows[COUNTER]), int(self._rows[COUNTER]), "counters"
        if column == "request" and served:
            return served, served, "requests"
        of, what = (EXECUTION, "executions") if ran or not served else (REQUEST, "requests")
        return int(self._cells[column][of]), int(self._rows[of]), what


def loss_of(note: str) -> dict[str, Any]:
    """The kind of a capture's note, and the first number in it that counts something."""
    kind = next((kind for kind, pattern in _LOSSES if pattern.search(note)), "remark")
    count = None if kind == "event cap" else _COUNT.search(note)
    return {"kind": kind, "count": int(count[1].replace(",", "")) if count else None, "note": note}


def _share(told: int, of: int) -> dict[str, Any]:
    return {"rows": told, "share": told / of if of else None}
