"""Tenstorrent device logs (`profile_log_device.csv` of tt-metal): when a processor of a core entered and left a zone.

The first line has the chip's clock, the second the columns, which changed often; times are cycles since reset.
A begin and the next end of one zone on one processor of one core make an execution: the core is numbered in order of
its row and column, the stream is the processor, the request the run the host knows it by. Kernel zones are taken; the
firmware zones around them, and the zones a kernel marks inside itself, would count the same time twice and are left
out (firmware zones are taken when there is no kernel zone).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fusetui.importers.bytestream import ByteStream, head_of
from fusetui.importers.capture import Capture
from fusetui.importers.kineto_batches import ABSENT, Columns, Section, merged_batches
from fusetui.importers.lines import CsvRows, numbers
from fusetui.importers.rows import Rows, Words
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import EXECUTION
from fusetui.telemetry.text import safe_text

NAME: Final = "Tenstorrent device log"

_FIRST: Final = re.compile(rb"\s*ARCH:\s*([\w-]{1,40})\s*,\s*CHIP_FREQ\[MHz\]:\s*(\d{1,6})(?:\.\d+)?[^\n]*\n")
_PLACE: Final = ("PCIe slot", "core_x", "core_y")
_TIME: Final = "time[cycles since reset]"
_PHASES: Final = ("type", "zone phase")
_RUNS: Final = ("run host ID", "run ID", "Run ID", "Program ID")
_BEGIN, _END = 0, 1
_ZONE: Final = np.dtype(
    [
        ("slot", "i4"), ("x", "i4"), ("y", "i4"), ("risc", "i4"), ("zone", "i4"), ("phase", "i1"), ("run", "i8"),
        ("cycle", "i8"),
    ]
)  # fmt: skip
_MOST_CYCLES: Final = 1 << 52
_MANY: Final = 1 << 16

Ints = npt.NDArray[np.int64]


def sniff(head: bytes) -> bool:
    """The line with architecture and clock, before one with the time column."""
    first = _FIRST.match(head[:4096])
    return first is not None and _TIME.encode() in head[first.end() : first.end() + 4096]


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a log. Raises TelemetryError when no zone in it has a begin and an end."""
    first = _FIRST.match(head_of(path, 4096))
    if first is None:
        raise TelemetryError(str(path), f"a {NAME} without its first line")
    found = _Found(memory_bytes)
    with ByteStream(path) as stream:
        _skip(stream, first.end())
        rows = CsvRows(stream)
        phase = next((name for name in _PHASES if name in rows.header), None)
        if phase is None or "zone name" not in rows.header:
            raise TelemetryError(
                str(path), f"a {NAME} whose lines do not say which begin and which end a zone", "use a newer tt-metal"
            )
        for columns in rows:
            found.take(columns, phase)
        damage = stream.damage
    mhz, arch = int(first[2]), first[1].decode()
    notes = [*([f"lines left out: {found.bad + rows.skipped:,}"] if found.bad + rows.skipped else []), *found.notes()]
    notes += [] if mhz else ["the log does not know the chip's clock: times are cycles, not ns"]
    notes += [damage] if damage else []
    return found.capture(str(path), mhz or 1000, f"{arch} at {mhz} MHz" if mhz else arch, notes)


def _skip(stream: ByteStream, size: int) -> None:
    while size > 0 and (part := stream.read(size)):
        size -= len(part)


class _Found:
    """Begins and ends of one log."""

    def __init__(self, memory_bytes: int) -> None:
        self._rows = Rows(_ZONE, memory_bytes // 2)
        self._zones, self._riscs = Words(memory_bytes // 16), Words(memory_bytes // 16)
        self.bad = 0

    def take(self, columns: dict[str, pa.Array], phase: str) -> None:
        begins = [pc.utf8_lower(pc.utf8_trim_whitespace(columns[phase]))]
        kind = pc.index_in(begins[0], pa.array(["zone_start", "zone_end", "begin", "end"]))
        phases = pc.fill_null(kind, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        whole = [_whole(columns[name]) for name in (*_PLACE, _TIME) if name in columns]
        if len(whole) < 4:
            self.bad += len(phases)
            return
        slot, x, y, cycle = whole
        run_column = next((name for name in _RUNS if name in columns), None)
        run = _whole(columns[run_column]) if run_column else np.full(len(phases), ABSENT)
        inside = [(values >= 0) & (values < _MANY) for values in (slot, x, y)]
        placed = (cycle >= 0) & (cycle < _MOST_CYCLES) & np.logical_and.reduce(inside)
        # Lines of other types (values, totals) are no zone and no mistake.
        good = placed & (phases >= 0)
        self.bad += int((~placed).sum())
        self._rows.add(
            slot=slot[good], x=x[good], y=y[good], cycle=cycle[good], run=run[good], phase=phases[good] & 1,
            risc=_codes(columns.get("RISC processor type"), self._riscs, len(phases))[good],
            zone=_codes(columns["zone name"], self._zones, len(phases))[good],
        )  # fmt: skip

    def notes(self) -> list[str]:
        notes = []
        self._pairs, orphans = _paired(self._rows.table())
        if orphans:
            notes.append(f"begins or ends of zones without the other: {orphans:,}")
        zones = self._zones.texts()
        for suffix in ("-KERNEL", "-FW"):
            chosen = np.array([zone.upper().endswith(suffix) for zone in zones], np.bool_)
            if chosen.any() and len(self._pairs) and chosen[self._pairs["zone"]].any():
                kept = chosen[self._pairs["zone"]]
                if not kept.all():
                    notes.append(f"zones around or inside the {suffix[1:]} zones left out: {int((~kept).sum()):,}")
                self._pairs = self._pairs[kept]
                break
        return notes

    def capture(self, where: str, mhz: int, hardware: str, notes: list[str]) -> Capture:
        pairs = self._pairs
        if not len(pairs):
            raise TelemetryError(where, f"a {NAME} without a whole zone", "did the run end before it was written?")
        places = pairs["x"].astype(np.int64) + pairs["y"].astype(np.int64) * _MANY
        known, core = np.unique(places, return_inverse=True)
        zero = int(pairs["begin"].min())
        start, end = ((pairs[key] - zero) * 1000 // mhz for key in ("begin", "end"))

        def columns(picked: Ints) -> Columns:
            part = pairs[picked]
            return {
                "name": part["zone"].astype(np.int64), "start_ns": start[picked], "end_ns": end[picked],
                "device": part["slot"].astype(np.int64), "core": core[picked], "stream": part["risc"].astype(np.int64),
                "request": part["run"],
            }  # fmt: skip

        facts = {f"core {n}": f"x={place % _MANY} y={place // _MANY}" for n, place in enumerate(known[:256].tolist())}
        header = Header(source="tenstorrent", clock="trace", hardware={"chip": safe_text(hardware), **facts})
        words: dict[str, list[str | None]] = {"name": [*self._zones.texts()], "stream": [*self._riscs.texts()]}
        batches: Iterator[pa.RecordBatch] = merged_batches([Section(EXECUTION, end, columns)], words)
        return Capture(header, batches, notes)


_PAIR: Final = np.dtype([*((name, _ZONE[name]) for name in ("slot", "x", "y", "risc", "zone", "run")),
                         ("begin", "i8"), ("end", "i8")])  # fmt: skip


def _paired(rows: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], int]:
    """Each begin with the end that follows it on its processor and zone, and how many are left over."""
    where = [rows[name] for name in ("zone", "risc", "y", "x", "slot")]
    order = np.lexsort([rows["phase"], rows["cycle"], *where])
    same = np.logical_and.reduce([column[order][1:] == column[order][:-1] for column in where])
    phase = rows["phase"][order]
    first = np.flatnonzero(same & (phase[:-1] == _BEGIN) & (phase[1:] == _END))
    begins, ends = rows[order[first]], rows[order[first + 1]]
    pairs = np.empty(len(first), _PAIR)
    for name in ("slot", "x", "y", "risc", "zone", "run"):
        pairs[name] = begins[name]
    pairs["begin"], pairs["end"] = begins["cycle"], ends["cycle"]
    return pairs, len(rows) - 2 * len(first)


def _whole(column: pa.Array) -> Ints:
    values = numbers(column)
    known = np.isfinite(values)
    return np.where(known, np.where(known, values, 0).astype(np.int64), ABSENT)


def _codes(column: pa.Array | None, words: Words, rows: int) -> npt.NDArray[np.int32]:
    if column is None:
        return np.full(rows, words["core"], np.int32)
    found = pc.utf8_trim_whitespace(column).dictionary_encode()
    coded: npt.NDArray[np.int32] = words.codes(found.dictionary.to_pylist())[found.indices.to_numpy()]
    return coded
