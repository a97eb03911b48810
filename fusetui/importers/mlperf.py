"""MLPerf logs of lines `:::MLLOG {…}`: LoadGen's `mlperf_log_detail.txt`, and training logs.

A line with a number is a reading of the counter of its key at its time; any other is a mark `key: value` (`key start`
and `key stop` for intervals). Times of LoadGen count from the start of the test, times of training logs from 1970.
Settings (`requested_…`, `effective_…`, `loadgen_…`) go into the header; a target latency is the objective. Whether
LoadGen held the run valid, and why not, is a note.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.lines import line_chunks
from fusetui.importers.readings import Readings
from fusetui.telemetry.header import Header
from fusetui.telemetry.text import safe_text

NAME: Final = "MLPerf log"

_LINE: Final = re.compile(rb"^[^\n]{0,200}?:::MLLOG (\{[^\n]*\})[^\n]*$", re.MULTILINE)
_SETTING: Final = re.compile(r"(?:requested|effective|generated|loadgen|logger|qsl|get_sut)_")
_KEPT: Final = {
    "loadgen_version": "loadgen",
    "sut_name": "system",
    "effective_scenario": "scenario",
    "effective_test_mode": "mode",
    "effective_target_qps": "target queries/s",
}
_UNITS: Final = (("_ns", "ns"), ("_ms", "ms"), ("_per_sec", "/s"))
_SINCE_1970_MS: Final = 10**12
_MAX_MS: Final = 4 * 10**12


class _Entry(msgspec.Struct, gc=False):
    key: str
    time_ms: int | float
    value: Any = None
    event_type: str = ""
    metadata: Any = None


def sniff(head: bytes) -> bool:
    """A line of that kind near the beginning."""
    return bool(_LINE.search(head[: 64 << 10]))


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a log. Raises TelemetryError when no line of it can be read."""
    log = _Log(Readings(str(path), memory_bytes // 2))
    with ByteStream(path) as stream:
        for chunk in line_chunks(stream):
            log.take(chunk)
        damage = stream.damage
    header = Header(
        source="mlperf", clock="epoch" if log.since_1970 else "trace", build=log.build, slo_ns=log.objective_ns
    )
    return log.rows.capture(header, [*log.notes(), *([damage] if damage else [])])


class _Log:
    """One log while it is read."""

    def __init__(self, rows: Readings) -> None:
        self.rows = rows
        self.build: dict[str, str] = {}
        self.objective_ns: int | None = None
        self.since_1970 = False
        self._verdict = self._reason = ""
        self._bad = 0

    def take(self, chunk: bytes) -> None:
        counters: list[tuple[int, float, str]] = []
        marks: list[tuple[int, str]] = []
        for match in _LINE.finditer(chunk):
            try:
                entry = msgspec.json.decode(match[1], type=_Entry)
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                self._bad += 1
                continue
            if not 0 <= entry.time_ms < _MAX_MS:
                self._bad += 1
                continue
            self.since_1970 |= entry.time_ms >= _SINCE_1970_MS
            at_ns = round(entry.time_ms * 1_000_000)
            if self._is_setting(entry):
                continue
            if type(entry.value) in (int, float):
                counters.append((at_ns, float(entry.value), safe_text(entry.key, 120)))
            else:
                marks.append((at_ns, _mark(entry)))
        at, names = np.array([c[0] for c in counters], np.int64), [c[2] for c in counters]
        self._bad += self.rows.add(at, np.array([c[1] for c in counters]), name=names, unit=[_unit(n) for n in names])
        self.rows.add(np.array([m[0] for m in marks], np.int64), None, name=[m[1] for m in marks])

    def _is_setting(self, entry: _Entry) -> bool:
        text = safe_text(str(entry.value), 200)
        if entry.key in _KEPT:
            self.build[_KEPT[entry.key]] = text
        if entry.key == "effective_target_latency_ns" and type(entry.value) is int and 0 < entry.value < 1 << 62:
            self.objective_ns = entry.value
        if entry.key == "result_validity":
            self._verdict = text
        if entry.key == "result_invalid_reason":
            self._reason = text
        return entry.key in _KEPT or bool(_SETTING.match(entry.key))

    def notes(self) -> list[str]:
        notes = [f"LoadGen's verdict: {self._verdict}{_because(self._reason)}"] if self._verdict else []
        if self._verdict:
            notes.append("results of the whole test only: mlperf_log_trace.json of the run has every sample")
        return notes + ([f"lines that could not be read: {self._bad:,}"] if self._bad else [])


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""


def _unit(key: str) -> str | None:
    return next((unit for suffix, unit in _UNITS if key.endswith(suffix)), None)


def _mark(entry: _Entry) -> str:
    key = safe_text(entry.key, 120)
    if entry.event_type in ("INTERVAL_START", "INTERVAL_END"):
        return (
            f"{key.removesuffix('_start').removesuffix('_stop')} {'start' if 'START' in entry.event_type else 'stop'}"
        )
    return key if entry.value is None else f"{key}: {safe_text(str(entry.value), 300)}"
