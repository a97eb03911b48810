"""Arrow Flight both ways, over real gRPC: what comes, who is refused, and what bad peers cost."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from arrow_producers import batch, gather_rows, until
from flight_peers import put, served
from host_senders import Recorder, stop

from fusetui.sources.arrow import ArrowSource
from fusetui.sources.flight_address import FlightAddress, parse_flight
from fusetui.sources.registry import open_source
from fusetui.telemetry.errors import TelemetryError

LISTEN = "flight:127.0.0.1:0"
OpenFlight = Callable[..., ArrowSource]


@pytest.fixture
def open_flight() -> Iterator[OpenFlight]:
    opened: list[ArrowSource] = []

    def open_(spec: str, **options: object) -> ArrowSource:
        source = open_source(spec, **options)  # type: ignore[arg-type]
        assert isinstance(source, ArrowSource)
        opened.append(source)
        return source

    yield open_
    for source in opened:
        source.close()


@pytest.fixture
def recorders() -> Iterator[list[Recorder]]:
    started: list[Recorder] = []
    yield started
    stop(started)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Of a foreign server."""
    process, number = served()
    yield number
    process.kill()
    process.communicate()


def port_of(source: ArrowSource) -> int:
    assert isinstance(source.address, FlightAddress)
    return source.address.port


@pytest.mark.parametrize(
    ("text", "location", "name", "again"),
    [
        ("grpc://127.0.0.1:8815/run/1", "grpc://127.0.0.1:8815", "run/1", "grpc://127.0.0.1:8815/run/1"),
        ("grpc+tls://h:1", "grpc+tls://h:1", "", "grpc+tls://h:1"),
        ("grpc+tcp://[::1]:9", "grpc://[::1]:9", "", "grpc://[::1]:9"),
        ("flight:127.0.0.1:0", "grpc://127.0.0.1:0", "", "flight:127.0.0.1:0"),
        ("offer:localhost:5/x", "grpc://localhost:5", "x", "flight:localhost:5"),
    ],
)
def test_addresses(text: str, location: str, name: str, again: str) -> None:
    address = parse_flight(text)
    assert (address.location, address.name, str(address)) == (location, name, again)


@pytest.mark.parametrize(
    "text", ["grpc:127.0.0.1:1", "grpc://", "grpc://h", "grpc://h:70000", "flight:h", "flight:a@b:1"]
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(TelemetryError, match="not a Flight address"):
        parse_flight(text)


def test_wider_than_loopback_needs_leave_and_a_token() -> None:
    with pytest.raises(TelemetryError, match="other machines"):
        open_source("flight:0.0.0.0:0")
    with pytest.raises(TelemetryError, match="other machines"):
        open_source("flight:0.0.0.0:0", allow_remote=True)
    with pytest.raises(TelemetryError, match="another machine"):
        open_source("grpc://192.0.2.1:8815/x")


def test_a_taken_port_is_an_error(open_flight: OpenFlight) -> None:
    first = open_flight(LISTEN)
    with pytest.raises(TelemetryError, match="cannot listen"):
        open_source(f"flight:127.0.0.1:{port_of(first)}")


def test_puts_of_any_program_and_of_those_with_a_wrong_schema(open_flight: OpenFlight) -> None:
    source = open_flight(LISTEN)
    put(port_of(source), [batch(5), batch(7, first=5)], path="job/1")
    assert gather_rows(source, 12).column("request").to_pylist() == list(range(12))
    until(lambda: source.health().producers[0].state == "ended")
    assert [(p.name, p.rows) for p in source.health().producers] == [("job/1", 12)]
    with contextlib.suppress(flight.FlightError):  # if all of it is on its way before it is refused, nobody is told
        put(port_of(source), [pa.record_batch({"x": [1]})] * 50, path="odd")
    until(lambda: any(p.state == "failed" for p in source.health().producers))
    assert "required columns are missing" in source.health().last_error
    put(port_of(source), [batch(1)], path="job/1")
    gather_rows(source, 1)


def test_a_long_batch_comes_in_parts_and_a_giant_value_is_refused(open_flight: OpenFlight) -> None:
    source = open_flight(LISTEN)
    put(port_of(source), [batch(300_000)])
    table = gather_rows(source, 300_000)
    np.testing.assert_array_equal(table.column("request").to_numpy(), np.arange(300_000))
    text = pa.array(["x" * (80 << 20)])
    columns = {**{n: pa.array([1]) for n in ("start_ns", "end_ns")}, "kind": pa.array(["mark"]), "name": text}
    with pytest.raises(flight.FlightError):
        put(port_of(source), [pa.record_batch(columns)], path="giant")
    until(lambda: any(p.state == "failed" for p in source.health().producers))
    assert "is over the limit" in source.health().last_error


def test_tokens(open_flight: OpenFlight) -> None:
    source = open_flight(LISTEN, token="right")
    for token in (None, "wrong", "right "):
        with pytest.raises(flight.FlightUnauthenticatedError, match="token is missing or wrong"):
            put(port_of(source), [batch(1)], token=token)
    put(port_of(source), [batch(2)], token="right")
    assert gather_rows(source, 2).num_rows == 2
    until(lambda: "3 refused" in source.health().detail)


def test_a_client_that_says_nothing_does_not_hold_the_viewer_up(open_flight: OpenFlight) -> None:
    source = open_flight(LISTEN)
    code = (
        "import pyarrow as pa, pyarrow.flight as f, time\n"
        f"c = f.connect('grpc://127.0.0.1:{port_of(source)}')\n"
        "w, r = c.do_put(f.FlightDescriptor.for_path('quiet'), pa.schema([('x', pa.int8())]))\n"
        "print('put', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        client.stdout.readline()
        put(port_of(source), [batch(1)])
        gather_rows(source, 1)
        began = time.monotonic()
        source.close()
        assert time.monotonic() - began < 5.0
        client.kill()


def test_the_flight_process_starts_again(open_flight: OpenFlight) -> None:
    source = open_flight(LISTEN)
    at = port_of(source)
    door = source._input._door  # type: ignore[attr-defined]
    door._process.kill()
    until(lambda: "ended by SIGKILL" in source.health().last_error)
    until(lambda: not door.trouble, 20.0)
    assert port_of(source) == at
    put(at, [batch(3)])
    assert gather_rows(source, 3).num_rows == 3


def test_a_foreign_stream_is_asked_for_and_ends(open_flight: OpenFlight, port: int) -> None:
    source = open_flight(f"grpc://127.0.0.1:{port}/good")
    assert gather_rows(source, 12).column("request").to_pylist() == list(range(12))
    until(lambda: source.health().state == "ended")
    assert source.health().producers[0].name == "good"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("wrong", "required columns are missing"),
        ("giant", "a message over 66 MiB"),
        ("hang", "nothing has come yet"),
        ("half", "fell over"),
    ],
)
def test_bad_servers(open_flight: OpenFlight, port: int, name: str, said: str) -> None:
    source = open_flight(f"grpc://127.0.0.1:{port}/{name}")
    seen: set[str] = set()

    def told() -> bool:
        source.poll(0.0)
        health = source.health()
        seen.update((health.last_error, *(p.detail for p in health.producers)))
        return any(said in text for text in seen)

    until(told, 20.0)
    assert source.health().state in ("reconnecting", "waiting", "failed", "ended", "live")
    began = time.monotonic()
    source.close()
    assert time.monotonic() - began < 5.0


def test_nobody_there_is_said_and_is_not_the_end(open_flight: OpenFlight) -> None:
    with subprocess.Popen(["true"]):
        source = open_flight("grpc://127.0.0.1:1/x")
    until(lambda: "nobody answers there" in source.health().last_error)
    assert source.health().state == "reconnecting"


def test_a_recorder_puts_into_a_viewer(open_flight: OpenFlight, recorders: list[Recorder]) -> None:
    source = open_flight(LISTEN, token="t")
    recorder = Recorder("a", f"grpc://127.0.0.1:{port_of(source)}/a", token="t")
    recorders.append(recorder)
    recorder.give(2_000)
    recorder.give(2_000)
    assert gather_rows(source, 4_000).column("request").to_pylist() == list(range(4_000))
    assert "4,000 confirmed" in recorder.finish()
    until(lambda: source.health().producers[0].state == "ended")
    (producer,) = source.health().producers
    assert (producer.name, producer.rows) == ("numbered@a", 4_000)
    assert "all of 4,000 came" in producer.detail
    assert "±" in producer.detail


def test_a_recorder_killed_behind_flight_is_lost(open_flight: OpenFlight, recorders: list[Recorder]) -> None:
    source = open_flight(LISTEN)
    recorder = Recorder("a", f"grpc://127.0.0.1:{port_of(source)}/a")
    recorders.append(recorder)
    recorder.give(1_000)
    gather_rows(source, 1_000)
    recorder.kill()
    until(lambda: source.health().producers[0].state == "lost")
    assert "all of 1,000 came" in source.health().producers[0].detail


def test_a_viewer_asks_a_recorder(open_flight: OpenFlight, recorders: list[Recorder], free_port: int) -> None:
    recorder = Recorder("a", f"offer:127.0.0.1:{free_port}/run")
    recorders.append(recorder)
    recorder.give(1_000)
    source = open_flight(f"grpc://127.0.0.1:{free_port}/run")
    gather_rows(source, 1_000)
    recorder.give(500)
    assert "1,500 confirmed" in recorder.finish()
    until(lambda: source.health().producers[0].state == "ended")
    assert source.health().producers[0].rows == 1_500


def test_any_flight_client_gets_the_rows(recorders: list[Recorder], free_port: int) -> None:
    recorder = Recorder("a", f"offer:127.0.0.1:{free_port}/run")
    recorders.append(recorder)
    recorder.give(1_000)
    rows: list[int] = []

    def asked() -> bool:
        try:
            with flight.connect(f"grpc://127.0.0.1:{free_port}") as client:
                reader = client.do_get(flight.Ticket(b"run"))
                while len(rows) < 1_000:
                    rows.extend(reader.read_chunk().data.column("request").to_pylist())
                reader.cancel()
        except flight.FlightUnavailableError:
            return False
        return True

    until(asked, 20.0)
    assert rows == list(range(1_000))
