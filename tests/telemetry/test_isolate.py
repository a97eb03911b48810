"""Parsing in a child: the same result, and a child that dies, hangs or is refused is one clear line."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from telemetry_samples import HEADER, numbered, requests, stream_of

from fusetui.telemetry import isolate
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.isolate import isolated_trace
from fusetui.telemetry.open import open_trace

BATCHES = [numbered(i * 10, 10) for i in range(4)]


def child(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Let the child run `code` instead."""
    original = isolate.subprocess.Popen

    def popen(_command: list[str], **options: object) -> object:
        return original([sys.executable, "-c", code], **options)  # type: ignore[call-overload]

    monkeypatch.setattr(isolate.subprocess, "Popen", popen)


def test_the_same_batches_and_notes_as_in_process(tmp_path: Path) -> None:
    path = tmp_path / "cap.arrows"
    path.write_bytes(stream_of(BATCHES)[:-8])
    trace = open_trace(path, isolate=True)
    assert trace.header == HEADER
    deadline = time.monotonic() + 20
    while not trace.complete and time.monotonic() < deadline:
        time.sleep(0.01)
    assert requests(trace.read(i) for i in range(4)) == list(range(40))
    assert list(trace.notes) == ["cap.arrows: ends without end-of-stream marker, 0 bytes cut"]
    trace.close()


def test_a_child_killed_by_a_signal_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child(monkeypatch, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    with pytest.raises(TelemetryError) as caught:
        isolated_trace(tmp_path / "cap.arrows")
    assert str(caught.value) == "cap.arrows: the isolated reader was killed by SIGSEGV; the file is damaged"


def test_a_child_that_dies_half_way_leaves_what_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    data.write_bytes(stream_of(BATCHES)[:-8])
    code = f"import os; os.write(1, open({str(data)!r}, 'rb').read()); os.kill(os.getpid(), {int(signal.SIGABRT)})"
    child(monkeypatch, code)
    trace = isolated_trace(tmp_path / "cap.arrows")
    assert trace.wait_complete(20)
    assert requests(trace.read(i) for i in range(4)) == list(range(40))
    assert list(trace.notes) == [
        "only in part: cap.arrows: the isolated reader was killed by SIGABRT; the file is damaged"
    ]


def test_a_silent_child_does_not_hang_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child(monkeypatch, "import time; time.sleep(600)")
    began = time.monotonic()
    with pytest.raises(TelemetryError, match=r"the isolated reader was silent for 0\.2 s"):
        isolated_trace(tmp_path / "cap.arrows", silence_s=0.2)
    assert time.monotonic() - began < 10


def test_a_child_that_lies_is_gated_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child(monkeypatch, "import os; os.write(1, b'FEA1' + bytes(100)); os.write(2, b'{\"error\": 3}\\nnot json\\n')")
    with pytest.raises(TelemetryError, match="Feather version 1"):
        isolated_trace(tmp_path / "cap.arrows")


def test_closing_ends_the_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    pid = tmp_path / "pid"
    data.write_bytes(stream_of(BATCHES)[:-8])
    code = (
        f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid()));"
        f"os.write(1, open({str(data)!r}, 'rb').read()); time.sleep(600)"
    )
    child(monkeypatch, code)
    trace = isolated_trace(tmp_path / "cap.arrows")
    assert trace.wait(20)
    trace.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
