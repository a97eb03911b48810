"""AWS Neuron devices through the JSON reports of `neuron-monitor`, one a line: run here, or from a pipe or file.

It decides itself how often it reports (its configuration; five seconds unless changed). Reports carry no time of their
own here: rows get the time they came, so a file of old reports is all of one moment.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final

from fusetui.sources.device_rows import Sample
from fusetui.sources.device_source import DeviceSource
from fusetui.sources.device_tool import MAX_BYTES, Tool
from fusetui.sources.neuron_report import parse_report
from fusetui.sources.spec import OpenOptions
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header

NAMES: Final = ("neuron",)
SYNTAX: Final = "neuron, neuron:-, neuron:PATH: reports of neuron-monitor, run here, from stdin, or from a pipe"

_BUSY: Final = "core busy: share of time a core ran a model, not how well; idle cores are left out of reports"
_PATIENCE_S: Final = 15.0
_CAUTIONS: Final = (
    _BUSY,
    "latency: p50 and p99 of each report's period as the runtime tells them; it has no p95",
    "host queueing: not told; total and device latency are separate quantiles whose difference is none",
    "ecc events and effective flops: left out, their meaning differs by version",
)


class NeuronProbe:
    """Reads reports. where: "" runs neuron-monitor, "-" reads stdin, else a pipe or file."""

    name = "neuron"
    streams = True
    cautions = _CAUTIONS

    def __init__(self, where: str = "", stdin: BinaryIO | None = None) -> None:
        self._where = where
        self._stdin = stdin
        self._tool = Tool(("neuron-monitor",))
        self._file: BinaryIO | None = None
        self._stopped = threading.Event()

    def open(self) -> Header:
        if not self._where:
            self._tool.find()
        elif self._where != "-" and (not Path(self._where).exists() or Path(self._where).is_dir()):
            raise TelemetryError(f"neuron:{self._where}", "no such pipe or file", "neuron-monitor > it, or neuron:-")
        return Header(source="neuron-monitor", build={"core busy means": _BUSY})

    def read(self) -> Sample | None:
        line = self._line()
        if not line:
            return None
        try:
            report = json.loads(line)
        except (ValueError, RecursionError) as error:
            return Sample(problem=f"neuron-monitor: a line is no JSON ({error})")
        if not isinstance(report, dict):
            return Sample(problem="neuron-monitor: a line is no report")
        return parse_report(report)

    def missing(self) -> Sequence[str]:
        return ()

    def stop(self) -> None:
        self._stopped.set()
        self._tool.stop()

    def close(self) -> None:
        self._tool.close()
        if self._file is not None and self._where != "-":
            self._file.close()

    def _line(self) -> bytes:
        """The next report that is not blank; b"" at the end."""
        while not self._stopped.is_set():
            line = self._tool.line() if not self._where else self._open().readline(MAX_BYTES + 1)
            if len(line) > MAX_BYTES:
                raise TelemetryError("neuron-monitor", f"a line is over {MAX_BYTES >> 20} MiB")
            if not line or line.strip():
                return line
        return b""

    def _open(self) -> BinaryIO:
        if self._file is None:
            try:
                if self._where == "-":
                    self._file = self._stdin or open(0, "rb", closefd=False)  # noqa: SIM115
                else:
                    self._file = open(self._where, "rb")  # noqa: SIM115
            except OSError as error:
                raise TelemetryError(f"neuron:{self._where}", error.strerror or str(error)) from None
        return self._file


def open_spec(spec: str, options: OpenOptions) -> DeviceSource:
    """`neuron`, `neuron:-`, `neuron:PATH`."""
    return DeviceSource(NeuronProbe(spec.partition(":")[2], options.stdin), patience_s=_PATIENCE_S)
