"""Ascend kernel tables: `kernel_details.csv` of the PyTorch profiler and `op_summary_*.csv` of msprof.

A row is an execution on its device and stream. Its wait time is, as CANN documents it, the time since the task before
ended: a gap and no queue wait, so it is the counter `task wait`; nothing in the table says when a task was launched.
`cores used` is the block count. Operations counted by the arithmetic metrics are `flops`.
Times are decimal text in us, often padded with a tab against spreadsheets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fusetui.importers.ascend_shapes import shape_key
from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.kineto_batches import ABSENT, Columns, Section, merged_batches
from fusetui.importers.lines import CsvRows, header_fields, numbers
from fusetui.importers.rows import Rows, Words
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import COUNTER, EXECUTION

NAME: Final = "Ascend kernel table"

_START: Final = ("Start Time(us)", "Task Start Time(us)")
_DURATION: Final = ("Duration(us)", "Task Duration(us)")
_WAIT: Final = ("Wait Time(us)", "Task Wait Time(us)")
_NAME: Final = ("Name", "Op Name")
_BLOCKS: Final = ("Block Num", "Block Dim")
_FLOPS: Final = ("aic_cube_fops", "aiv_cube_fops", "aic_vector_fops", "aiv_vector_fops", "cube_fops", "vector_fops")
_MICROS: Final = r"^\s*(?P<whole>\d{1,16})(?:\.(?P<part>\d{1,12}))?\s*$"
_SINCE_1970_NS: Final = 10**18
_MAX_NS: Final = 4 * 10**18
_KERNEL: Final = np.dtype(
    [
        ("start", "i8"), ("end", "i8"), ("device", "i8"), ("step", "i8"), ("wait", "f8"), ("blocks", "f8"),
        ("flops", "f8"), ("name", "i4"), ("stream", "i4"), ("shape", "i4"),
    ]
)  # fmt: skip
_COUNTERS: Final = (("task wait", "ns"), ("cores used", None))

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Table = dict[str, pa.Array]


def sniff(head: bytes) -> bool:
    """A header line with a start, a duration and a wait in us."""
    names = set(header_fields(head.partition(b"\n")[0][:16384]))
    return all(names & set(known) for known in (_START, _DURATION, _WAIT, _NAME))


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a table. Raises TelemetryError when no row has times."""
    found = _Found(memory_bytes)
    with ByteStream(path) as stream:
        rows = CsvRows(stream, quoted=True)
        for columns in rows:
            found.take(columns)
        notes = [stream.damage] if stream.damage else []
    table = found.rows.table()
    bad = found.bad + rows.skipped
    if not len(table):
        raise TelemetryError(str(path), f"{NAME} in which no row has times")
    notes.append("no queue wait: a task's wait is the time since the task before it; a trace of CANN has the launches")
    notes += [f"rows left out: no times, or another number of fields: {bad:,}"] if bad else []
    notes += [] if any(found.shapes()) else ["no input shapes: profile at level 1 or above"]
    since_1970 = int(table["start"].min()) >= _SINCE_1970_NS
    header = Header(source="ascend", clock="epoch" if since_1970 else "trace")
    zero = 0 if since_1970 else int(table["start"].min())
    return Capture(header, merged_batches(found.sections(table, zero), found.words()), notes)


class _Found:
    """Columns of one table, filled chunk by chunk."""

    def __init__(self, memory_bytes: int) -> None:
        self.rows = Rows(_KERNEL, memory_bytes // 4)
        eighth = memory_bytes // 16
        self._names, self._streams, self._shapes = Words(eighth), Words(eighth), Words(eighth)
        self.bad = 0

    def take(self, columns: Table) -> None:
        start, took = (micros_ns(_one(columns, names)) for names in (_START, _DURATION))
        good = (start != ABSENT) & (took != ABSENT)
        good &= np.where(good, start, 0) < _MAX_NS - np.where(good, took, 0)
        self.bad += int((~good).sum())
        rows = len(start)
        streams = columns["Stream ID"].to_pylist() if "Stream ID" in columns else [""] * rows
        sizes, kinds = (
            columns[name].to_pylist() if name in columns else [""] * rows
            for name in ("Input Shapes", "Input Data Types")
        )
        device = _real(columns, ("Device_id", "Device ID"), rows)
        step = _real(columns, ("Step Id", "Step ID"), rows)
        self.rows.add(
            start=start[good], end=(start + np.where(good, took, 0))[good], device=_whole(device)[good],
            step=_whole(step)[good], wait=(_real(columns, _WAIT, rows) * 1000)[good],
            blocks=_real(columns, _BLOCKS, rows)[good], flops=_flops(columns, rows)[good],
            name=self._names.codes([text.strip() for text in _one(columns, _NAME).to_pylist()])[good],
            stream=self._streams.codes([text.strip() for text in streams])[good],
            shape=self._shapes.codes(list(map("|".join, zip(sizes, kinds, strict=True))))[good],
        )  # fmt: skip

    def shapes(self) -> list[str | None]:
        return [shape_key(*text.partition("|")[::2]) for text in self._shapes]

    def words(self) -> dict[str, list[str | None]]:
        streams: list[str | None] = [f"stream {text}" if text.isdigit() else None for text in self._streams.texts()]
        names = [*self._names.texts(), *(name for name, _ in _COUNTERS)]
        return {
            "name": list(names), "stream": streams, "shape": self.shapes(), "unit": [unit for _, unit in _COUNTERS],
        }  # fmt: skip

    def sections(self, table: npt.NDArray[Any], zero: int) -> list[Section]:
        def executions(picked: Ints) -> Columns:
            part = table[picked]
            return {
                "start_ns": part["start"] - zero, "end_ns": part["end"] - zero, "device": part["device"],
                "request": part["step"], "flops": part["flops"],
                **{key: part[key].astype(np.int64) for key in ("name", "stream", "shape")},
            }  # fmt: skip

        def counter(number: int, values: Floats, at: Ints) -> Section:
            which = np.flatnonzero(values >= 0)

            def columns(picked: Ints) -> Columns:
                rows, size = which[picked], len(picked)
                return {
                    "name": np.full(size, len(self._names) + number), "unit": np.full(size, number),
                    "start_ns": at[rows], "end_ns": at[rows], "value": values[rows], "device": table["device"][rows],
                    "stream": table["stream"][rows].astype(np.int64),
                }  # fmt: skip

            return Section(COUNTER, at[which], columns)

        found = [Section(EXECUTION, table["end"] - zero, executions)]
        found += [
            counter(0, table["wait"], table["start"] - zero),
            counter(1, np.where(table["blocks"] > 0, table["blocks"], np.nan), table["end"] - zero),
        ]
        return [section for section in found if len(section.end)]


def micros_ns(column: pa.Array) -> Ints:
    """Decimal text in us as ns, exactly, shape (rows,); ABSENT where it is none."""
    parts = pc.extract_regex(column, _MICROS)
    matched = parts.is_valid()
    whole = pc.if_else(matched, parts.field("whole"), "0").cast(pa.int64()).to_numpy()
    places = pc.utf8_rpad(pc.if_else(matched, parts.field("part"), ""), 3, "0")
    part = pc.utf8_slice_codeunits(places, 0, 3).cast(pa.int64()).to_numpy()
    found = matched.to_numpy(zero_copy_only=False)
    fits = found & (whole < _MAX_NS // 1000)
    return np.where(fits, np.where(fits, whole, 0) * 1000 + part, ABSENT)


def _one(columns: Table, names: tuple[str, ...]) -> pa.Array:
    return next(columns[name] for name in names if name in columns)


def _real(columns: Table, names: tuple[str, ...], rows: int) -> Floats:
    name = next((name for name in names if name in columns), None)
    return numbers(columns[name]) if name is not None else np.full(rows, np.nan)


def _flops(columns: Table, rows: int) -> Floats:
    counted = [numbers(columns[name]) for name in _FLOPS if name in columns]
    if not counted:
        return np.full(rows, np.nan)
    table = np.stack(counted)
    return np.where(np.isfinite(table).any(axis=0), np.nansum(table, axis=0), np.nan)


def _whole(values: Floats) -> Ints:
    known = np.isfinite(values) & (values >= 0) & (values < 1 << 31)
    return np.where(known, np.where(known, values, 0).astype(np.int64), ABSENT)
