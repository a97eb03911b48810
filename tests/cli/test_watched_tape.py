"""What `live --record` records to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from fusetui.commands.tapes import FolderTape, watched_tape
from fusetui.sources.host import open_spec
from fusetui.sources.spec import OpenOptions
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.open import open_trace
from fusetui.telemetry.schema import build_batch
from fusetui.telemetry.source import Source


def batch(name: str) -> pa.RecordBatch:
    return build_batch({"kind": "mark", "name": [name], "start_ns": 7, "end_ns": 7})


@pytest.fixture
def source() -> Source:
    return open_spec("host", OpenOptions())


def test_every_start_goes_on_in_the_folder(tmp_path: Path, source: Source) -> None:
    for name in ("first", "second"):
        tape = watched_tape(f"{tmp_path}/night", source, overwrite=False)
        tape.write(batch(name))
        assert tape.failed == ""
        tape.close()
        assert tape.rows == 1
        assert isinstance(tape, FolderTape)
        assert tape.take_lines() == []
    trace = open_trace(tmp_path / "night")
    names = [row["name"] for number in range(len(trace.index().rows)) for row in trace.read(number).to_pylist()]
    assert names == ["first", "recording resumed", "second"]


def test_a_folder_is_of_one_recorder_and_a_file_stays_a_file(tmp_path: Path, source: Source) -> None:
    first = watched_tape(f"{tmp_path}/night/", source, overwrite=False)
    with pytest.raises(TelemetryError, match="night"):
        watched_tape(f"{tmp_path}/night/", source, overwrite=False)
    first.close()
    tape = watched_tape(f"{tmp_path}/night.arrows", source, overwrite=False)
    tape.close()
    assert (tmp_path / "night.arrows").is_file()


def test_without_a_terminal_nothing_is_recorded(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fusetui.cli", "live", "host", "--record", str(tmp_path / "a.arrows")],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (
        2,
        "fusetui: no terminal for input; without one, try: fusetui snapshot\n",
    )
    assert list(tmp_path.iterdir()) == []
