"""Manners in a real terminal: bytes on the pty, signals, stalls, crashes, pipes."""

from __future__ import annotations

import base64
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pty_terminal import APP, HERE, PtyTerminal

FIRST_FRAME = b"Tail latency"
LEAVES_ALTERNATE_SCREEN = b"\x1b[?1049l"


@pytest.fixture
def opened() -> Iterator[list[PtyTerminal]]:
    """Terminals to be closed at the end."""
    terminals: list[PtyTerminal] = []
    yield terminals
    for terminal in terminals:
        terminal.close()


def start(opened: list[PtyTerminal], tmp_path: Path, *state: str, **options: Any) -> PtyTerminal:
    terminal = PtyTerminal([*APP, *state], tmp_path, **options)
    opened.append(terminal)
    assert terminal.read_until(FIRST_FRAME), terminal.output[-2000:]
    return terminal


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_it_with_the_terminal_as_it_was(
    opened: list[PtyTerminal], tmp_path: Path, number: signal.Signals, status: int
) -> None:
    terminal = start(opened, tmp_path, NO_COLOR="")
    assert terminal.modes() != terminal.modes_before
    terminal.kill(number)
    assert terminal.wait() == status
    assert terminal.modes() == terminal.modes_before
    tail = terminal.output[-400:]
    assert LEAVES_ALTERNATE_SCREEN in tail
    assert b"\x1b[?1000l" in tail
    assert b"\x1b[?25h" in tail
    # NO_COLOR: not one colour, and so never black on black.
    assert not re.search(rb"\x1b\[[0-9;]*\b(?:38|48);", terminal.output)
    colours = {int(code) for sgr in re.findall(rb"\x1b\[([0-9;]+)m", terminal.output) for code in sgr.split(b";")}
    assert not {code for code in colours if 30 <= code <= 37 or 40 <= code <= 47 or 90 <= code <= 107}


def test_it_ends_when_its_terminal_goes_away(opened: list[PtyTerminal], tmp_path: Path) -> None:
    terminal = start(opened, tmp_path)
    terminal.hang_up()
    assert terminal.wait() == 129
    opened.clear()


def test_what_data_says_is_never_obeyed_by_the_terminal(opened: list[PtyTerminal], tmp_path: Path) -> None:
    terminal = start(opened, tmp_path, "hostile", size=(160, 45))
    assert terminal.read_until(b"MK")
    for keys in (b"2", b"3", b"4", b"1", b"\r", b"\r", b"\x1b", b"\x1b", b"?", b"\x1b", b"b", b"MK\r", b"\t", b"y"):
        terminal.send(keys)
        terminal.read_for(0.35)
    terminal.send(b"q")
    assert terminal.wait() == 0
    output = terminal.output
    assert output.count(b"MK") > 20
    copied = re.findall(rb"\x1b\]52;c;([A-Za-z0-9+/=]+)\x07", output)
    assert len(copied) == 1
    assert b"\x1b" not in base64.b64decode(copied[0])
    assert b"MK" in base64.b64decode(copied[0])
    # The two that the toolkit itself sends: the clipboard and the pointer's shape.
    output = re.sub(rb"\x1b\](?:52;c;[A-Za-z0-9+/=]+|22;default)(?:\x07|\x1b\\)", b"", output)
    for poison in (
        b"\x1b]0;MK",
        b"\x1b]",
        b"\x1b[5;5HMK",
        b"\x1bP",
        b"\xc2\x9b",
        b"\xc2\x9d",
        b"\xe2\x80\xae",
        b"\x00",
        b"\x07",
    ):
        assert poison not in output, poison


def test_a_terminal_that_stops_reading_does_not_stop_the_application(opened: list[PtyTerminal], tmp_path: Path) -> None:
    report = tmp_path / "loop.json"
    terminal = start(opened, tmp_path, "moving", FAKE_HZ="10", FAKE_REPORT=str(report))
    terminal.read_for(1.0)
    time.sleep(5)
    assert terminal.read_until(b"slow terminal", 5.0)
    terminal.send(b"q")
    assert terminal.wait() == 0
    measured = json.loads(report.read_text())
    assert measured["skipped"] > 5
    assert measured["slowest_s"] < 1.0, measured


def test_a_crash_is_one_line_and_a_log_without_values(opened: list[PtyTerminal], tmp_path: Path) -> None:
    terminal = start(opened, tmp_path, "crash")
    assert terminal.wait() == 1
    after = terminal.output.rpartition(LEAVES_ALTERNATE_SCREEN)[2].decode()
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", after).replace("\r\n", "")
    assert "fusetui crashed: RuntimeError: wheel came off; details in" in text
    assert "Traceback" not in text
    log = tmp_path / "fusetui" / "crash.log"
    assert log.stat().st_mode & 0o777 == 0o600
    assert "fake_feed.py" in log.read_text()
    for place in (text, log.read_text()):
        assert "TOKEN-1234" not in place
    assert terminal.modes() == terminal.modes_before


def test_a_terminal_without_a_size_or_unicode_still_works(opened: list[PtyTerminal], tmp_path: Path) -> None:
    terminal = start(opened, tmp_path, size=(0, 0), PYTHONIOENCODING="ascii")
    terminal.send(b"q")
    assert terminal.wait() == 0
    assert terminal.output.isascii()
    assert b"\\u" not in terminal.output


def test_data_on_stdin_leaves_the_keyboard_to_the_terminal(opened: list[PtyTerminal], tmp_path: Path) -> None:
    got = tmp_path / "got"
    shell = f"printf 'DATA%s' 123 | {sys.executable} {HERE / 'shell_app.py'} stdin {got}"
    terminal = PtyTerminal(["sh", "-c", shell], tmp_path)
    opened.append(terminal)
    assert terminal.read_until(FIRST_FRAME)
    terminal.send(b"3")
    assert terminal.read_until(b"Queue depth")
    terminal.send(b"q")
    assert terminal.wait() == 0
    assert got.read_bytes() == b"DATA123"


def test_without_a_terminal_it_says_what_to_do(tmp_path: Path) -> None:
    done = subprocess.run(APP, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "fusetui: no terminal for input; without one, try: fusetui snapshot\n"
