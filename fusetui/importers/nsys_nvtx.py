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
_MARK_TYPE: Final = 34
_RANGES: Final = (59, 60, 70, 71)  # push/pop and start/end ranges, theirs with another's process


def take_ranges(db: Database, found: DeviceWork) -> list[str]:
    """Steps and marks; a note on the ranges that are neither."""
    others, opened = 0, 0
    for table in sorted(filter(_TABLE.match, db.tables)):
        for start, end, kind, text_id, inline in db.chunks(
            table, ["start", "end", "eventType", "textId"], texts=["text"]
        ):
            texts = _texts(db, text_id, inline)
            ranges = np.isin(kind, _RANGES)
            opened += int((ranges & (end == NULL)).sum())
            closed = ranges & (end != NULL)
            steps = closed & np.fromiter((bool(_STEP.match(text)) for text in texts), np.bool_, len(texts))
            others += int((closed & ~steps).sum())
            found.add_steps(start[steps], end[steps], name=_codes(found, texts, steps))
            marks = kind == _MARK_TYPE
            found.add_marks(start[marks], start[marks], name=_codes(found, texts, marks), stream=-1)
    notes = [f"NVTX ranges that are no steps, not shown: {others:,}"] if others else []
    return [*notes, f"NVTX ranges without an end left out: {opened:,}"] if opened else notes


def _texts(db: Database, ids: Ints, inline: Sequence[str | None]) -> list[str]:
    """Text of each event: its own, else the string of the export that it names."""
    strings = db.texts("StringIds", "id", "value", np.unique(ids[ids >= 0]).tolist())
    return [text if text is not None else strings.get(i, "") for text, i in zip(inline, ids.tolist(), strict=True)]


def _codes(found: DeviceWork, texts: list[str], picked: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    return found.names.codes([texts[i] for i in np.flatnonzero(picked).tolist()])
