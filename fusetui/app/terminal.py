"""Manners of a terminal program: what it needs, what it takes from the shell, and how it leaves."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import termios
import threading
import traceback
from typing import Any, BinaryIO, Final

from textual.app import App
from textual.drivers.linux_driver import LinuxDriver

from fusetui.app.state_file import state_folder
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.text import safe_text

FORCED_EXIT_S: Final = 3.0


class MeteredDriver(LinuxDriver):
    """The terminal driver, counting what it sends."""

    bytes_written = 0

    def write(self, data: str) -> None:
        self.bytes_written += len(data) if data.isascii() else len(data.encode(errors="replace"))
        super().write(data)


def refusal() -> str | None:
    """Why no screen can be drawn here, in one line; None when it can."""
    for stream, name in ((sys.__stdin__, "input"), (sys.__stderr__, "output")):
        if stream is None or stream.closed or not stream.isatty():
            return f"fusetui: no terminal for {name}; without one, try: fusetui snapshot"
    if os.environ.get("TERM") == "dumb":
        return "fusetui: this terminal (TERM=dumb) cannot draw a screen; try: fusetui snapshot"
    return None


def stdin_is_data() -> BinaryIO:
    """The data on stdin, unbuffered, with the keyboard put on file descriptor 0 in its place.

    Raises TelemetryError when there is no keyboard to put there.
    """
    try:
        keyboard = os.open("/dev/tty", os.O_RDWR)
    except OSError as error:
        raise TelemetryError(
            "stdin", f"no terminal to take keys from ({error.strerror})", "try: fusetui snapshot -"
        ) from None
    data = os.fdopen(os.dup(0), "rb", buffering=0)
    os.dup2(keyboard, 0)
    os.close(keyboard)
    sys.stdin = open(0, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
    # Textual reads the keyboard through sys.__stdin__.
    sys.__stdin__ = sys.stdin  # type: ignore[misc]
    return data


def backlog(app: App[Any]) -> int:
    """Writes that the terminal has not taken yet; 0 where that cannot be known.

    Private parts of Textual: its writer blocks the event loop once 30 writes are queued, so somebody has to look.
    """
    thread = getattr(getattr(app, "_driver", None), "_writer_thread", None)
    queue = getattr(thread, "_queue", None)
    return 0 if queue is None else int(queue.qsize())


def bytes_written(app: App[Any]) -> int:
    """Bytes sent to the terminal so far."""
    return int(getattr(getattr(app, "_driver", None), "bytes_written", 0))


def draws_unicode() -> bool:
    """Whether the terminal's encoding has more than ASCII; where it has not, stray characters become `?`."""
    stream = sys.__stderr__
    encoding = (getattr(stream, "encoding", None) or "ascii").lower().replace("-", "").replace("_", "")
    if encoding in ("utf8", "utf16", "utf32"):
        return True
    if stream is not None and hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")
    return False


def settle_memory() -> None:
    """Take what start-up made out of the garbage collector's way: its full passes stall a frame by 30 to 90 ms."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(2000, 10, 10)


def leave_even_if_stuck(return_code: int) -> None:
    """End the process in a few seconds, should the terminal not take the last bytes; its modes are put back."""
    saved = _modes()

    def force() -> None:
        # A terminal that has gone away has no modes to put back, and the process must end all the same.
        with contextlib.suppress(termios.error):
            if saved is not None:
                termios.tcsetattr(0, termios.TCSANOW, saved)
        os._exit(return_code)

    timer = threading.Timer(FORCED_EXIT_S, force)
    timer.daemon = True
    timer.start()


_start_modes: list[list[Any]] = []


def remember_modes() -> None:
    """Keep the terminal's modes as the shell had set them."""
    modes = _modes()
    if modes is not None:
        _start_modes[:] = [modes]


def _modes() -> list[Any] | None:
    if _start_modes:
        return _start_modes[0]
    try:
        return termios.tcgetattr(0)
    except termios.error:
        return None


def record_crash() -> str:
    """Append the exception now handled to the crash log, without any values; the line to tell the person."""
    error = sys.exc_info()[1]
    line = f"fusetui crashed: {type(error).__name__}: {safe_text(str(error), 200)}"
    path = state_folder() / "crash.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8", errors="replace") as file:
            file.write(f"{line}\n{''.join(traceback.format_tb(error.__traceback__)) if error else ''}\n")
    except OSError as problem:
        return f"{line} (no crash log: {problem.strerror})"
    return f"{line}; details in {path}"
