"""Recordings: rotated, indexed, safe against kill -9 and a full disk, and never touched by their readers."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from telemetry_samples import HEADER, numbered, requests

from fusetui.telemetry.arrowtrace import ArrowTrace
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.open import open_trace
from fusetui.telemetry.recording import Recorder
from fusetui.telemetry.schema import build_batch
from fusetui.telemetry.sidecar import sidecar_path
from fusetui.telemetry.source import Trace

KILLS = 50 if os.environ.get("FUSETUI_LONG") else 5


def record(path: Path, batches: int, rows: int = 100, **options: Any) -> None:
    with Recorder(path, HEADER, coalesce_rows=1, **options) as recorder:
        for number in range(batches):
            recorder.write(numbered(number * rows, rows))
    assert recorder.failed == ""
    assert recorder.rows == batches * rows


def all_requests(trace: Trace) -> list[int]:
    return requests(trace.read(i) for i in range(len(trace.index().rows)))


def test_a_recording_comes_back_whole_with_its_header(tmp_path: Path) -> None:
    record(tmp_path / "cap.arrows", 5)
    trace = open_trace(tmp_path / "cap.arrows")
    assert trace.header == HEADER
    assert all_requests(trace) == list(range(500))
    index = trace.index()
    assert index.rows.tolist() == [100] * 5
    assert index.first_ns.tolist() == [i * 100_000 + 500 for i in range(5)]
    assert index.last_ns.tolist() == [i * 100_000 + 99_500 for i in range(5)]
    assert list(trace.notes) == []
    assert trace.complete


def test_rotation_by_size_and_joined_reading(tmp_path: Path) -> None:
    record(tmp_path / "cap.arrows", 12, rows=500, max_bytes=30_000)
    names = sorted(p.name for p in tmp_path.glob("*.arrows"))
    assert len(names) >= 3
    assert names[:2] == ["cap.1.arrows", "cap.2.arrows"]
    trace = open_trace(tmp_path / "cap.arrows")
    assert all_requests(trace) == list(range(6000))
    assert requests([trace.read(11), trace.read(0), trace.read(11)])[::500] == [5500, 0, 5500]
    assert trace.complete
    trace.close()
    alone = open_trace(tmp_path / names[1])
    assert requests([alone.read(0)])[0] > 0


def test_rotation_by_time(tmp_path: Path) -> None:
    record(tmp_path / "cap.arrows", 3, max_seconds=0.0)
    assert (tmp_path / "cap.3.arrows").exists()
    assert all_requests(open_trace(tmp_path / "cap.arrows")) == list(range(300))


def test_a_segment_of_another_recording_is_not_joined(tmp_path: Path) -> None:
    record(tmp_path / "cap.arrows", 2)
    record(tmp_path / "other.arrows", 2)
    (tmp_path / "other.arrows").rename(tmp_path / "cap.1.arrows")
    trace = open_trace(tmp_path / "cap.arrows")
    assert all_requests(trace) == list(range(200))
    assert list(trace.notes) == ["not joined: cap.1.arrows belongs to another recording"]


def test_small_batches_are_joined(tmp_path: Path) -> None:
    path = tmp_path / "cap.arrows"
    recorder = Recorder(path, HEADER, coalesce_rows=1000, coalesce_s=3600)
    for number in range(25):
        recorder.write(numbered(number * 100, 100))
    assert open_trace(path).index().rows.tolist() == [1000, 1000]
    recorder.close()
    recorder.close()
    recorder.write(numbered(0, 10))
    assert all_requests(open_trace(path)) == list(range(2500))


def test_a_small_batch_is_flushed_in_time(tmp_path: Path) -> None:
    path = tmp_path / "cap.arrows"
    recorder = Recorder(path, HEADER, coalesce_rows=1000, coalesce_s=0.05)
    recorder.write(numbered(0, 100))
    deadline = time.monotonic() + 10
    while recorder.rows < 100 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert open_trace(path).index().rows.tolist() == [100]
    recorder.close()


def test_an_existing_file_is_not_overwritten_unless_told(tmp_path: Path) -> None:
    path = tmp_path / "cap.arrows"
    record(path, 6, rows=500, max_bytes=30_000)
    before = path.read_bytes()
    with pytest.raises(TelemetryError, match="is there already"):
        Recorder(path, HEADER)
    assert path.read_bytes() == before
    record(path, 1, overwrite=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cap.1.arrows.idx", "cap.arrows", "cap.arrows.idx"]
    assert all_requests(open_trace(path)) == list(range(100))


def test_a_target_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match="cannot be written: No such file"):
        Recorder(tmp_path / "none" / "cap.arrows", HEADER)


def index_without_reading(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], int]:
    reads = 0
    original = ArrowTrace.read

    def counted(self: ArrowTrace, number: int) -> Any:
        nonlocal reads
        reads += 1
        return original(self, number)

    monkeypatch.setattr(ArrowTrace, "read", counted)
    first = open_trace(path).index().first_ns.tolist()
    monkeypatch.undo()
    return first, reads


def test_the_index_is_used_when_right_and_rebuilt_when_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cap.arrows"
    record(path, 5)
    side = sidecar_path(path)
    want = [i * 100_000 + 500 for i in range(5)]
    good = side.read_bytes()
    assert index_without_reading(path, monkeypatch) == (want, 0)
    side.write_bytes(good[:-30])
    assert index_without_reading(path, monkeypatch) == (want, 1)
    flipped = bytearray(good)
    flipped[32 + 40 + 20] ^= 4
    side.write_bytes(flipped)
    assert index_without_reading(path, monkeypatch) == (want, 1)
    side.write_bytes(b"something else entirely")
    assert index_without_reading(path, monkeypatch) == (want, 5)
    other = tmp_path / "other.arrows"
    record(other, 5)
    side.write_bytes(sidecar_path(other).read_bytes())
    assert index_without_reading(path, monkeypatch) == (want, 5)
    side.unlink()
    assert index_without_reading(path, monkeypatch) == (want, 5)
    assert not side.exists()


def test_a_file_of_ours_only_is_replaced_by_the_index(tmp_path: Path) -> None:
    side = tmp_path / "cap.arrows.idx"
    side.write_text("my notes")
    record(tmp_path / "cap.arrows", 2)
    assert side.read_text() == "my notes"
    assert all_requests(open_trace(tmp_path / "cap.arrows")) == list(range(200))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_full_disk_stops_the_recording_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    path = tmp_path / "cap.arrows"
    recorder = Recorder(path, HEADER, coalesce_rows=1)
    recorder.write(numbered(0, 100))
    real_write = os.write

    def full(fd: int, data: bytes) -> int:
        if len(data) > 1000:
            return real_write(fd, data[:1000])
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "write", full)
    recorder.write(numbered(100, 100))
    monkeypatch.undo()
    assert recorder.failed == f"{path}: recording stopped: {os.strerror(code)}"
    recorder.write(numbered(200, 100))
    recorder.close()
    assert recorder.rows == 100
    trace = open_trace(path)
    assert all_requests(trace) == list(range(100))
    assert trace.complete
    assert list(trace.notes) == []


FILE_LIMIT = """
import resource, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from telemetry_samples import HEADER, numbered
from fusetui.telemetry.recording import Recorder
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
recorder = Recorder(Path(sys.argv[1]), HEADER, coalesce_rows=1)
for number in range(200):
    recorder.write(numbered(number * 200, 200))
recorder.close()
print(recorder.rows, recorder.failed)
"""


def test_a_real_limit_of_the_operating_system(tmp_path: Path) -> None:
    path = tmp_path / "cap.arrows"
    command = [sys.executable, "-c", FILE_LIMIT, str(path), str(Path(__file__).parent)]
    out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    rows, _, failed = out.strip().partition(" ")
    assert failed == f"{path}: recording stopped: File too large"
    assert 0 < int(rows) < 40_000
    trace = open_trace(path)
    assert all_requests(trace) == list(range(int(rows)))
    assert all("damaged" not in note for note in trace.notes)


RECORD_FOREVER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from telemetry_samples import HEADER, numbered
from fusetui.telemetry.recording import Recorder
recorder = Recorder(Path(sys.argv[1]), HEADER, coalesce_rows=1, max_bytes=400_000, overwrite=True)
number = 0
while True:
    recorder.write(numbered(number * 50, 50))
    number += 1
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""


def test_kill_9_at_any_moment_loses_at_most_the_batch_being_written(tmp_path: Path) -> None:
    rng = random.Random(7)
    for attempt in range(KILLS):
        path = tmp_path / f"cap{attempt}.arrows"
        command = [sys.executable, "-c", RECORD_FOREVER, str(path), str(Path(__file__).parent)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(rng.uniform(0, 0.25))
            child.send_signal(signal.SIGKILL)
            said = child.stdout.read().split(b"\n")
        # Lines that did not end may be cut; a whole one means that the batch was handed over.
        handed_over = max([int(line) for line in said[:-1]], default=1)
        trace = open_trace(path)
        got = all_requests(trace)
        assert got == list(range(len(got))), attempt
        assert len(got) // 50 in (handed_over, handed_over + 1), attempt
        assert not trace.complete or time.time() - path.stat().st_mtime >= 10
        assert any("ends without end-of-stream marker" in note for note in trace.notes)
        trace.close()


def test_a_growing_recording_is_followed_into_new_segments(tmp_path: Path) -> None:
    path = tmp_path / "cap.arrows"
    recorder = Recorder(path, HEADER, coalesce_rows=1, max_bytes=20_000)
    recorder.write(numbered(0, 300))
    trace = open_trace(path)
    assert all_requests(trace) == list(range(300))
    assert not trace.complete
    assert not trace.refresh()
    for number in range(1, 10):
        recorder.write(numbered(number * 300, 300))
    assert (tmp_path / "cap.2.arrows").exists()
    assert trace.refresh()
    assert all_requests(trace) == list(range(3000))
    recorder.close()
    trace.refresh()
    assert trace.complete
    assert list(trace.notes) == []


def test_opening_never_modifies_a_capture(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    record(folder / "cap.arrows", 8, rows=500, max_bytes=30_000)
    sidecar_path(folder / "cap.arrows").unlink()
    files = sorted(folder.iterdir())
    for file in files:
        file.chmod(0o444)
    folder.chmod(0o555)

    def state() -> list[tuple[str, str, int, int]]:
        stats = [(f, f.stat()) for f in sorted(folder.iterdir())]
        return [(f.name, hashlib.sha256(f.read_bytes()).hexdigest(), s.st_mode, s.st_mtime_ns) for f, s in stats]

    before, folder_before = state(), folder.stat().st_mtime_ns
    try:
        for isolate in (False, True):
            trace = open_trace(folder / "cap.arrows", isolate=isolate)
            deadline = time.monotonic() + 20
            while not trace.complete and time.monotonic() < deadline:
                time.sleep(0.02)
            assert all_requests(trace) == list(range(4000))
            trace.refresh()
            trace.close()
        assert state() == before
        assert folder.stat().st_mtime_ns == folder_before
    finally:
        folder.chmod(0o755)


def test_dictionaries_that_change_with_every_batch_are_right_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "cap.arrows"
    with Recorder(path, HEADER, coalesce_rows=1) as recorder:
        for i in range(20):
            names = [f"n{i}", f"m{i % 3}"]
            recorder.write(build_batch({"kind": "mark", "name": names, "start_ns": [i, i], "end_ns": [i, i]}))
    trace = open_trace(path)
    for i in np.random.default_rng(1).permutation(20).tolist():
        assert trace.read(i)["name"].to_pylist() == [f"n{i}", f"m{i % 3}"]
