"""A terminal for programs under measurement: a pty of a given size whose output is read and counted."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from dataclasses import dataclass, field
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Terminal:
    """One program in a pty. `output` keeps the last bytes only, `received` counts all of them."""

    argv: list[str]
    columns: int = 120
    rows: int = 40
    env: dict[str, str] = field(default_factory=dict)
    received: int = 0
    output: bytearray = field(default_factory=bytearray)

    def __post_init__(self) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": "xterm-256color", "COLORTERM": "truecolor", **self.env})
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", self.rows, self.columns, 0, 0))
            os.execvp(self.argv[0], self.argv)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", self.rows, self.columns, 0, 0))

    def read_for(self, seconds: float, until: bytes | None = None) -> bool:
        """Read for `seconds`, or until `until` was seen; True when it was."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            ready, _, _ = select.select([self.fd], [], [], min(left, 0.1))
            if ready:
                try:
                    data = os.read(self.fd, 1 << 16)
                except OSError:
                    return False
                self.received += len(data)
                self.output += data
                del self.output[: -(1 << 20)]
            if until is not None and until in self.output:
                return True
        return False

    def send(self, keys: bytes) -> None:
        """Type."""
        os.write(self.fd, keys)

    def cpu_s(self) -> float:
        """User and system seconds of the program and its waited-for children so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return sum(map(int, fields[11:15])) / _TICKS

    def rss_mib(self) -> float:
        """Resident memory now."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    def close(self) -> int:
        """End the program; its wait status."""
        for ask in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.kill(self.pid, ask)
            except ProcessLookupError:
                break
            for _ in range(30):
                self.read_for(0.1)
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    os.close(self.fd)
                    return status
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return status
