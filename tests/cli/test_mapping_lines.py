"""What `fusetui snapshot` prints of the mapping."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from fusetui.analysis.summary import summarise_trace
from fusetui.commands.table import summary_lines
from fusetui.telemetry.open import open_trace
from fusetui.telemetry.schema import SCHEMA, build_batch


def _lines(path: Path, batch: pa.RecordBatch) -> list[str]:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, SCHEMA) as writer:
        writer.write_batch(batch)
    trace = open_trace(path)
    try:
        return list(summary_lines(summarise_trace(trace)))
    finally:
        trace.close()


def test_shares_padding_and_recompiles_are_two_lines(tmp_path: Path) -> None:
    end = np.arange(1, 11) * 1_000_000
    batch = build_batch(
        {
            "kind": pa.array(["execution"] * 8 + ["request", "mark"]),
            "name": pa.array(["k"] * 8 + ["r", "recompile"]),
            "start_ns": end - [*[500_000] * 8, 500_000, 0],
            "end_ns": end,
            "request": pa.array([1] * 9 + [None]),
            "mapping": pa.array(["planned"] * 6 + ["adapted", "fallback", None, None]),
            "shape": pa.array(["m=16"] * 8 + ["m=8", "m=16"]),
            "value": pa.array([None] * 9 + [2.5]),
            "unit": pa.array([None] * 9 + ["ms"]),
        }
    )
    lines = _lines(tmp_path / "c.arrows", batch)
    at = next(i for i, line in enumerate(lines) if line.startswith("mapping"))
    assert (
        lines[at].split(maxsplit=1)[1] == "planned 75.0 %, adapted 12.5 %, fallback 12.5 %; padding 2.00x, accuracy —"
    )
    assert " ".join(lines[at + 1].split()) == "1 recompiles, stall 2.50 ms; adaptation gain —, fallback cost —"


def test_nothing_is_said_where_nothing_is_known(tmp_path: Path) -> None:
    batch = build_batch({"kind": "execution", "name": "k", "start_ns": np.arange(3), "end_ns": np.arange(3) + 1})
    assert not [line for line in _lines(tmp_path / "c.arrows", batch) if line.startswith("mapping")]
