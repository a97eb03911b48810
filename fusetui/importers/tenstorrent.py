"""Tenstorrent operation reports (`ops_perf_results_*.csv` of tt-metal): one row per operation on a device.

What becomes what
- An operation is an execution that ends with its firmware and lasts as long as its kernel took (DEVICE KERNEL
  DURATION): firmware waits for an operation on every core that is idle, kernels do not overlap.
- The report has times of the host and cycles of each device, unrelated. Each device is placed on the host's clock as
  early as it can be: no operation starts before its launch call began. So nothing is said of queue waits.
- Operations on the host are executions without a device, signposts are marks.
- What was measured over the cores of an operation is only their shortest, longest and mean time: the counter
  `core imbalance` is longest ÷ mean - 1 at the end of the operation; no row says which core.
- The tool's own gap is the counter `op to op latency`; `cores used` and `padding factor` are counters too.
- Operations replayed from a trace have `node`, their position in the replay.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.kineto_batches import merged_batches
from fusetui.importers.lines import CsvRows, header_fields, numbers
from fusetui.importers.rows import Rows, Words
from fusetui.importers.tenstorrent_rows import COUNTERS, OPERATION, Placed, placed, sections
from fusetui.importers.tenstorrent_shapes import operand_texts, shape_and_padding
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.text import safe_text

NAME: Final = "Tenstorrent operation report"

_COLUMNS: Final = {"OP CODE", "OP TYPE", "HOST START TS", "DEVICE FW START CYCLE", "DEVICE FW END CYCLE"}
_NUMBERS: Final = {
    "host_start": "HOST START TS",
    "host_end": "HOST END TS",
    "fw_start": "DEVICE FW START CYCLE",
    "fw_end": "DEVICE FW END CYCLE",
    "fw_ns": "DEVICE FW DURATION [ns]",
    "kernel_ns": "DEVICE KERNEL DURATION [ns]",
    "gap_ns": "OP TO OP LATENCY [ns]",
    "cores": "CORE COUNT",
    "core_max": "DEVICE KERNEL DURATION PER CORE MAX [ns]",
    "core_mean": "DEVICE KERNEL DURATION PER CORE AVG [ns]",
    "device": "DEVICE ID",
    "trace": "METAL TRACE ID",
    "session": "METAL TRACE REPLAY SESSION ID",
}

Floats = npt.NDArray[np.float64]


def sniff(head: bytes) -> bool:
    """The columns every version has, in the first line."""
    return set(header_fields(head.partition(b"\n")[0][:16384])) >= _COLUMNS


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a report. Raises TelemetryError when no operation in it has times."""
    found = _Found(memory_bytes)
    with ByteStream(path) as stream:
        rows = CsvRows(stream, quoted=True)
        for columns in rows:
            found.take(columns)
        damage = stream.damage
    table = placed(found.rows.table())
    if not len(table.at):
        reason = f" ({table.notes[0]})" if table.notes else ""
        raise TelemetryError(
            str(path), f"{NAME} in which no operation has times{reason}", "profile with TT_METAL_DEVICE_PROFILER=1"
        )
    notes = [*table.notes, *([f"rows that are no operation: {rows.skipped:,}"] if rows.skipped else [])]
    notes += [damage] if damage else []
    header = Header(source="tenstorrent", clock="trace", hardware=found.hardware(table))
    return Capture(header, merged_batches(sections(table, *found.coded()), found.words()), notes)


class _Found:
    """Columns of one report, filled chunk by chunk."""

    def __init__(self, memory_bytes: int) -> None:
        self.rows = Rows(OPERATION, memory_bytes // 4)
        self._names, self._operands = Words(memory_bytes // 16), Words(memory_bytes // 16)
        self._facts: dict[str, set[str]] = {"DEVICE ARCH": set(), "AVAILABLE WORKER CORE COUNT": set()}

    def take(self, columns: dict[str, pa.Array]) -> None:
        rows = len(columns["OP CODE"])
        for name, seen in self._facts.items():
            if name in columns and len(seen) < 8:
                seen |= {safe_text(text, 40) for text in columns[name].unique().to_pylist()[:8]} - {""}
        kinds = columns["OP TYPE"].to_pylist()
        operands = operand_texts(columns, rows).to_pylist()
        values: dict[str, npt.NDArray[Any]] = {
            key: numbers(columns[name]) if name in columns else np.full(rows, np.nan) for key, name in _NUMBERS.items()
        }
        self.rows.add(
            name=self._names.codes(columns["OP CODE"].to_pylist()),
            operands=self._operands.codes(operands),
            signpost=np.array([kind.strip() == "signpost" for kind in kinds], np.bool_),
            **values,
        )

    def words(self) -> dict[str, list[str | None]]:
        shapes = [shape_and_padding(text)[0] or None for text in self._operands]
        names = [*self._names.texts(), *(name for name, _ in COUNTERS)]
        return {"name": list(names), "shape": shapes, "unit": [unit for _, unit in COUNTERS]}

    def coded(self) -> tuple[Floats, int]:
        """Computed ÷ asked elements per operand code, shape (codes,), and the code of the first counter's name."""
        return np.array([shape_and_padding(text)[1] for text in self._operands], np.float64), len(self._names)

    def hardware(self, table: Placed) -> dict[str, str]:
        arch, cores = (", ".join(sorted(seen)) for seen in self._facts.values())
        facts = {f"device {number}": f"{arch or 'Tenstorrent'} at {mhz} MHz" for number, mhz in table.clocks_mhz}
        return {**facts, **({"cores": cores} if cores else {})}
