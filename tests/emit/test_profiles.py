"""Profiles on their way to a viewer: the rows `fusetui replay` would show, at the time they happened, or counted."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fusetui.emit import ProfileStream
from fusetui.telemetry.header import Header
from fusetui.telemetry.link import Link
from fusetui.telemetry.reader import StreamReader

BASE_NS = 1_780_000_000_000_000_000


def window(first_step: int, ops: int = 1) -> str:
    """A profile of one step with host operators, as torch.profiler writes it."""
    step = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{first_step}", "pid": 1, "tid": 7}
    events: list[dict[str, Any]] = [{**step, "ts": 1000.0 * first_step, "dur": 900.0}]
    for n in range(ops):
        at = 1000.0 * first_step + 10 + n
        events.append(
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 7, "ts": at, "dur": 0.5, "args": {}}
        )
    return json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": BASE_NS, "traceEvents": events})


def runs(count: int) -> str:
    """A profile of so many runs of one node, as ONNX Runtime writes it."""
    events = []
    for n in range(count):
        common = {"pid": 1, "tid": 7, "ph": "X", "ts": 100 + 100 * n}
        args = {"op_name": "MatMul", "provider": "CPUExecutionProvider"}
        events.append({"cat": "Node", "name": "mm_kernel_time", "dur": 40, "args": args, **common})
        events.append({"cat": "Session", "name": "model_run", "dur": 50, "args": {}, **common})
    return json.dumps(events)


class FakeProfiler:
    def __init__(self, text: str) -> None:
        self.text = text

    def export_chrome_trace(self, path: str) -> None:
        Path(path).write_text(self.text)


class FakeSession:
    def __init__(self, path: Path, text: str, origin_ns: int) -> None:
        self.path, self.text, self.origin_ns = path, text, origin_ns

    def end_profiling(self) -> str:
        self.path.write_text(self.text)
        return str(self.path)

    def get_profiling_start_time_ns(self) -> int:
        return self.origin_ns


class Reader(threading.Thread):
    """A viewer: reads what comes on one connection."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.listener.settimeout(10)
        self.rows: list[dict[str, Any]] = []
        self.header = Header()

    def run(self) -> None:
        connection, _ = self.listener.accept()
        with connection, connection.makefile("rb") as file:
            reader = StreamReader(file, "socket")
            self.header = reader.header
            for batch in reader:
                self.rows += batch.to_pylist()


@pytest.fixture
def viewer(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path / "s")
    reader.start()
    yield reader
    reader.listener.close()


def stream_to(folder: Path, **more: Any) -> ProfileStream:
    return ProfileStream(f"unix:{folder / 's'}", source="train.py", **more)


def eventually(check: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while not check() and time.monotonic() < deadline:
        time.sleep(0.01)
    return check()


def test_windows_of_torch_arrive_with_their_steps(viewer: Reader, tmp_path: Path) -> None:
    with stream_to(tmp_path) as stream:
        for step in (2, 5):
            stream.torch_trace(FakeProfiler(window(step, ops=3)))
            assert eventually(lambda wanted=step: stream.profiles == (wanted + 1) // 3)  # type: ignore[misc]
    viewer.join(10)
    assert (stream.profiles, stream.dropped_profiles, stream.sent, stream.dropped, stream.error) == (2, 0, 8, 0, "")
    assert stream.export_s > 0
    assert viewer.header.source == "train.py"
    assert viewer.header.clock == "epoch"
    requests = {row["request"]: row["start_ns"] for row in viewer.rows if row["kind"] == "request"}
    assert requests == {2: BASE_NS + 2_000_000, 5: BASE_NS + 5_000_000}
    operators = [(row["name"], row["request"]) for row in viewer.rows if row["kind"] == "execution"]
    assert operators == [("aten::mm", 2)] * 3 + [("aten::mm", 5)] * 3


def test_runs_of_onnxruntime_are_numbered_on_and_placed_in_time(viewer: Reader, tmp_path: Path) -> None:
    with stream_to(tmp_path) as stream:
        for n, origin_ns in enumerate((BASE_NS, BASE_NS + 10**9)):
            stream.onnx_profile(FakeSession(tmp_path / f"{n}.json", runs(2), origin_ns))
            assert eventually(lambda wanted=n + 1: stream.profiles == wanted)  # type: ignore[misc]
    viewer.join(10)
    starts = {row["request"]: row["start_ns"] for row in viewer.rows if row["kind"] == "request"}
    assert starts == {
        0: BASE_NS + 100_000, 1: BASE_NS + 200_000,
        2: BASE_NS + 10**9 + 100_000, 3: BASE_NS + 10**9 + 200_000,
    }  # fmt: skip
    nodes = [(row["request"], row["end_ns"] - row["start_ns"]) for row in viewer.rows if row["kind"] == "execution"]
    assert sorted(nodes) == [(0, 40_000), (1, 40_000), (2, 40_000), (3, 40_000)]
    assert (tmp_path / "0.json").exists()


def test_a_session_whose_clock_is_no_date_ends_when_it_was_handed_over(viewer: Reader, tmp_path: Path) -> None:
    with stream_to(tmp_path) as stream:
        before_ns = time.time_ns()
        stream.onnx_profile(FakeSession(tmp_path / "p.json", runs(2), 12_345))
        after_ns = time.time_ns()
        assert eventually(lambda: stream.profiles == 1)
    viewer.join(10)
    assert before_ns <= max(row["end_ns"] for row in viewer.rows) <= after_ns


def test_steps_and_runs_of_one_stream_are_told_apart(viewer: Reader, tmp_path: Path) -> None:
    with stream_to(tmp_path) as stream:
        stream.torch_trace(FakeProfiler(window(0)))
        assert eventually(lambda: stream.profiles == 1)
        stream.onnx_profile(FakeSession(tmp_path / "p.json", runs(1), BASE_NS))
        assert eventually(lambda: stream.profiles == 2)
        stream.torch_trace(FakeProfiler(window(1)))
    viewer.join(10)
    named = {row["request"]: row["name"] for row in viewer.rows if row["kind"] == "request"}
    assert list(named) == [0, 10**9, 1]


def test_a_viewer_that_is_being_connected_to_is_not_away(
    viewer: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Link.open
    ready = threading.Event()

    def slowly(link: Link) -> None:
        ready.wait(10)
        opened(link)

    monkeypatch.setattr(Link, "open", slowly)
    with stream_to(tmp_path) as stream:
        stream.torch_trace(FakeProfiler(window(0)))
        assert eventually(lambda: stream.profiles == 1)
        stream.torch_trace(FakeProfiler(window(1)))
        ready.set()
    viewer.join(10)
    assert stream.dropped_profiles == 0
    assert [row["request"] for row in viewer.rows if row["kind"] == "request"] == [0, 1]


def test_nobody_watches_and_the_profile_is_not_even_written(tmp_path: Path) -> None:
    with stream_to(tmp_path, close_s=0.2) as stream:
        stream.torch_trace(FakeProfiler(window(0)))  # the first one is read for what it says of the devices
        assert eventually(lambda: "s" in stream.error)

        class Never(FakeProfiler):
            def export_chrome_trace(self, path: str) -> None:
                raise AssertionError("written for nobody")

        stream.torch_trace(Never(""))
        assert stream.dropped_profiles == 1
    assert (stream.sent, stream.dropped) == (0, 2)


@pytest.mark.parametrize("text", ["", "{}", '{"traceEvents": []}', "\x00" * 100, '{"traceEvents": [{"ph"'])
def test_a_profile_that_cannot_be_read_is_counted_and_the_next_one_goes_through(
    text: str, viewer: Reader, tmp_path: Path
) -> None:
    with stream_to(tmp_path) as stream:
        stream.torch_trace(FakeProfiler(text))
        assert eventually(lambda: stream.dropped_profiles == 1)
        assert stream.error
        assert "\n" not in stream.error
        stream.torch_trace(FakeProfiler(window(3)))
    viewer.join(10)
    assert stream.profiles == 1
    assert [row["request"] for row in viewer.rows if row["kind"] == "request"] == [3]


def test_a_profiler_that_cannot_write_does_not_stop_the_training(tmp_path: Path) -> None:
    class Full(FakeProfiler):
        def export_chrome_trace(self, path: str) -> None:
            raise RuntimeError("no space left on device")

    with stream_to(tmp_path) as stream:
        stream.torch_trace(Full(""))
        assert (stream.dropped_profiles, stream.error) == (
            1, "the profile could not be written: no space left on device",
        )  # fmt: skip


def test_more_profiles_than_can_wait_are_dropped_whole(tmp_path: Path) -> None:
    with stream_to(tmp_path, most_waiting=0) as stream:
        stream.torch_trace(FakeProfiler(window(0)))
        assert (stream.profiles, stream.dropped_profiles) == (0, 1)


def test_the_files_of_windows_do_not_stay(viewer: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with stream_to(tmp_path) as stream:
        stream.torch_trace(FakeProfiler(window(0)))
        assert eventually(lambda: stream.profiles == 1)
        assert eventually(lambda: not list(tmp_path.glob("fusetui-*/*")))
    assert not list(tmp_path.glob("fusetui-*"))


def test_neither_frameworks_nor_importers_come_with_it() -> None:
    code = (
        "import sys, fusetui.emit\n"
        "bad = [m for m in sys.modules if m.split('.')[0] in ('torch', 'onnxruntime', 'polars', 'textual')"
        " or m.startswith('fusetui.importers')]\nprint(bad)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"
