"""Recorders for the tests: `fusetui stream -` as processes of their own, fed with numbered rows."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence

from arrow_producers import batch

from fusetui.telemetry.header import Header
from fusetui.telemetry.writer import StreamWriter


class Recorder:
    """One process; `rows` were given to it, counted from 0."""

    def __init__(self, host: str, to: str, *more: str, token: str | None = None) -> None:
        command = [sys.executable, "-m", "fusetui.cli", "stream", "-", "--host", host, "--to", to, *more]
        if token is not None:
            command += ["--token", token]
        self.host = host
        self.rows = 0
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": "1"}
        )
        assert self.process.stdin is not None
        self._pipe = self.process.stdin
        self._writer = StreamWriter(self._pipe, Header(source="numbered"))

    def give(self, rows: int) -> None:
        """The next rows."""
        self._writer.write(batch(rows, first=self.rows))
        self._pipe.flush()
        self.rows += rows

    def kill(self) -> None:
        """SIGKILL, as a machine that loses power."""
        self.process.kill()
        self.process.wait(10)
        assert self.process.stderr is not None
        self.process.stderr.close()
        with contextlib.suppress(BrokenPipeError):
            self._pipe.close()

    def finish(self) -> str:
        """Its source ends; what it says at the end."""
        self._writer.close()
        self._pipe.close()
        assert self.process.stderr is not None
        with self.process.stderr:
            said = self.process.stderr.read().decode()
        assert self.process.wait(20) == 0, said
        return said


def stop(recorders: Sequence[Recorder]) -> None:
    """Those that still run."""
    for recorder in recorders:
        if recorder.process.poll() is None:
            recorder.kill()
