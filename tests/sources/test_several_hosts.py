"""Several recorders, real processes, into one viewer: counts at both ends, losses and gaps."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from arrow_producers import Open, batch, connect, gather, gather_rows, until
from host_senders import Recorder, stop

from fusetui.sources.arrow import ArrowSource
from fusetui.sources.arrow_listen import parse_address
from fusetui.telemetry.header import Header
from fusetui.telemetry.sender import Sender
from fusetui.telemetry.source import ProducerHealth
from fusetui.telemetry.stamp import RUN_KEY, Answer, Stamp
from fusetui.telemetry.writer import Encoder

TCP = "tcp:127.0.0.1:0"
SKEW_NS = 250_000_000


@pytest.fixture
def recorders() -> Iterator[list[Recorder]]:
    started: list[Recorder] = []
    yield started
    stop(started)


def named(source: ArrowSource, name: str) -> ProducerHealth:
    return next(p for p in source.health().producers if p.name == name)


def requests(tables: list[pa.Table], host: str) -> list[int]:
    """Numbers of the rows of a host, in the order they came."""
    table = pa.concat_tables(tables, promote_options="default")
    rows = zip(*(table.column(c).to_pylist() for c in ("kind", "host", "request")), strict=True)
    return [request for kind, h, request in rows if h == host and kind == "execution"]


def test_three_recorders_one_killed_and_restarted(open_arrow: Open, tmp_path: Path, recorders: list[Recorder]) -> None:
    source = open_arrow(f"unix:{tmp_path}/s")
    recorders += [Recorder(host, str(source.address)) for host in ("a", "b", "c")]
    for _ in range(10):
        for recorder in recorders:
            recorder.give(400)
    seen = [gather(source, lambda got: sum(b.num_rows for b in got) >= 12_000, 40.0)]
    a, b, c = recorders

    b.kill()
    until(lambda: named(source, "numbered@b").state == "lost")
    seen.append(gather_rows(source, 1))
    assert seen[-1].column("name").to_pylist() == ["lost numbered@b"]
    lost = named(source, "numbered@b")
    assert "all of 4,000 came" in lost.detail
    assert lost.detail.partition("since ")[2][:8].count(":") == 2
    assert "2 connected, 1 lost" in source.health().detail

    again = Recorder("b", str(source.address))
    recorders.append(again)
    for recorder in (a, again, c):
        recorder.give(1_000)
    seen.append(gather(source, lambda got: sum(x.num_rows for x in got) >= 3_001, 40.0))
    assert [n for n in seen[-1].column("name").to_pylist() if n.startswith("numbered@b is back after ")]

    said = {recorder: recorder.finish() for recorder in (a, again, c)}
    until(lambda: all(p.state == "ended" for p in source.health().producers))
    assert "took 5,000 events, sent 5,000" in said[a]
    assert "5,000 confirmed" in said[a]
    assert "took 1,000 events, sent 1,000" in said[again]
    assert {p.name: p.rows for p in source.health().producers} == {f"numbered@{h}": 5_000 for h in "abc"}
    assert requests(seen, "a") == requests(seen, "c") == list(range(5_000))
    assert requests(seen, "b") == [*range(4_000), *range(1_000)]
    back = named(source, "numbered@b")
    assert "gap " in back.detail
    assert "all of 5,000 came" in back.detail
    assert "connected 2 times" in back.detail
    assert "gap" not in named(source, "numbered@a").detail


def test_rows_that_were_announced_and_never_came_are_counted(open_arrow: Open) -> None:
    source = open_arrow(TCP)
    encoder = Encoder(Header(source="s", host="h"), extra_metadata={RUN_KEY: b"r"})
    with connect(source.address) as client:
        client.sendall(encoder.start() + encoder.encode(batch(0), Stamp(0, 100, 1).to_bytes()))
        whole = encoder.encode(batch(60), Stamp(60, 100, 1).to_bytes())
        cut = encoder.encode(batch(40, first=60), Stamp(100, 100, 1).to_bytes())
        client.sendall(whole + cut[:-1])
    until(lambda: any(p.state == "lost" for p in source.health().producers))
    assert gather_rows(source, 61).column("request").to_pylist() == [*range(60), None]
    assert "40 of 100 sent never came" in named(source, "s@h").detail


def test_the_clock_of_a_sender_is_measured(open_arrow: Open) -> None:
    source = open_arrow(TCP)
    sender = Sender(str(source.address), Header(source="s", host="h"), wall_ns=lambda: time.time_ns() + SKEW_NS)
    for n in range(20):
        assert sender.send([batch(10, first=10 * n)])
        time.sleep(0.02)
    gather_rows(source, 200)
    assert sender.send([batch(1)])
    until(lambda: "±" in named(source, "s@h").detail)
    (producer,) = source._crowd._producers
    found = producer.watch.offset.estimate()
    sender.close()
    assert found is not None
    assert found.error_ns is not None
    assert found.error_ns < 100_000_000
    assert abs(found.offset_ns - SKEW_NS) <= found.error_ns
    assert (sender.sent, sender.confirmed, sender.unconfirmed) == (201, 201, 0)


def test_a_sender_resumes_where_the_connection_broke(open_arrow: Open) -> None:
    source = open_arrow(TCP)
    sender = Sender(str(source.address), Header(source="s", host="h"))
    assert sender.send([batch(10)])
    gather_rows(source, 10)
    for connection in list(source._input._connections):  # type: ignore[attr-defined]
        connection.shutdown(socket.SHUT_RDWR)
    until(lambda: named(source, "s@h").state in ("lost", "ended"))
    first = 10
    while not sender.breaks:
        assert sender.send([batch(5, first=first)])
        first += 5
    sender.close()
    until(lambda: named(source, "s@h").state == "ended" and named(source, "s@h").rows == first)
    rows = pa.Table.from_batches(source.poll(1.0))
    assert [r for r in rows.column("request").to_pylist() if r is not None] == list(range(10, first))
    assert f"all of {first} came" in named(source, "s@h").detail
    assert (sender.confirmed, sender.unconfirmed) == (first, 0)


def test_a_new_viewer_gets_what_the_old_one_did_not_confirm(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(f"{tmp_path}/s")
        old.listen()
        sender = Sender(f"unix:{tmp_path}/s", Header(source="s", host="h"))
        sent: list[bool] = []
        thread = threading.Thread(target=lambda: sent.append(sender.send([batch(10)])))
        thread.start()
        connection, _ = old.accept()
        connection.recv(1 << 16)
        connection.sendall(Answer(1, 0).to_bytes())
        thread.join(10)
        assert sent == [True]
        connection.close()
    (tmp_path / "s").unlink()
    source = ArrowSource(parse_address(f"unix:{tmp_path}/s"))
    try:
        while not sender.breaks:
            sender.send([batch(10, first=sender.taken)])
        sender.close()
        until(lambda: named(source, "s@h").state == "ended")
        assert sender.confirmed == sender.taken
        rows = pa.Table.from_batches(source.poll(1.0))
        assert rows.column("request").to_pylist() == list(range(sender.taken))
    finally:
        source.close()


def test_a_hung_host_gives_way_to_itself(open_arrow: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusetui.sources.arrow_conn.HUNG_S", 0.2)
    monkeypatch.setattr("fusetui.sources.arrow_conn.LOST_S", 0.4)
    source = open_arrow(TCP)

    def greet(run: bytes) -> socket.socket:
        encoder = Encoder(Header(source="s", host="h"), extra_metadata={RUN_KEY: run})
        client = connect(source.address)
        client.sendall(encoder.start() + encoder.encode(batch(3), Stamp(3, 3, 1).to_bytes()))
        return client

    with greet(b"one"):
        gather_rows(source, 3)
        until(lambda: named(source, "s@h").state == "hung")
        assert "nothing for" in named(source, "s@h").detail
        until(lambda: named(source, "s@h").state == "lost")
        with greet(b"two"):
            until(lambda: named(source, "s@h").state == "live" and named(source, "s@h").rows == 6)
            (only,) = source.health().producers
            assert "gap" in only.detail


def test_a_wrong_token_is_told_to_the_sender(open_arrow: Open) -> None:
    source = open_arrow(TCP, token="right")
    stops = iter([False] * 3 + [True] * 1000)
    sender = Sender(str(source.address), Header(source="s"), token="wrong", stop=lambda: next(stops))
    assert not sender.send([batch(1)])
    assert "is the token right?" in sender.error
    assert source.health().rows == 0
