"""Parse a capture that is not trusted in a child process with little memory and no way to hang its parent.

The child sends the canonical batches back over a pipe, as an Arrow stream that passes the gate again here.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa

from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.reader import StreamReader
from fusetui.telemetry.spool import DEFAULT_MEMORY_BYTES, SpooledTrace
from fusetui.telemetry.text import safe_text

CHILD_MEMORY_BYTES: Final = 4 << 30
SILENCE_S: Final = 30.0
"""Longest time the child may go without sending anything."""

_MAX_REPORT_BYTES: Final = 64 << 10
_EXIT_REFUSED: Final = 3


def isolated_trace(
    path: Path, *, memory_bytes: int = DEFAULT_MEMORY_BYTES, silence_s: float = SILENCE_S
) -> SpooledTrace:
    """The capture at `path`, parsed by a child process. Raises TelemetryError when the child finds no capture in it."""
    command = [sys.executable, "-m", "fusetui.telemetry.isolate", str(path.absolute())]
    child = _Child(command, path.name, silence_s)
    try:
        header = child.reader.header
    except TelemetryError as error:
        raise child.finish() or error from None
    return SpooledTrace(
        child.batches,
        header,
        memory_bytes=memory_bytes,
        notes=lambda: child.notes,
        where=path.name,
        cancel=child.kill,
    )


class _Child:
    """The child process and the stream it sends."""

    def __init__(self, command: list[str], where: str, silence_s: float) -> None:
        self.notes: list[str] = []
        self._where = where
        self._silence_s = silence_s
        self._silent = False
        self._killed = False
        self._report = tempfile.TemporaryFile(prefix="fusetui-")  # noqa: SIM115  closed in finish()
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._report, bufsize=0
        )
        assert self._process.stdout is not None
        self._pipe = self._process.stdout
        self.reader = StreamReader(self, where)

    def read(self, size: int, /) -> bytes:
        """For the StreamReader: what comes within the time allowed."""
        ready, _, _ = select.select([self._pipe], [], [], self._silence_s)
        if not ready:
            self._silent = True
            self.kill()
            raise TelemetryError(self._where, f"the isolated reader was silent for {self._silence_s:g} s")
        return os.read(self._pipe.fileno(), size)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """What the child sends; afterwards `notes` has its remarks. Raises TelemetryError when it failed."""
        problem: TelemetryError | None = None
        try:
            yield from self.reader
        except TelemetryError as error:
            problem = error
        finally:
            failure = self.finish()
        if failure or problem:
            raise failure or problem  # type: ignore[misc]
        if not self.reader.ended:
            raise TelemetryError(self._where, "the isolated reader stopped early")

    def kill(self) -> None:
        """End it; safe to repeat and from any thread."""
        if self._process.poll() is None:
            self._killed = True
            self._process.kill()

    def finish(self) -> TelemetryError | None:
        """Collect the child and its report. What went wrong, None when nothing did."""
        self._pipe.close()
        try:
            self._process.wait(timeout=2.0)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()
        failure = self._read_report()
        self._report.close()
        code = self._process.returncode
        if self._silent:
            return TelemetryError(self._where, f"the isolated reader was silent for {self._silence_s:g} s")
        if code < 0 and not self._killed:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            return TelemetryError(self._where, f"the isolated reader was killed by {name}", "the file is damaged")
        if code > 0 and failure is None:
            return TelemetryError(self._where, f"the isolated reader failed with status {code}")
        return failure

    def _read_report(self) -> TelemetryError | None:
        self._report.seek(0)
        failure = None
        for line in self._report.read(_MAX_REPORT_BYTES).splitlines():
            try:
                entry = json.loads(line)
                if "error" in entry:
                    where, what, remedy = (str(text) for text in entry["error"])
                    failure = TelemetryError(where, what, remedy)
                else:
                    self.notes.append(safe_text(str(entry["note"]), 400))
            except (ValueError, TypeError, KeyError, RecursionError):
                # Not a report but a crash trace: the exit status tells.
                continue
        return failure


def _limit_self() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = CHILD_MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(hard, CHILD_MEMORY_BYTES)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _report(kind: str, value: object) -> None:
    sys.stderr.write(json.dumps({kind: value}) + "\n")


def main(path: str) -> int:
    """The child: the capture at `path` as an Arrow stream on stdout, remarks as JSON lines on stderr."""
    from fusetui.telemetry.open import open_trace
    from fusetui.telemetry.writer import StreamWriter

    _limit_self()
    try:
        trace = open_trace(Path(path))
        with StreamWriter(_Whole(sys.stdout.fileno()), trace.header) as writer:
            for number in range(len(trace.index().rows)):
                try:
                    writer.write(trace.read(number))
                except TelemetryError:
                    # Its line is among the notes.
                    continue
        for note in trace.notes:
            _report("note", note)
    except TelemetryError as error:
        _report("error", [error.where, error.what, error.remedy])
        return _EXIT_REFUSED
    except BrokenPipeError:
        return 0
    return 0


class _Whole:
    """Writes all of each message to a pipe."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def write(self, data: bytes, /) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
