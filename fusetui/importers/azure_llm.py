"""Azure LLM inference traces (CSV, 2023 and 2024): when requests came and how many tokens they had.

`TIMESTAMP,ContextTokens,GeneratedTokens`. Times have up to nine decimals and no zone in 2023; they are taken as UTC.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.lines import CsvRows, header_fields, numbers
from fusetui.importers.requestlog import ABSENT, RequestLog

NAME: Final = "Azure LLM trace"

_COLUMNS: Final = {"TIMESTAMP", "ContextTokens", "GeneratedTokens"}
_TIME: Final = r"^(?P<day>\d{4}-\d\d-\d\d)[ T](?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)(?:\.(?P<f>\d{1,9}))?(?:Z|\+00:00)?$"
_EPOCH: Final = date(1970, 1, 1)
_DAY_NS: Final = 86_400_000_000_000


def sniff(head: bytes) -> bool:
    """The three columns in the first line."""
    return set(header_fields(head.partition(b"\n")[0][:500])) >= _COLUMNS


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a trace. Raises TelemetryError when no row can be read."""
    log = RequestLog(str(path), memory_bytes // 2)
    with ByteStream(path) as stream:
        rows = CsvRows(stream)
        for columns in rows:
            log.add(
                timestamps_ns(columns["TIMESTAMP"]),
                numbers(columns["ContextTokens"]),
                numbers(columns["GeneratedTokens"]),
            )
        damage = stream.damage
    log.bad += rows.skipped
    notes = ["times have no zone: taken as UTC", *([damage] if damage else [])]
    return log.capture("azure-llm", clock="epoch", build={"log": NAME}, notes=notes)


def timestamps_ns(column: pa.Array) -> npt.NDArray[np.int64]:
    """`2023-11-16 18:17:03.9799600` as ns since the epoch, shape (rows,); ABSENT where it is no time."""
    parts = pc.extract_regex(column, _TIME)
    found = parts.is_valid().to_numpy(zero_copy_only=False)
    days, index = np.unique(pc.fill_null(parts.field("day"), "").to_numpy(zero_copy_only=False), return_inverse=True)
    day_ns = np.array([_day_ns(day) for day in days.tolist()], np.int64)[index]
    hours, minutes, seconds = (_digits(parts.field(name)) for name in ("h", "m", "s"))
    fraction = _digits(pc.utf8_rpad(pc.fill_null(parts.field("f"), ""), 9, "0"))
    good = found & (day_ns != ABSENT) & (hours < 24) & (minutes < 60) & (seconds < 61)
    of_day_ns = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000 + fraction
    times: npt.NDArray[np.int64] = np.where(good, np.where(good, day_ns, 0) + of_day_ns, ABSENT)
    return times


def _digits(column: pa.Array) -> npt.NDArray[np.int64]:
    texts = pc.fill_null(column, "0")
    digits: npt.NDArray[np.int64] = pc.if_else(pc.equal(texts, ""), "0", texts).cast(pa.int64()).to_numpy()
    return digits


def _day_ns(text: str) -> int:
    try:
        return (date.fromisoformat(text) - _EPOCH).days * _DAY_NS
    except ValueError:
        return ABSENT
