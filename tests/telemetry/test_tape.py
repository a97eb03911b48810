"""A recording that begins with the first batch."""

from pathlib import Path

import pytest
from test_replay import ListTrace, Wall

from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.open import open_trace
from fusetui.telemetry.replay import Replay
from fusetui.telemetry.schema import build_batch
from fusetui.telemetry.tape import Tape

BATCH = build_batch({"kind": "execution", "name": ["a", "b"], "start_ns": [1, 2], "end_ns": [3, 4]})


def source() -> Replay:
    return Replay(ListTrace([]), wall_ns=Wall())


def test_the_header_is_that_of_the_first_batch(tmp_path: Path) -> None:
    path, live = tmp_path / "t.arrows", source()
    tape = Tape(path, live)
    assert not path.exists()
    live.header = Header(source="the first producer")
    tape.write(BATCH)
    tape.close()
    assert (tape.failed, tape.rows) == ("", 2)
    trace = open_trace(path)
    assert (trace.header.source, int(trace.index().rows.sum())) == ("the first producer", 2)


def test_an_empty_recording_is_a_file_that_opens(tmp_path: Path) -> None:
    tape = Tape(tmp_path / "t.arrows", source())
    tape.close()
    assert int(open_trace(tmp_path / "t.arrows").index().rows.sum()) == 0


def test_a_file_in_the_way_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "t.arrows").write_bytes(b"x")
    with pytest.raises(TelemetryError, match="exists already"):
        Tape(tmp_path / "t.arrows", source())


def test_a_folder_that_is_gone_is_said_and_never_raised(tmp_path: Path) -> None:
    tape = Tape(tmp_path / "gone" / "t.arrows", source())
    tape.write(BATCH)
    tape.write(BATCH)
    tape.close()
    assert "cannot be written" in tape.failed
    assert tape.rows == 0
