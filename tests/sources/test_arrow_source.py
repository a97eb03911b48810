"""Producers over real sockets and pipes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from arrow_producers import Open, batch, connect, gather, gather_rows, send, stream, until

from fusetui.emit import Producer as Emitter
from fusetui.sources.arrow import ArrowSource
from fusetui.sources.arrow_crowd import MAX_PRODUCERS
from fusetui.sources.arrow_listen import Address
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header

TCP = "tcp:127.0.0.1:0"


def test_a_producer_over_a_unix_socket(open_arrow: Open, tmp_path: Path) -> None:
    source = open_arrow(f"unix:{tmp_path}/s")
    assert (source.now_ns(), source.health().state, source.header.source) == (None, "waiting", "arrow")
    send(source.address, stream([batch(5), batch(7, first=5)], Header(source="engine", host="box", slo_ns=5)))
    table = gather_rows(source, 12)
    assert table.column("request").to_pylist() == list(range(12))
    assert (source.header.source, source.header.host, source.header.slo_ns) == ("engine", "box", 5)
    until(lambda: source.health().producers[0].state == "ended")
    health = source.health()
    assert (health.rows, health.batches, health.producers[0].name, health.producers[0].rows) == (
        12,
        2,
        "engine@box",
        12,
    )
    assert abs((source.now_ns() or 0) - time.time_ns()) < 10**9
    source.close()
    assert not (tmp_path / "s").exists()


def test_twenty_producers_at_once(open_arrow: Open) -> None:
    source = open_arrow(TCP)
    data = [
        stream([batch(50, first=1000 * n + 50 * k) for k in range(10)], Header(source="rank", host=f"host{n}"))
        for n in range(20)
    ]
    threads = [threading.Thread(target=send, args=(source.address, one)) for one in data]
    for thread in threads:
        thread.start()
    table = gather_rows(source, 20 * 500)
    for thread in threads:
        thread.join()
    assert sorted(table.column("request").to_pylist()) == sorted(1000 * n + k for n in range(20) for k in range(500))
    rows = zip(table.column("host").to_pylist(), table.column("request").to_pylist(), strict=True)
    assert all(host in (None, f"host{request // 1000}") for host, request in rows)
    until(lambda: all(p.state == "ended" for p in source.health().producers))
    assert {p.name for p in source.health().producers} == {f"rank@host{n}" for n in range(20)}
    assert source.header.host is None


def test_hosts_are_filled_once_producers_differ(open_arrow: Open) -> None:
    source = open_arrow(TCP)
    with connect(source.address) as one, connect(source.address) as two:
        one.sendall(stream([batch(1)], Header(source="one")))
        assert gather_rows(source, 1).column("host").to_pylist() == [None]
        two.sendall(stream([batch(1)], Header(source="two", host="b")))
        assert gather_rows(source, 1).column("host").to_pylist() == ["b"]
        one.sendall(stream([batch(1)], Header(source="one")))
        assert gather_rows(source, 1).column("host").to_pylist() == ["one"]


def test_a_producer_comes_back(open_arrow: Open) -> None:
    source = open_arrow(TCP)
    for n in range(3):
        send(source.address, stream([batch(4)], Header(source="engine")))
        gather_rows(source, 4)
        until(lambda: all(p.state == "ended" for p in source.health().producers))
        (producer,) = source.health().producers
        assert producer.rows == 4 * (n + 1)
    assert "connected 3 times" in producer.detail


def test_a_broken_stream_fails_alone(open_arrow: Open) -> None:
    source = open_arrow(TCP)
    with connect(source.address) as good:
        whole = stream([batch(3), batch(3, first=3)], Header(source="good"))
        good.sendall(whole[: len(whole) // 2])
        send(source.address, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        until(lambda: any(p.state == "failed" for p in source.health().producers))
        good.sendall(whole[len(whole) // 2 :])
        assert gather_rows(source, 6).column("request").to_pylist() == list(range(6))
    failed = next(p for p in source.health().producers if p.state == "failed")
    assert failed.detail
    assert "\n" not in failed.detail
    assert source.health().last_error == failed.detail


def test_a_cut_stream_keeps_what_came_and_says_so(open_arrow: Open) -> None:
    source = open_arrow(TCP)
    whole = stream([batch(3), batch(500, first=3)], Header(source="cut"))
    send(source.address, whole[:-200])
    until(lambda: any(p.state == "lost" for p in source.health().producers))
    table = gather_rows(source, 4)
    assert table.column("name").to_pylist() == ["gemm"] * 3 + ["lost cut"]
    assert "end-of-stream" in source.health().producers[0].detail


def test_a_producer_on_another_clock_is_refused(open_arrow: Open) -> None:
    source = open_arrow(TCP)
    with connect(source.address) as first:
        first.sendall(stream([batch(1)], Header(source="first")))
        gather_rows(source, 1)
        send(source.address, stream([batch(1)], Header(source="second", clock="trace")))
        until(lambda: len(source.health().producers) == 2 and source.health().producers[1].state == "failed")
    assert "since the trace began" in source.health().producers[1].detail


def test_the_token(open_arrow: Open) -> None:
    source = open_arrow(TCP, token="s3cret")
    data = stream([batch(2)])
    for wrong in (b"FUSETUI-TOKEN wrong!\n", b"FUSETUI-TOKEN s3crets\n", b"FUSETUI-TOKEN \n", b"", data):
        with connect(source.address) as client:
            client.sendall(wrong + data)
            client.settimeout(5)
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(1) == b"", "the connection is closed"
    until(lambda: "5 refused" in source.health().detail)
    assert source.health().producers == ()
    send(source.address, b"FUSETUI-TOKEN s3cret\n" + data)
    assert gather_rows(source, 2).num_rows == 2


def test_a_slow_token_is_cut_off_while_others_work(open_arrow: Open) -> None:
    source = open_arrow(TCP, token="s3cret", token_timeout_s=0.4)
    with connect(source.address) as slow:
        began = time.monotonic()
        stop = threading.Event()

        def dribble() -> None:
            for byte in b"FUSETUI-TOKEN s3cret":
                if stop.wait(0.3):
                    return
                try:
                    slow.send(bytes([byte]))
                except OSError:
                    return

        thread = threading.Thread(target=dribble)
        thread.start()
        send(source.address, b"FUSETUI-TOKEN s3cret\n" + stream([batch(2)]))
        gather_rows(source, 2)
        until(lambda: "1 refused" in source.health().detail, 4.0)
        assert time.monotonic() - began < 4.0, "the whole line has one deadline, not each byte"
        stop.set()
        thread.join()


def test_drop_counts_add_up(open_arrow: Open) -> None:
    source = open_arrow(TCP, memory_bytes=200_000, overflow="drop")
    send(source.address, stream([batch(100, first=100 * n) for n in range(300)]))
    until(lambda: source.health().producers != () and source.health().producers[0].state == "ended")
    health = source.health()
    assert health.dropped_batches > 0
    assert health.rows + health.dropped_rows == 30_000
    assert health.batches + health.dropped_batches == 300
    table = gather_rows(source, health.rows)
    assert table.num_rows == health.rows
    first = table.column("request").to_pylist()[::100]
    assert all(request % 100 == 0 for request in first), "whole batches"


def test_block_loses_nothing_and_holds_the_producer(open_arrow: Open) -> None:
    source = open_arrow(TCP, memory_bytes=300_000)
    data = stream([batch(1000, first=1000 * n) for n in range(300)])
    sent = threading.Event()

    def produce() -> None:
        send(source.address, data)
        sent.set()

    threading.Thread(target=produce, daemon=True).start()
    until(lambda: source.health().rows > 0)
    assert not sent.wait(0.5), "the producer waits in its write"
    table = gather_rows(source, 300_000)
    assert table.column("request").to_pylist() == list(range(300_000))
    assert source.health().dropped_batches == 0
    assert sent.wait(5)


def test_one_row_batches_arrive_joined(open_arrow: Open) -> None:
    source = open_arrow(TCP)
    send(source.address, stream([batch(1, first=n) for n in range(2000)]))
    polls: list[int] = []
    table = gather(source, lambda batches: (polls.append(len(batches)), sum(b.num_rows for b in batches) >= 2000)[1])
    assert table.column("request").to_pylist() == list(range(2000))
    assert polls[-1] < 200


def test_a_named_pipe_and_its_next_writer(open_arrow: Open, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    source = open_arrow(str(path))
    for n in range(2):
        with path.open("wb") as writer:
            writer.write(stream([batch(3, first=3 * n)]))
        assert gather_rows(source, 3).column("request").to_pylist() == [3 * n, 3 * n + 1, 3 * n + 2]
    assert source.health().state in ("live", "waiting")
    source.close()
    until(lambda: source.health().state == "ended")


def test_a_file_is_read_to_its_end_on_its_own_clock(open_arrow: Open, tmp_path: Path) -> None:
    path = tmp_path / "old.arrows"
    then = 1_600_000_000_000_000_000
    path.write_bytes(stream([batch(10, at_ns=then)]))
    source = open_arrow(str(path))
    gather_rows(source, 10)
    until(lambda: source.health().state == "ended")
    assert source.now_ns() == then + 9
    assert source.health().lag_ns == 0
    assert "behind this machine's clock" in source.health().detail


def test_one_impossible_time_does_not_carry_the_present_away(open_arrow: Open, tmp_path: Path) -> None:
    path = tmp_path / "odd.arrows"
    then = 1_600_000_000_000_000_000
    path.write_bytes(stream([batch(10, at_ns=then), batch(1, at_ns=1 << 62)]))
    source = open_arrow(str(path))
    gather_rows(source, 11)
    assert source.now_ns() == then + 9


def test_a_producer_whose_clock_is_ahead_is_followed(open_arrow: Open) -> None:
    source = open_arrow(TCP)
    ahead = time.time_ns() + 3600 * 10**9
    send(source.address, stream([batch(10, at_ns=ahead)]))
    gather_rows(source, 10)
    assert source.now_ns() == ahead + 9
    assert "ahead of this machine's clock" in source.health().detail


def test_one_too_many_is_turned_away(open_arrow: Open, tmp_path: Path) -> None:
    source = open_arrow(f"unix:{tmp_path}/s")
    clients = [connect(source.address) for _ in range(MAX_PRODUCERS)]
    until(lambda: len(source.health().producers) == MAX_PRODUCERS)
    with connect(source.address) as late:
        late.settimeout(5)
        assert late.recv(1) == b""
    assert "64 connected, 1 refused" in source.health().detail
    clients[0].sendall(stream([batch(2)]))
    clients.pop().close()
    assert gather_rows(source, 2).num_rows == 2
    until(lambda: sum(p.state in ("waiting", "live") for p in source.health().producers) == MAX_PRODUCERS - 1)
    send(source.address, stream([batch(3)]))
    assert gather_rows(source, 3).num_rows == 3
    for client in clients:
        client.close()


def test_hundreds_of_short_visits_stay_counted_and_bounded(open_arrow: Open) -> None:
    source = open_arrow(TCP)
    for n in range(100):
        send(source.address, stream([batch(1)], Header(source=f"job{n}")))
    gather_rows(source, 100)
    until(lambda: all(p.state == "ended" for p in source.health().producers))
    health = source.health()
    assert health.rows == 100
    assert len(health.producers) == 32
    assert health.bytes_in > 100 * 500


def test_the_emitter_finds_its_viewer(open_arrow: Open) -> None:
    source = open_arrow(TCP, token="s3cret")
    with Emitter(str(source.address), source="engine", token="s3cret", flush_s=0.05) as emitter:
        for n in range(300):
            emitter.execution("gemm", start_ns=time.time_ns() - 10, end_ns=time.time_ns(), stream="decode", request=n)
        table = gather_rows(source, 300)
    assert table.column("request").to_pylist() == list(range(300))
    assert (emitter.sent, emitter.dropped) == (300, 0)
    assert source.health().producers[0].name.startswith("engine")


def test_paths_that_cannot_be_read(open_arrow: Open, tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match="No such file"):
        open_arrow(str(tmp_path / "none"))
    with pytest.raises(TelemetryError, match="folder"):
        open_arrow(str(tmp_path))
    listening = open_arrow(f"unix:{tmp_path}/s")
    with pytest.raises(TelemetryError, match="write unix:"):
        open_arrow(listening.address.path)


CHILD = """
import sys
from fusetui.sources.registry import open_source
source = open_source("-")
rows = []
while source.health().state != "ended" and source.health().state != "failed" or len(rows) == 0:
    for batch in source.poll(0.2):
        rows += batch.column("request").to_pylist()
    if source.health().state in ("ended", "failed") and not rows:
        break
print(len(rows), rows == list(range(len(rows))), source.health().state)
"""


@pytest.mark.parametrize(("data", "answer"), [("stream", "1500 True ended"), ("nothing", "0 True failed")])
def test_standard_input(data: str, answer: str) -> None:
    sent = stream([batch(500, first=500 * n) for n in range(3)]) if data == "stream" else b""
    done = subprocess.run([sys.executable, "-c", CHILD], input=sent, capture_output=True, timeout=30, check=False)
    assert done.stderr == b""
    assert done.stdout.decode().strip() == answer
    assert done.returncode == 0


def test_closing_ends_it_all(tmp_path: Path) -> None:
    source = ArrowSource(Address("unix", f"{tmp_path}/s"))
    with connect(source.address) as client:
        client.sendall(stream([batch(1)])[:-8])
        gather_rows(source, 1)
        source.close()
        client.settimeout(5)
        assert client.recv(1) == b""
    assert source.poll(5.0) == []
    assert source.health().state == "ended"
    until(lambda: not any(t.name.startswith("unix client") for t in threading.enumerate()))
