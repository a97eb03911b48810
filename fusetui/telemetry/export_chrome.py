"""Contract batches as a Chrome trace (Trace Event Format, JSON), which ui.perfetto.dev and chrome://tracing open.

Times are microseconds with three decimals since `otherData.fusetui_base_ns`: since 1970 they would have more digits
than the viewers keep. Requests are asynchronous slices, as they overlap.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fusetui.telemetry.export_picture import ABSENT, Picture, Slices, Track, few_large, integers, words
from fusetui.telemetry.header import Header
from fusetui.telemetry.tracknames import BASE_KEY, NO_STREAM

Ints = npt.NDArray[np.int64]

DAY_NS: Final = 86_400 * 10**9
NUMBERS: Final = ("request", "core", "node", "batch", "group", "launch_ns", "dram_bytes", "sram_bytes", "flops")
TEXTS: Final = ("plan", "mapping", "shape")
"""Columns that are shown beside an execution."""


def write_chrome(sink: IO[bytes], header: Header, batches: Iterable[pa.RecordBatch]) -> int:
    """A Chrome trace; returns the rows drawn: open work is left out."""
    picture = Picture()
    base_ns: int | None = None
    lead = b"\n"
    for batch in few_large(batches):
        if base_ns is None:
            base_ns = base_of(header, batch)
            sink.write(_head(header, base_ns))
        lines = _Lines(picture, batch, base_ns).all()
        if lines:
            sink.write(lead + b",\n".join(lines))
            lead = b",\n"
    if base_ns is None:
        sink.write(_head(header, 0))
    sink.write(b"\n]}\n")
    return picture.rows


def base_of(header: Header, batch: pa.RecordBatch) -> int:
    """What times are counted from: 0 on a trace's own clock, else the midnight a day before the first batch."""
    if header.clock != "epoch" or not len(batch):
        return 0
    earliest = pc.min(batch.column("end_ns")).as_py()
    return 0 if earliest is None else max(0, (earliest // DAY_NS - 1) * DAY_NS)


def _head(header: Header, base_ns: int) -> bytes:
    about = {
        BASE_KEY: str(base_ns) if header.clock == "epoch" else "",
        "source": header.source,
        "host": header.host,
        "hardware": dict(header.hardware),
        "build": dict(header.build),
    }
    return b'{"displayTimeUnit": "ns", "otherData": ' + json.dumps(about).encode() + b', "traceEvents": ['


class _Lines:
    """The events of one batch as text, many at a time."""

    def __init__(self, picture: Picture, batch: pa.RecordBatch, base_ns: int) -> None:
        self._picture, self._batch, self._base_ns = picture, batch, base_ns
        self._first = picture.seen
        self._drawn = picture.of(batch)
        self._name = quoted(batch, "name")

    def all(self) -> list[bytes]:
        """Pieces of one line or more each."""
        drawn = self._drawn
        names = [line for track in drawn.tracks for line in _names(track)]
        parts = [
            names,
            self._slices("launch", drawn.launches, pa.scalar('"launch"'), pa.scalar("")),
            self._slices("execution", drawn.executions, self._name, self._details(drawn.executions.row)),
            self._arrow_ends("s", "", drawn.launches),
            self._arrow_ends("f", ',"bp":"e"', drawn.executions),
            self._request_ends("b", drawn.requests, drawn.requests.start),
            self._request_ends("e", drawn.requests, drawn.requests.end),
            self._marks(drawn.marks),
            self._readings(drawn.readings),
        ]
        return [",\n".join(part).encode() for part in parts if part]

    def _slices(self, kind: str, of: Slices, name: Any, details: Any) -> list[str]:
        took = joined(
            ',"dur":', _us(of.end - of.start), ',"args":{"capture_row":', _text(of.row + self._first), details, "}}"
        )
        return _list(self._event("X", kind, of, of.start, _at(name, of.row)), took)

    def _arrow_ends(self, phase: str, more: str, of: Slices) -> list[str]:
        rows = np.flatnonzero(of.arrow)
        chosen = Slices(of.row[rows], of.track[rows], of.start[rows], of.end[rows], of.arrow[rows])
        event = self._event(phase, "launch", chosen, chosen.start, pa.scalar('"launch"'))
        return _list(event, joined(',"id":', _text(chosen.arrow), more, "}"))

    def _request_ends(self, phase: str, of: Slices, time: Ints) -> list[str]:
        # Rows so far make the number one of its own; a row is drawn once.
        number = joined(',"id":', _text(of.row + self._first))
        rest = joined(number, pa.scalar("}"))
        if phase == "b":
            rest = joined(number, ',"args":{"capture_row":', _text(of.row + self._first), self._details(of.row), "}}")
        return _list(self._event(phase, "request", of, time, _at(self._name, of.row)), rest)

    def _marks(self, of: Slices) -> list[str]:
        return _list(self._event("i", "mark", of, of.end, _at(self._name, of.row)), joined(',"s":"p"}'))

    def _readings(self, of: Slices) -> list[str]:
        value = self._batch.column("value").take(pa.array(of.row)).cast(pa.utf8())
        event = self._event("C", "counter", of, of.end, _at(self._name, of.row))
        return _list(event, joined(',"args":{"value":', value, "}}"))

    def _event(self, phase: str, kind: str, of: Slices, time: Ints, name: Any) -> pa.Array:
        """Everything that events of all phases have, without the closing brace."""
        return joined(
            f'{{"ph":"{phase}","cat":"{kind}","name":', name,
            ',"pid":', _text(self._picture.process_of(of.track)), ',"tid":', _text(of.track),
            ',"ts":', _us(time - self._base_ns),
        )  # fmt: skip

    def _details(self, rows: Ints) -> pa.Array:
        """`,"column":value` of every column that a row has a value in."""
        parts: list[Any] = [pa.array([""] * len(rows), pa.utf8())]
        enqueue, start = (integers(self._batch, name)[rows] for name in ("enqueue_ns", "start_ns"))
        waited = pa.array(start - enqueue, mask=(start == ABSENT) | (enqueue == ABSENT))
        columns = {"wait_ns": waited} | {name: self._batch.column(name).take(pa.array(rows)) for name in NUMBERS}
        columns |= {name: _at(quoted(self._batch, name), rows) for name in TEXTS}
        for name, values in columns.items():
            if values.null_count < len(values):
                told = pc.binary_join_element_wise(f',"{name}":', values.cast(pa.utf8()), "")
                parts.append(pc.fill_null(told, ""))
        return joined(*parts)


def _names(track: Track) -> list[str]:
    place = f'"pid":{track.process},"tid":{track.number}'
    lines = [("process_name", track.process_name)]
    if track.unit is None:
        lines.append(("thread_name", track.name or NO_STREAM))
    return [f'{{"ph":"M","name":"{what}",{place},"args":{{"name":{json.dumps(name)}}}}}' for what, name in lines]


def quoted(batch: pa.RecordBatch, column: str) -> pa.Array:
    """A text column as JSON, null where it is null."""
    codes, known = words(batch, column)
    texts = pa.array([json.dumps(word) for word in known], pa.utf8())
    return texts.take(pa.array(codes, mask=codes < 0))


def joined(*parts: Any) -> pa.Array:
    """Texts side by side, row by row; a plain text is the same in every row."""
    return pc.binary_join_element_wise(*parts, "")


def _at(values: Any, rows: Ints) -> Any:
    return values if isinstance(values, pa.Scalar) else values.take(pa.array(rows))


def _text(values: Ints) -> pa.Array:
    return pa.array(values).cast(pa.utf8())


def _us(values: Ints) -> pa.Array:
    """Nanoseconds as microseconds with all three decimals."""
    whole, rest = np.divmod(np.abs(values), 1000)
    sign = pa.array(np.where(values < 0, "-", "").tolist(), pa.utf8())
    return joined(sign, _text(whole), ".", pc.utf8_lpad(_text(rest), 3, "0"))


def _list(*parts: pa.Array) -> list[str]:
    if not any(isinstance(part, pa.Array) and len(part) for part in parts):
        return []
    found: list[str] = joined(*parts).to_pylist()
    return found
