"""Recordings in a folder: gone on with by the next start, ended after a kill, pruned, and one trace when read."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from telemetry_samples import HEADER, numbered
from test_replay import ListTrace, Wall

from fusetui.importers.open import open_capture
from fusetui.telemetry import reel
from fusetui.telemetry.arrowtrace import GROWING_S, ArrowTrace
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.folder import FolderLock, folder_segment, folder_segments
from fusetui.telemetry.guard import DEFAULT_LIMITS
from fusetui.telemetry.header import Header
from fusetui.telemetry.open import open_trace
from fusetui.telemetry.recording import Recorder
from fusetui.telemetry.reel import RESUMED, Reel
from fusetui.telemetry.replay import Replay
from fusetui.telemetry.retention import Keep, prune
from fusetui.telemetry.source import Trace
from fusetui.telemetry.streamfile import StreamFile


def source(header: Header = HEADER) -> Replay:
    made = Replay(ListTrace([]), wall_ns=Wall())
    made.header = header
    return made


def open_reel(folder: Path, *, header: Header = HEADER, max_bytes: int = 1 << 30, keep: Keep | None = None) -> Reel:
    return Reel(folder, source(header), max_bytes=max_bytes, max_seconds=3600.0, keep=keep)


def record(folder: Path, first: int, rows: int, *, batch_rows: int = 100, max_bytes: int = 1 << 30) -> Reel:
    """One run: `rows` numbered rows in batches, each written at once."""
    made = open_reel(folder, max_bytes=max_bytes)
    for at in range(first, first + rows, batch_rows):
        made.write(numbered(at, min(batch_rows, first + rows - at)))
        flush(made)
    made.close()
    return made


def flush(made: Reel) -> None:
    assert made._recorder is not None
    with made._recorder._lock:
        made._recorder._flush()


def numbers_and_marks(trace: Trace) -> tuple[list[int], int]:
    numbers: list[int] = []
    marks = 0
    for at in range(len(trace.index().rows)):
        batch = trace.read(at)
        numbers += pc.drop_null(batch.column("request")).to_pylist()
        marks += batch.column("name").to_pylist().count(RESUMED)
    return numbers, marks


def test_every_start_goes_on_with_the_next_segment_and_nothing_is_written_over(tmp_path: Path) -> None:
    folder = tmp_path / "night"
    assert record(folder, 0, 300).rows == 300
    before = folder_segment(folder, 0).read_bytes()
    assert record(folder, 300, 200).rows == 200
    record(folder, 500, 100)
    assert list(folder_segments(folder)) == [0, 1, 2]
    assert folder_segment(folder, 0).read_bytes() == before
    assert numbers_and_marks(open_trace(folder)) == (list(range(600)), 2)
    assert numbers_and_marks(open_capture([folder], memory_bytes=64 << 20)) == (list(range(600)), 2)


def test_segments_rotate_and_are_read_in_order_of_their_numbers(tmp_path: Path) -> None:
    record(tmp_path / "r", 0, 2000, max_bytes=5_000)
    segments = folder_segments(tmp_path / "r")
    assert len(segments) > 11  # 000010 comes after 000009, as it would not among unpadded names
    trace = open_trace(tmp_path / "r")
    assert numbers_and_marks(trace)[0] == list(range(2000))
    assert list(trace.notes) == []


def test_a_trace_of_times_since_its_start_is_not_gone_on_with(tmp_path: Path) -> None:
    record(tmp_path / "r", 0, 100)
    again = open_reel(tmp_path / "r", header=replace(HEADER, clock="trace"))
    again.write(numbered(100, 100))
    again.close()
    assert "not of one clock" in again.failed
    assert (again.rows, again.lost, list(folder_segments(tmp_path / "r"))) == (0, 100, [0])


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_folder_recording import flush, numbered, open_reel
made = open_reel(Path(sys.argv[1]))
for at in range(0, 500, 100):
    made.write(numbered(at, 100))
    flush(made)
made.write(numbered(500, 100))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_kill_costs_the_batch_that_was_pending_and_the_next_start_ends_the_segment(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(Path(__file__).parent)], timeout=60)
    assert done.returncode == -signal.SIGKILL
    with folder_segment(folder, 0).open("ab") as file:
        file.write(b"\xff\xff\xff\xff\x10\x00\x00\x00half a message")
    assert "ends without end-of-stream marker, 22 bytes cut" in open_trace(folder).notes[0]
    again = open_reel(folder)
    assert again.take_lines() == ["000000.arrows: was not ended; kept up to its last whole batch, 22 bytes cut"]
    again.write(numbered(600, 50))
    again.close()
    trace = open_trace(folder)
    assert numbers_and_marks(trace) == ([*range(500), *range(600, 650)], 1)
    assert list(trace.notes) == []


def test_a_start_on_a_full_disk_leaves_the_segment_and_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(tmp_path / "r", 0, 100)
    path = folder_segment(tmp_path / "r", 0)
    path.write_bytes(path.read_bytes()[:-8])
    cut = path.read_bytes()

    def full(_fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    again = open_reel(tmp_path / "r")
    assert again.take_lines() == ["000000.arrows: was not ended, and cannot be now: No space left on device"]
    again.close()
    assert path.read_bytes()[: len(cut)] == cut
    assert numbers_and_marks(open_trace(tmp_path / "r"))[0] == list(range(100))


def test_a_segment_without_a_whole_schema_is_removed_and_its_number_used(tmp_path: Path) -> None:
    record(tmp_path / "r", 0, 100)
    folder_segment(tmp_path / "r", 1).write_bytes(folder_segment(tmp_path / "r", 0).read_bytes()[:100])
    assert numbers_and_marks(open_trace(tmp_path / "r"))[0] == list(range(100))
    record(tmp_path / "r", 100, 100)
    assert list(folder_segments(tmp_path / "r")) == [0, 1]
    assert numbers_and_marks(open_trace(tmp_path / "r"))[0] == list(range(200))


def test_damage_in_the_middle_of_a_segment_is_left_as_it_is(tmp_path: Path) -> None:
    record(tmp_path / "r", 0, 300)
    path = folder_segment(tmp_path / "r", 0)
    at = StreamFile(path, DEFAULT_LIMITS).batches[1].start
    broken = path.read_bytes()[:at] + b"\0" * 64 + path.read_bytes()[at + 64 :]
    path.write_bytes(broken)
    record(tmp_path / "r", 300, 100)
    assert path.read_bytes() == broken
    trace = open_trace(tmp_path / "r")
    assert numbers_and_marks(trace)[0] == [*range(100), *range(300, 400)]
    assert any("damaged at byte" in note for note in trace.notes)


def test_a_second_recorder_is_refused_and_told_who_is_there(tmp_path: Path) -> None:
    first = open_reel(tmp_path / "r")
    with pytest.raises(TelemetryError, match=f"process id {os.getpid()} records there"):
        open_reel(tmp_path / "r")
    first.close()
    open_reel(tmp_path / "r").close()


def test_a_folder_that_cannot_be_made_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(TelemetryError, match="cannot be recorded into: Not a directory"):
        open_reel(tmp_path / "file" / "r")
    with pytest.raises(TelemetryError, match="cannot be recorded into: No such file"):
        open_reel(tmp_path / "none" / "r")


def test_a_full_disk_is_waited_out_counted_and_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reel, "_RETRY_S", (0.0, 3600.0))
    made = open_reel(tmp_path / "r")
    made.write(numbered(0, 100))
    flush(made)

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        made.write(numbered(100, 50))
        flush(made)
        made.tick()
        assert (made.state, made.rows, made.lost) == ("stopped", 100, 50)
        made.write(numbered(150, 25))  # tries a new segment, fails, and then not for an hour
        made.write(numbered(175, 25))
        assert made.lost == 100
        assert "No space left on device" in made.problem
        assert list(folder_segments(tmp_path / "r")) == [0]
    made._retry_at = 0.0
    made.write(numbered(200, 100))
    flush(made)
    made.tick()
    assert (made.state, made.problem, made.gaps) == ("recording", "", 1)
    made.close()
    assert (made.rows, made.lost) == (200, 100)
    lines = made.take_lines()
    assert len(lines) == 2
    assert "recording again; 100 events were not recorded so far" in lines[1]
    assert numbers_and_marks(open_trace(tmp_path / "r")) == ([*range(100), *range(200, 300)], 1)


def test_a_folder_removed_under_the_recorder_is_noticed_and_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reel, "_RETRY_S", (0.0,))
    made = open_reel(tmp_path / "r")
    made.write(numbered(0, 100))
    flush(made)
    shutil.rmtree(tmp_path / "r")
    made.write(numbered(100, 100))
    flush(made)
    made.tick()
    assert made.problem.endswith("recording stopped: the file was removed")
    made.write(numbered(200, 100))
    with pytest.raises(TelemetryError, match="records there"):
        FolderLock(tmp_path / "r")
    made.close()
    assert (made.rows, made.lost) == (200, 100)
    assert numbers_and_marks(open_trace(tmp_path / "r"))[0] == list(range(200, 300))


def test_what_is_not_written_costs_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = open_reel(tmp_path / "r")
    made.write(numbered(0, 10))
    flush(made)
    shutil.rmtree(tmp_path / "r")
    os.chmod(tmp_path, 0o500)
    if os.geteuid() == 0:
        (tmp_path / "r").write_text("in the way")  # root may write anywhere, but not make a folder of a file
    for at in range(50):
        made.write(numbered(at * 1000, 1000))
        if made._recorder is not None:
            flush(made)
        made.tick()
    assert made.lost == 50_000
    assert made._recorder is None
    os.chmod(tmp_path, 0o700)
    made.close()


@pytest.mark.parametrize(
    ("keep", "left"),
    [
        (Keep(files=2), [3, 4]),
        (Keep(bytes=250), [3, 4]),
        (Keep(bytes=50), [4]),
        (Keep(age_ns=25 * 10**9), [2, 3, 4]),
        (Keep(files=3, bytes=1 << 20), [2, 3, 4]),
        (Keep(), [0, 1, 2, 3, 4]),
    ],
)
def test_the_oldest_go_until_the_rest_is_within_every_limit(tmp_path: Path, keep: Keep, left: list[int]) -> None:
    now = time.time()
    for number in range(5):
        path = folder_segment(tmp_path, number)
        path.write_bytes(b"x" * 90)
        path.with_name(path.name + ".idx").write_bytes(b"x" * 10)
        os.utime(path, (now, now - (4 - number) * 10))
    assert prune(folder_segments(tmp_path), 4, keep) == 5 - len(left)
    assert list(folder_segments(tmp_path)) == left
    assert sorted(int(p.name[:6]) for p in tmp_path.glob("*.idx")) == left


def test_retention_works_while_recording_and_the_rest_opens(tmp_path: Path) -> None:
    made = open_reel(tmp_path / "r", max_bytes=5_000, keep=Keep(files=3))
    for at in range(0, 2000, 100):
        made.write(numbered(at, 100))
        flush(made)
    made.write(numbered(2000, 100))
    made.close()
    kept = list(folder_segments(tmp_path / "r"))
    assert len(kept) == 3
    assert made.removed == kept[0]
    numbers, _ = numbers_and_marks(open_trace(tmp_path / "r"))
    assert numbers == list(range(numbers[0], 2100))


def test_a_followed_folder_grows_over_a_restart(tmp_path: Path) -> None:
    record(tmp_path / "r", 0, 100)
    trace = open_trace(tmp_path / "r")
    assert not trace.complete
    record(tmp_path / "r", 100, 100)
    assert trace.refresh()
    assert numbers_and_marks(trace)[0] == list(range(200))
    for path in folder_segments(tmp_path / "r").values():
        os.utime(path, (time.time(), time.time() - GROWING_S - 1))
    assert trace.complete


def test_missing_segments_and_another_build_are_noted(tmp_path: Path) -> None:
    record(tmp_path / "r", 0, 1000, max_bytes=5_000)
    folder_segment(tmp_path / "r", 2).unlink()
    later = open_reel(tmp_path / "r", header=replace(HEADER, build={"git": "b"}))
    later.write(numbered(1000, 10))
    later.close()
    trace = open_trace(tmp_path / "r")
    last = max(folder_segments(tmp_path / "r"))
    assert list(trace.notes) == [
        "1 segments are missing before 000003.arrows",
        f"from {last:06d}.arrows on, of another build",
    ]


def test_a_folder_without_segments_is_no_recording(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(TelemetryError, match="a directory, not a capture"):
        open_trace(tmp_path)
    with pytest.raises(TelemetryError, match="no recording in it"):
        ArrowTrace(tmp_path, DEFAULT_LIMITS)


def test_tries_on_a_disk_with_room_for_a_header_only_leave_no_files_and_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reel, "_RETRY_S", (0.0,))
    made = open_reel(tmp_path / "r")
    real_write = os.write

    def nearly_full(fd: int, data: bytes) -> int:
        if len(data) > 2000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real_write(fd, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", nearly_full)
        for at in range(20):
            made.write(numbered(at * 100, 100))
            flush(made)
            made.tick()
            assert made.state == "stopped"
    assert made.lost == 2000
    assert list((tmp_path / "r").glob("*.arrows*")) == []
    assert len(made.take_lines()) == 1
    made.close()


def test_time_that_nobody_recorded_is_noted_and_empty(tmp_path: Path) -> None:
    made = open_reel(tmp_path / "r")
    made.write(numbered(0, 1000))  # up to 1 ms
    made.close()
    trace = open_trace(tmp_path / "r")
    for begin_s in (0.54, 8.0):
        segment = max(folder_segments(tmp_path / "r")) + 1
        with Recorder(folder_segment(tmp_path / "r", segment), HEADER) as later:
            later.write(numbered(int(begin_s * 1e6), 10))
    trace = open_trace(tmp_path / "r")
    replay = Replay(trace)
    density = replay.density(80)
    replay.close()
    assert list(trace.notes) == ["nothing recorded for 7.5 s before 000002.arrows"]
    assert [(int(at), int(density[at])) for at in np.flatnonzero(density)] == [(0, 1000), (5, 10), (79, 10)]
