"""Logs of requests to contract rows.

A request whose end was measured is a row of kind `request`: enqueue and start are its arrival, as the log says nothing
of when service began. A log that only knows when requests came says nothing about their latency, and must not seem
to: an open request would count as waiting for ever, an ended one as served at once. Such an arrival is a reading of
the counter `prompt tokens` at that time, with the request's number and shape.

`shape` is `tokens=<prompt> output=<answer>`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fusetui.importers.capture import Capture
from fusetui.importers.rows import Rows
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Clock, Header
from fusetui.telemetry.schema import COUNTER, KINDS, REQUEST, build_batch

ABSENT: Final = np.iinfo(np.int64).min
ARRIVAL: Final = "prompt tokens"
_BATCH_ROWS: Final = 1 << 16
_DTYPE: Final = np.dtype(
    [
        ("at", np.int64),
        ("end", np.int64),
        ("prompt", np.int64),
        ("output", np.int64),
        ("request", np.int64),
        ("name", np.int32),
        ("stream", np.int32),
    ]
)
_MOST_TOKENS: Final = 1 << 31
_MANY_TIES: Final = 0.1

Ints = npt.NDArray[np.int64]


class RequestLog:
    """Rows of a log while it is read; bad ones are counted in `bad` and left out."""

    def __init__(self, where: str, memory_bytes: int) -> None:
        self._where = where
        self._rows = Rows(_DTYPE, memory_bytes)
        self._seen = 0
        self.bad = 0

    def add(
        self,
        at_s: npt.NDArray[np.float64] | Ints,
        prompt: npt.NDArray[np.float64],
        output: npt.NDArray[np.float64],
        *,
        end_s: npt.NDArray[np.float64] | None = None,
        name: Ints | int = 0,
        stream: Ints | int = -1,
    ) -> None:
        """Take in rows, all arrays (rows,).

        at_s    arrival: seconds as floats, or ns as integers
        end_s   seconds; NaN where it was not measured
        name, stream  codes; -1: none
        """
        at, good = _ns(at_s)
        good &= (prompt >= 0) & (output >= 0) & (prompt < _MOST_TOKENS) & (output < _MOST_TOKENS)
        end = np.full(len(at), ABSENT)
        if end_s is not None:
            ends, known = _ns(end_s)
            end = np.where(known & (ends >= at), ends, ABSENT)
        request = self._seen + np.arange(len(at))
        self._seen += len(at)
        self.bad += int((~good).sum())
        self._rows.add(
            at=at[good], end=end[good], prompt=prompt[good], output=output[good], request=request[good],
            name=np.broadcast_to(name, at.shape)[good], stream=np.broadcast_to(stream, at.shape)[good],
        )  # fmt: skip

    def capture(
        self,
        source: str,
        *,
        clock: Clock,
        build: Mapping[str, str],
        notes: Sequence[str] = (),
        names: Sequence[str] = ("request",),
        streams: Sequence[str] = (),
    ) -> Capture:
        """The rows in order of event time. Raises TelemetryError when there is none."""
        table = self._rows.table()
        if not len(table):
            raise TelemetryError(self._where, f"a {source} log without one readable request")
        measured = int((table["end"] != ABSENT).sum())
        lines = [*notes, *_arrival_notes(np.sort(table["at"])), *self._bad_note()]
        if measured < len(table):
            lines.append(f"{len(table) - measured:,} requests have no end: arrivals only, no latency")
        zero = int(table["at"].min()) if clock == "trace" else 0
        header = Header(source=source, clock=clock, build=dict(build))
        return Capture(header, _batches(table, zero, names, streams), lines)

    def _bad_note(self) -> list[str]:
        return [f"{self.bad:,} rows left out: no time, or no number of tokens"] if self.bad else []


def _ns(seconds: npt.NDArray[np.float64] | Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Times in ns and which of them are possible."""
    if seconds.dtype.kind == "i":
        return seconds.astype(np.int64), seconds != ABSENT
    good = np.isfinite(seconds) & (np.abs(seconds) < 4e9)
    return np.round(np.where(good, seconds, 0.0) * 1e9).astype(np.int64), good


def _arrival_notes(at: Ints) -> list[str]:
    """Whether many arrivals share a time: then nobody knows how far apart they came."""
    gaps = np.diff(at)
    ties = int((gaps == 0).sum())
    if len(at) < 100 or ties < _MANY_TIES * len(gaps):
        return []
    positive = gaps[gaps > 0]
    if not len(positive):
        return [f"all {len(at):,} arrivals have the same time"]
    step_s = float(np.median(positive)) / 1e9
    return [
        f"arrival times come in steps of about {step_s:g} s ({len(positive) + 1:,} distinct of {len(at):,}): "
        "the bursts on one time are the log's rounding, not the load's"
    ]


def _batches(table: npt.NDArray[Any], zero: int, names: Sequence[str], streams: Sequence[str]) -> Iterator[Any]:
    order = np.argsort(np.where(table["end"] != ABSENT, table["end"], table["at"]), kind="stable")
    for low in range(0, len(order), _BATCH_ROWS):
        yield _batch(table[order[low : low + _BATCH_ROWS]], zero, names, streams)


def _batch(rows: npt.NDArray[Any], zero: int, names: Sequence[str], streams: Sequence[str]) -> pa.RecordBatch:
    at, measured = rows["at"] - zero, rows["end"] != ABSENT
    kinds = np.where(measured, KINDS.index(REQUEST), KINDS.index(COUNTER)).astype(np.int8)
    named = np.where(measured, rows["name"] + 1, 0).astype(np.int32)
    counted = pa.array(np.zeros(len(at), np.int8), mask=measured)
    return build_batch(
        {
            "kind": pa.DictionaryArray.from_arrays(pa.array(kinds), pa.array(KINDS)),
            "name": pa.DictionaryArray.from_arrays(pa.array(named), pa.array([ARRIVAL, *names])),
            "enqueue_ns": pa.array(at, mask=~measured),
            "start_ns": at,
            "end_ns": np.where(measured, rows["end"] - zero, at),
            "stream": _codes(rows["stream"], streams),
            "request": rows["request"],
            "shape": shapes(rows["prompt"], rows["output"]),
            "value": pa.array(rows["prompt"].astype(np.float64), mask=measured),
            "unit": pa.DictionaryArray.from_arrays(counted, pa.array(["tokens"])),
        }
    )


def _codes(codes: npt.NDArray[np.int32], words: Sequence[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(words, pa.utf8()))


def shapes(prompt: Ints, output: Ints, answer: str = "output") -> pa.DictionaryArray:
    """The shape key of each request, shape (rows,); both counts below 2^31."""
    keys, codes = np.unique(prompt.astype(np.int64) << 31 | output, return_inverse=True)
    parts = [(keys >> 31), keys & (_MOST_TOKENS - 1)]
    texts = [pa.array(part).cast(pa.utf8()) for part in parts]
    words = pc.binary_join_element_wise(pc.binary_join_element_wise("tokens=", texts[0], ""), texts[1], f" {answer}=")
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), words)
