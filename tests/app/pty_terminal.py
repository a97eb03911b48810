"""A program in a pty: what it writes, what it leaves the terminal like, how it ends."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
APP = [sys.executable, str(HERE / "shell_app.py")]


class PtyTerminal:
    """Runs `argv`; `output` is all it wrote."""

    def __init__(self, argv: list[str], state_home: Path, *, size: tuple[int, int] = (100, 30), **env: str) -> None:
        self.output = b""
        self.gone = False
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.modes_before = termios.tcgetattr(slave)
        keep = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "LINES")}
        environment = {
            **keep,
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "XDG_STATE_HOME": str(state_home),
            "XDG_CONFIG_HOME": str(state_home),
            "PYTHONPATH": str(HERE),
            **env,
        }
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for descriptor in (0, 1, 2):
                os.dup2(slave, descriptor)
            os.closerange(3, 256)
            os.execvpe(argv[0], argv, environment)
        self.fd, self.slave = master, slave

    def read_until(self, text: bytes, timeout_s: float = 20.0) -> bool:
        """Read until `text` has come; whether it has."""
        end = time.monotonic() + timeout_s
        while text not in self.output and time.monotonic() < end:
            self._read(0.1)
        return text in self.output

    def read_for(self, seconds: float) -> None:
        """Read that long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._read(left)

    def _read(self, timeout_s: float) -> None:
        if self.gone:
            time.sleep(timeout_s)
        elif select.select([self.fd], [], [], timeout_s)[0]:
            self.output += os.read(self.fd, 1 << 16)

    def send(self, keys: bytes) -> None:
        """Type."""
        os.write(self.fd, keys)

    def kill(self, number: signal.Signals) -> None:
        """Signal the program."""
        os.kill(self.pid, number)

    def wait(self, timeout_s: float = 15.0) -> int:
        """Read until the program ends; its exit status."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            self._read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._read(0.05)
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError("the program did not end")

    def hang_up(self) -> None:
        """The terminal disappears, as when a connection drops."""
        self.close()
        self.gone = True

    def modes(self) -> list[Any]:
        """The terminal's modes now."""
        return termios.tcgetattr(self.slave)

    def close(self) -> None:
        """Give the pty back."""
        os.close(self.fd)
        os.close(self.slave)
