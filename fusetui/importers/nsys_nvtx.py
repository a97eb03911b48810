"""NVTX ranges and marks of an Nsight Systems export."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.devicework import DeviceWork, Ints
from fusetui.importers.sqlitefile import NULL, Database

_TABLE = re.compile(r"NVTX_EVENTS(?:_V\d+)?\Z")
_STEP: Final = re.compile(
    r"\s*(?:\w+[:/. ])?(?:train(?:ing)?|decode|prefill|inference)?[_ ]?(?:step|iter(?:ation)?|batch|request)"
    r"\s*[-_:#= ]*\d+\s*\Z|ProfilerStep#\d+\Z",
    re.IGNORECASE,
)
_STEP_PARTS: Final = ("tep", "ter", "atch", "equest")
_MARK_TYPE: Final = 34
_RANGES: Final = (59, 60, 70, 71)  # push/pop and start/end ranges, theirs with another's process


def take_ranges(db: Database, found: DeviceWork) -> list[str]:
    """Steps and marks; a note on the ranges that are neither."""
    closed, opened = 0, 0
    for table in sorted(filter(_TABLE.match, db.tables)):
        if not {"start", "end", "eventType"} <= db.tables[table]:
            continue
        kinds = ", ".join(map(str, _RANGES))
        for all_of_them, without_end in db.rows(
            f'select count(*), ifnull(sum("end" is null), 0) from {table} where eventType in ({kinds})'
        ):
            closed, opened = closed + all_of_them - without_end, opened + without_end
        for start, end, kind, text_id, inline in db.chunks(
            table, ["start", "end", "eventType", "textId"], texts=["text"], where=_likely(db, table)
        ):
            texts = _texts(db, text_id, inline)
            steps = np.fromiter((bool(_STEP.match(text)) for text in texts), np.bool_, len(texts))
            steps &= np.isin(kind, _RANGES) & (end != NULL)
            found.add_steps(start[steps], end[steps], name=_codes(found, texts, steps))
            marks = kind == _MARK_TYPE
            found.add_marks(start[marks], start[marks], name=_codes(found, texts, marks), stream=-1)
    others = closed - len(found.steps)
    notes = [f"NVTX ranges that are no steps, not shown: {others:,}"] if others > 0 else []
    return [*notes, f"NVTX ranges without an end left out: {opened:,}"] if opened else notes


def _likely(db: Database, table: str) -> str:
    """SQL condition of the marks and of all ranges that may be steps: the others are not worth decoding."""
    hints = [f"eventType = {_MARK_TYPE}"]
    if "text" in db.tables[table]:
        hints += [f"instr(text, '{part}')" for part in _STEP_PARTS]
    if "textId" in db.tables[table] and {"id", "value"} <= db.tables.get("StringIds", frozenset()):
        some = " or ".join(f"instr(value, '{part}')" for part in _STEP_PARTS)
        hints.append(f"textId in (select id from StringIds where {some})")
    return " or ".join(hints)


def _texts(db: Database, ids: Ints, inline: Sequence[str | None]) -> list[str]:
    """Text of each event: its own, else the string of the export that it names."""
    strings = db.texts("StringIds", "id", "value", np.unique(ids[ids >= 0]).tolist())
    return [text if text is not None else strings.get(i, "") for text, i in zip(inline, ids.tolist(), strict=True)]


def _codes(found: DeviceWork, texts: list[str], picked: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    return found.names.codes([texts[i] for i in np.flatnonzero(picked).tolist()])
