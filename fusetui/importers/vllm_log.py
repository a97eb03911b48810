"""The log of a vLLM engine (its stderr): the line of averages every few seconds, and the table of CUDA graph use.

Each number of a line is a reading of a counter, the stream is the engine. With `--cudagraph-metrics` vLLM also tells
how many steps of how many tokens ran: `engine steps` has the count since the table before, the tokens asked and run as
shape, and whether a captured graph ran as it was (planned), padded (adapted) or not at all (fallback, mode NONE).
vLLM writes no year: then times count from the first line.
"""

from __future__ import annotations

import calendar
import re
from pathlib import Path
from typing import Final

import numpy as np

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.follow import ReadingLines
from fusetui.importers.lines import line_chunks
from fusetui.importers.readings import Readings
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import ADAPTED, FALLBACK, MAPPINGS, PLANNED
from fusetui.telemetry.text import safe_text

NAME: Final = "vLLM engine log"

_AVERAGES: Final = rb"Avg prompt throughput: *[\d.]+"
_LINE: Final = re.compile(
    rb"^[^\n]*(?:"
    + _AVERAGES
    + rb"|\| *\d+ *\| *\d+ *\| *\d+ *\| *\w+ *\| *\d+ *\||- (?:Mode|Capture sizes): )[^\n]*$",
    re.MULTILINE,
)
_TIME: Final = re.compile(r"(?:(\d{4})-)?(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)")
_ENGINE: Final = re.compile(r"Engine (\d{1,6}):")
_STEPS: Final = re.compile(r"\| *(\d{1,12}) *\| *(\d{1,12}) *\| *\d{1,12} *\| *(\w{1,40}) *\| *(\d{1,15}) *\|")
_SETTING: Final = re.compile(r"- (Mode|Capture sizes): *(.{1,2000})$")
_VALUE: Final = re.compile(r"([A-Z][A-Za-z ]{2,40}?): *(\d{1,15}(?:\.\d{1,9})?) *(tokens/s|reqs|%)?")
_KNOWN: Final = {
    "Avg prompt throughput": "prompt throughput",
    "Avg generation throughput": "generation throughput",
    "Running": "running requests",
    "Waiting": "pending requests",
    "Pending": "pending requests",
    "Swapped": "swapped requests",
    "GPU KV cache usage": "GPU KV cache",
    "CPU KV cache usage": "CPU KV cache",
    "Prefix cache hit rate": "prefix cache hits",
    "External prefix cache hit rate": "external prefix cache hits",
    "MM cache hit rate": "multimodal cache hits",
}
_STEP_NAME: Final = "engine steps"
_LEAP_YEAR: Final = 2024
_HALF_YEAR_S: Final = 182 * 86_400
_ROOM: Final = 4096  # characters of a line that are looked at


def sniff(head: bytes) -> bool:
    """A line of averages."""
    return not head.lstrip().startswith(b"{") and bool(re.search(_AVERAGES + rb" tokens/s, Avg generation", head))


def follow() -> ReadingLines:
    """A log that grows."""
    log = _Log()
    return ReadingLines(NAME, log.take, lambda: {"server": "vLLM", **log.settings}, "vllm")


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a log. Raises TelemetryError when no line of averages in it has a time."""
    log, rows = _Log(), Readings(str(path), memory_bytes)
    with ByteStream(path) as stream:
        for chunk in line_chunks(stream):
            log.take(chunk, rows)
        notes = [stream.damage] if stream.damage else []
    notes.append("averages over the engine's log interval: no request and no kernel is in the log")
    notes.append("times are local: taken as UTC" if log.has_year else "no year in the log: times count from its start")
    notes += [f"lines left out before the first time: {log.untimed:,}"] if log.untimed else []
    notes += [] if log.steps else ["what ran as a CUDA graph is not in it: --cudagraph-metrics would log it"]
    header = Header(source="vllm", clock="epoch" if log.has_year else "trace", build={"server": "vLLM", **log.settings})
    return rows.capture(header, notes)


class _Log:
    """One log while it is read."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.has_year = False
        self.untimed = self.steps = 0
        self._at_s: int | None = None
        self._year = _LEAP_YEAR

    def take(self, chunk: bytes, rows: Readings) -> int:
        """Put the readings of these lines into `rows`; returns how many lines had no time."""
        untimed = self.untimed
        averages: list[tuple[int, float, str, str | None, str | None]] = []
        steps: list[tuple[int, float, str, int]] = []
        for match in _LINE.finditer(chunk):
            line = match[0][:_ROOM].decode("utf-8", "replace")
            self._read_time(line)
            if setting := _SETTING.search(line):
                self.settings[f"CUDA graph {setting[1].lower()}"] = safe_text(setting[2], 400)
            elif self._at_s is None:
                self.untimed += 1
            elif found := _STEPS.search(line):
                steps.append((self._at_s, float(found[4]), *_step(int(found[1]), int(found[2]), found[3])))
            else:
                averages += [(self._at_s, *reading) for reading in _readings(line)]
        rows.add(
            _ns([row[0] for row in averages]), np.array([row[1] for row in averages]),
            name=[row[2] for row in averages], unit=[row[3] for row in averages], stream=[row[4] for row in averages],
        )  # fmt: skip
        rows.add(
            _ns([row[0] for row in steps]), np.array([row[1] for row in steps]), name=_STEP_NAME,
            shape=[row[2] for row in steps], mapping=np.array([row[3] for row in steps], np.int8),
        )  # fmt: skip
        self.steps += len(steps)
        return self.untimed - untimed

    def _read_time(self, line: str) -> None:
        found = _TIME.search(line)
        if not found:
            return
        self.has_year |= found[1] is not None
        parts = [int(part) for part in found.groups()[1:]]
        at_s = _seconds(int(found[1] or self._year), parts)
        if at_s is None:
            return
        if not found[1] and self._at_s is not None and at_s < self._at_s - _HALF_YEAR_S:
            self._year += 1
            at_s = _seconds(self._year, parts) or at_s
        self._at_s = at_s


def _seconds(year: int, parts: list[int]) -> int | None:
    month, day, hour, minute, second = parts
    if not (1970 <= year < 2090 and 1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 61):
        return None
    return calendar.timegm((year, month, day, hour, minute, second))


def _readings(line: str) -> list[tuple[float, str, str | None, str | None]]:
    """(value, counter, unit, engine) of the numbers in a line of averages."""
    engine = _ENGINE.search(line)
    stream = f"engine {int(engine[1])}" if engine else None
    averages = "".join(line.partition("Avg prompt")[1:])
    return [
        (float(value), _KNOWN[name], unit if unit != "reqs" else None, stream)
        for name, value, unit in _VALUE.findall(averages)
        if name in _KNOWN
    ]


def _step(asked: int, ran: int, mode: str) -> tuple[str, int]:
    """Shape key and mapping of the steps in a row of the table."""
    shape = f"tokens={asked}" if ran == asked else f"tokens={asked} padded={ran}"
    mapping = FALLBACK if mode.upper() == "NONE" else ADAPTED if ran > asked else PLANNED
    return shape, MAPPINGS.index(mapping)


def _ns(seconds: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(seconds, np.int64) * 1_000_000_000
