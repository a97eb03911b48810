"""The producer API: what is sent arrives, and a viewer that is slow, gone or back again costs counted rows at most."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from fusetui.emit import Producer
from fusetui.telemetry.header import Header
from fusetui.telemetry.open import open_trace
from fusetui.telemetry.reader import StreamReader
from fusetui.telemetry.schema import build_batch


def eventually(check: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if check():
            return True
        time.sleep(0.01)
    return False


class Viewer(threading.Thread):
    """Listens, reads one connection to its end, remembers."""

    def __init__(self, listener: socket.socket) -> None:
        super().__init__(daemon=True)
        self.listener = listener
        self.first_line = b""
        self.rows: list[dict[str, object]] = []
        self.header: Header | None = None
        self.ended = False
        self.token = False
        self.connection: socket.socket | None = None

    def run(self) -> None:
        self.connection, _ = self.listener.accept()
        with self.connection, self.connection.makefile("rb") as file:
            if self.token:
                self.first_line = file.readline()
            reader = StreamReader(file, "socket")
            self.header = reader.header
            for batch in reader:
                self.rows += batch.to_pylist()
            self.ended = reader.ended


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "s"))
    server.listen()
    server.settimeout(10)
    yield server
    server.close()


def test_every_kind_of_row_arrives(listener: socket.socket, tmp_path: Path) -> None:
    viewer = Viewer(listener)
    viewer.start()
    with Producer(f"unix:{tmp_path / 's'}", source="my-server") as p:
        p.execution("gemm", enqueue_ns=1, start_ns=2, end_ns=3, stream="decode", core=3, flops=7)
        p.request("chat", request=17, enqueue_ns=1, end_ns=9, stream="tenant-a")
        p.request("chat", request=18, enqueue_ns=5, end_ns=None)
        p.counter("power", 312.5, unit="W", at_ns=4)
        p.mark("deploy 42", at_ns=6)
        p.write_batch(build_batch({"kind": "mark", "name": ["b"], "start_ns": [8], "end_ns": [8]}))
    viewer.join(10)
    assert (p.sent, p.dropped, p.error) == (6, 0, "")
    assert viewer.header == Header(source="my-server")
    assert viewer.ended
    present = [{k: v for k, v in row.items() if v is not None} for row in viewer.rows]
    assert present == [
        {
            "kind": "execution",
            "name": "gemm",
            "enqueue_ns": 1,
            "start_ns": 2,
            "end_ns": 3,
            "stream": "decode",
            "core": 3,
            "flops": 7.0,
        },
        {
            "kind": "request",
            "name": "chat",
            "request": 17,
            "enqueue_ns": 1,
            "start_ns": 1,
            "end_ns": 9,
            "stream": "tenant-a",
        },
        {"kind": "request", "name": "chat", "request": 18, "enqueue_ns": 5},
        {"kind": "counter", "name": "power", "value": 312.5, "unit": "W", "start_ns": 4, "end_ns": 4},
        {"kind": "mark", "name": "deploy 42", "start_ns": 6, "end_ns": 6},
        {"kind": "mark", "name": "b", "start_ns": 8, "end_ns": 8},
    ]


def test_tcp_with_a_token() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    viewer = Viewer(server)
    viewer.token = True
    viewer.start()
    with Producer(f"tcp:127.0.0.1:{server.getsockname()[1]}", source="s", token="secret") as p:
        p.mark("m")
    viewer.join(10)
    assert viewer.first_line == b"FUSETUI-TOKEN secret\n"
    assert [row["name"] for row in viewer.rows] == ["m"]
    server.close()


def test_a_quiet_producer_is_seen(listener: socket.socket, tmp_path: Path) -> None:
    viewer = Viewer(listener)
    viewer.start()
    p = Producer(f"unix:{tmp_path / 's'}", source="quiet")
    assert eventually(lambda: viewer.header == Header(source="quiet"))
    p.close()
    viewer.join(10)
    assert viewer.ended


def test_rows_go_out_in_time_without_a_full_batch(listener: socket.socket, tmp_path: Path) -> None:
    viewer = Viewer(listener)
    viewer.start()
    p = Producer(f"unix:{tmp_path / 's'}", source="s", flush_s=0.05)
    p.mark("early")
    assert eventually(lambda: len(viewer.rows) == 1)
    p.close()


def test_a_viewer_that_comes_later_and_one_that_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "s"
    p = Producer(f"unix:{path}", source="s", flush_s=0.02)
    p.mark("before anybody listens")
    assert eventually(lambda: "No such file" in p.error)
    viewers = []
    for number in range(2):
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(path))
        server.listen()
        viewer = Viewer(server)
        viewer.start()
        viewers.append(viewer)

        def sees_a_row(seen: Viewer = viewer, number: int = number) -> bool:
            p.mark(f"for viewer {number}")
            return len(seen.rows) > 1

        assert eventually(sees_a_row)
        assert viewer.connection is not None
        viewer.connection.shutdown(socket.SHUT_RDWR)
        server.close()
        path.unlink()
    assert viewers[0].rows[0]["name"] == "before anybody listens"
    assert viewers[1].rows[-1]["name"] == "for viewer 1"
    p.close()


def test_a_full_buffer_drops_and_counts_and_never_waits(tmp_path: Path) -> None:
    p = Producer(f"unix:{tmp_path / 'nobody'}", source="s", buffer_rows=100, close_s=0.3)
    began = time.monotonic()
    for _ in range(1000):
        p.mark("m")
    assert time.monotonic() - began < 5
    assert p.dropped == 900
    began = time.monotonic()
    p.close()
    assert time.monotonic() - began < 5
    assert (p.sent, p.dropped) == (0, 1000)
    p.mark("after close")
    assert p.dropped == 1001


def test_a_viewer_that_stops_reading_does_not_hold_close(listener: socket.socket, tmp_path: Path) -> None:
    p = Producer(f"unix:{tmp_path / 's'}", source="s", close_s=0.3)
    connection, _ = listener.accept()
    big = build_batch({"kind": "mark", "name": "m", "start_ns": range(100_000), "end_ns": range(100_000)}, 100_000)
    p.write_batch(big)
    time.sleep(0.1)
    began = time.monotonic()
    p.close()
    assert time.monotonic() - began < 3
    assert p.sent + p.dropped == 100_000
    assert p.dropped == 100_000
    connection.close()


def test_to_a_file_and_to_standard_output(tmp_path: Path) -> None:
    path = tmp_path / "p.arrows"
    with Producer(str(path), source="s") as p:
        for i in range(20_000):
            p.execution("k", start_ns=i, end_ns=i + 1)
    trace = open_trace(path)
    assert int(trace.index().rows.sum()) == 20_000
    assert trace.complete
    code = "from fusetui.emit import Producer\nwith Producer('-', source='s') as p: p.mark('m', at_ns=1)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=30).stdout
    assert pa.ipc.open_stream(out).read_all()["name"].to_pylist() == ["m"]


def test_mistakes_show_at_the_call(tmp_path: Path) -> None:
    p = Producer(str(tmp_path / "x"), source="s")
    with pytest.raises(ValueError, match="'colour' is not a column"):
        p.execution("k", start_ns=1, end_ns=2, colour="red")
    with pytest.raises(ValueError, match="core=4294967296 does not fit"):
        p.execution("k", start_ns=1, end_ns=2, core=1 << 32)
    with pytest.raises(ValueError, match="contract's schema"):
        p.write_batch(pa.record_batch({"a": [1]}))
    p.close()
    with pytest.raises(ValueError, match="is not tcp:host:port"):
        Producer("tcp:nowhere", source="s")
    with pytest.raises(ValueError, match="one line"):
        Producer("-", source="s", token="a\nb")
