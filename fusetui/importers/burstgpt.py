"""BurstGPT traces (CSV): requests to ChatGPT and GPT-4 over months.

Versions 1 and 2 have arrivals and tokens; version 3 adds the session and the whole seconds until the answer was there,
which makes a latency. A request without response tokens failed: it is an arrival only, whatever time it took.
The stream is the model, the name of a request the kind of log it comes from.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.lines import CsvRows, header_fields, numbers
from fusetui.importers.requestlog import RequestLog
from fusetui.importers.rows import Words

NAME: Final = "BurstGPT trace"

_COLUMNS: Final = {"Timestamp", "Model", "Request tokens", "Response tokens", "Log Type"}
_WORD_BYTES: Final = 1 << 16


def sniff(head: bytes) -> bool:
    """The columns all versions have, with or without a unit, in the first line."""
    return set(_plain(header_fields(head.partition(b"\n")[0][:500]))) >= _COLUMNS


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a trace. Raises TelemetryError when no row can be read."""
    log = RequestLog(str(path), memory_bytes // 2)
    kinds, models = Words(_WORD_BYTES), Words(_WORD_BYTES)
    failed = 0
    with ByteStream(path) as stream:
        rows = CsvRows(stream)
        version = "3" if "Elapsed time" in _plain(rows.header) else "1 or 2"
        for raw in rows:
            columns = dict(zip(_plain(list(raw)), raw.values(), strict=True))
            at_s, output = numbers(columns["Timestamp"]), numbers(columns["Response tokens"])
            failed += int((output == 0).sum())
            end_s = at_s + numbers(columns["Elapsed time"]) if "Elapsed time" in columns else None
            log.add(
                at_s, numbers(columns["Request tokens"]), output,
                end_s=None if end_s is None else np.where(output > 0, end_s, np.nan),
                name=_coded(columns["Log Type"], kinds), stream=_coded(columns["Model"], models),
            )  # fmt: skip
        damage = stream.damage
    log.bad += rows.skipped
    notes = [f"{failed:,} requests failed: no response tokens"] if failed else []
    notes += ["ends are in whole seconds"] if version == "3" else []
    notes += [damage] if damage else []
    return log.capture(
        "burstgpt", clock="trace", build={"log": NAME, "version": version}, notes=notes, names=kinds.texts(),
        streams=models.texts(),
    )  # fmt: skip


def _plain(names: list[str]) -> list[str]:
    return [name.removesuffix("(s)").strip() for name in names]


def _coded(column: pa.Array, words: Words) -> npt.NDArray[np.int64]:
    found = column.dictionary_encode()
    codes: npt.NDArray[np.int64] = words.codes(found.dictionary.to_pylist()).astype(np.int64)
    coded: npt.NDArray[np.int64] = codes[found.indices.to_numpy()]
    return coded
