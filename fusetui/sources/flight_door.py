"""The way in or out by Arrow Flight, as its parent sees it: a child process and a Unix socket in a private folder."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

from fusetui.sources.flight_address import FlightAddress, check_listen
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.text import safe_text

Mode = Literal["listen", "offer", "ask", "push"]

_READY_S: Final = 20.0
_AGAIN_S: Final = 1.0
_MAX_LINE: Final = 4096


class Folder:
    """A folder for a socket that only this user can reach; gone after `remove`."""

    def __init__(self) -> None:
        self._path = Path(tempfile.mkdtemp(prefix="fusetui-"))
        self.socket = str(self._path / "s")

    def remove(self) -> None:
        """With what is in it."""
        shutil.rmtree(self._path, ignore_errors=True)


class Door:
    """Starts the child, and again when it dies.

    address  the real one (port 0 is replaced)
    trouble  what is wrong now, one line; "" while all is well
    refused  calls without the right token
    ended    the stream asked for is over
    """

    def __init__(self, mode: Mode, address: FlightAddress, socket: str, *, token: str | None = None) -> None:
        """socket  where the batches go to (listen, ask) or come from (offer, push)

        Raises TelemetryError when the child cannot start or listen.
        """
        self.address = address
        self.trouble = ""
        self.refused = 0
        self.ended = False
        self._mode = mode
        self._socket = socket
        self._token = token
        self._closed = threading.Event()
        self._ready = threading.Event()
        self._process = self._start()
        self._thread = threading.Thread(target=self._watch, name=f"flight {mode}", daemon=True)
        self._thread.start()
        if not self._ready.wait(_READY_S) or self._process.poll() is not None:
            self.close()
            raise TelemetryError(str(address), self.trouble or "Arrow Flight did not start")

    def close(self) -> None:
        """End the child, whatever its peers do."""
        self._closed.set()
        self._process.kill()
        self._process.wait()
        if self._thread is not threading.current_thread():
            self._thread.join(2.0)

    def _start(self) -> subprocess.Popen[bytes]:
        config = {
            "mode": self._mode,
            "location": self.address.location,
            "name": self.address.name,
            "socket": self._socket,
            "token": self._token,
        }
        child = subprocess.Popen(
            [sys.executable, "-m", "fusetui.sources.flight_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert child.stdin is not None
        child.stdin.write(json.dumps(config).encode() + b"\n")
        child.stdin.flush()
        return child

    def _watch(self) -> None:
        while True:
            self._follow()
            code = self._process.wait()
            if self._closed.is_set() or not self._ready.is_set():
                self._ready.set()
                return
            died = f"by {signal.Signals(-code).name}" if -code in set(signal.Signals) else f"with status {code}"
            self.trouble = f"the Flight process ended {died}; it starts again"
            if self._closed.wait(_AGAIN_S):
                return
            self._process = self._start()
            if self._closed.is_set():
                self._process.kill()

    def _follow(self) -> None:
        """What the child reports, until it is gone."""
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            while line := lines.readline(_MAX_LINE):
                try:
                    said = json.loads(line)
                except ValueError:
                    continue
                if "port" in said:
                    if self.address.scheme == "listen":
                        self.address = replace(self.address, port=int(said["port"]))
                    self.trouble = ""
                    self._ready.set()
                self.trouble = safe_text(str(said.get("trouble", self.trouble)), 400)
                self.refused += int(said.get("refused", 0))
                self.ended = bool(said.get("ended", self.ended))


def open_door(
    mode: Mode, address: FlightAddress, socket: str, *, token: str | None, allow_remote: bool = False
) -> Door:
    """A door that listens only as wide as allowed. Raises TelemetryError."""
    if mode in ("listen", "offer"):
        check_listen(address, token, allow_remote)
    return Door(mode, address, socket, token=token)
