"""A vendor's command as a probe asks it: output bounded, killed when late, and never a shell."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from typing import IO, Final

from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.text import safe_text

MAX_BYTES: Final = 8 << 20
TIMEOUT_S: Final = 10.0


class Tool:
    """One command: run to its end by `ask`, or kept running and read line by line.

    words  the command; the first is looked up on PATH
    Errors: TelemetryError from `find` when it is not installed.
    """

    def __init__(self, words: Sequence[str], *, timeout_s: float = TIMEOUT_S) -> None:
        self.words = tuple(words)
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._complaints: IO[bytes] | None = None
        self._stopped = False

    def find(self) -> str:
        """Where it is. Raises TelemetryError."""
        path = shutil.which(self.words[0])
        if path is None:
            raise TelemetryError(self.words[0], "no such command on PATH", "install the vendor's tools, or extend PATH")
        return path

    def ask(self) -> tuple[bytes, str]:
        """Run once: what it printed, and why that is not to be trusted ("" when it is)."""
        process = self._start()
        if process is None or process.stdout is None:
            return b"", "stopped"
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            self._kill(process)

        late = threading.Timer(self._timeout_s, expire)
        late.daemon = True
        late.start()
        try:
            printed = process.stdout.read(MAX_BYTES + 1)
            if len(printed) > MAX_BYTES:
                self._kill(process)
            code = process.wait()
        finally:
            late.cancel()
            process.stdout.close()
        if len(printed) > MAX_BYTES:
            return b"", f"{self.words[0]} printed over {MAX_BYTES >> 20} MiB"
        if expired.is_set():
            return b"", f"{self.words[0]} gave no answer within {self._timeout_s:g} s"
        return printed, f"{self.words[0]} ended with code {code}{self._complaint()}" if code else ""

    def line(self) -> bytes:
        """The next line it prints, started on the first call; b"" when it ended. Raises TelemetryError."""
        process = self._process or self._start()
        if process is None or process.stdout is None:
            return b""
        line = process.stdout.readline(MAX_BYTES + 1)
        if len(line) > MAX_BYTES:
            raise TelemetryError(self.words[0], f"printed a line over {MAX_BYTES >> 20} MiB")
        if not line and not self._stopped:
            code = process.wait()
            raise TelemetryError(self.words[0], f"ended with code {code}{self._complaint()}")
        return line

    def stop(self) -> None:
        """Kill it if it runs, and start it no more; from any thread."""
        with self._lock:
            self._stopped = True
            process = self._process
        if process is not None:
            self._kill(process)

    def close(self) -> None:
        """Stop it and let go of its output."""
        self.stop()
        if self._process is not None and self._process.stdout is not None:
            self._process.wait()
            self._process.stdout.close()
        if self._complaints is not None:
            self._complaints.close()

    def _start(self) -> subprocess.Popen[bytes] | None:
        path = self.find()
        if self._complaints is not None:
            self._complaints.close()
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115
        with self._lock:
            if self._stopped:
                return None
            try:
                self._process = subprocess.Popen(
                    [path, *self.words[1:]],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=self._complaints,
                    start_new_session=True,
                )
            except OSError as error:
                raise TelemetryError(self.words[0], f"cannot be run ({error.strerror})") from None
        return self._process

    def _complaint(self) -> str:
        if self._complaints is None:
            return ""
        size = self._complaints.seek(0, os.SEEK_END)
        self._complaints.seek(max(0, size - 400))
        lines = self._complaints.read(400).decode(errors="replace").split("\n")
        said = next((line for line in reversed(lines) if line.strip()), "")
        return f": {safe_text(said.strip(), 200)}" if said else ""

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        # Its own session: helpers it started hold the pipe open too.
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
