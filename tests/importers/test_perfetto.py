"""Perfetto traces: slices, instants and counters on tracks, with the state that sequences of packets carry along."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from kineto_samples import MEMORY, rows_of, write
from protobuf_samples import content, double, number
from test_kineto_fuzz import mutate
from xplane_samples import profile

from fusetui.importers import perfetto
from fusetui.importers.capture import Capture
from fusetui.importers.open import importers
from fusetui.telemetry.errors import TelemetryError

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
REAL_NS = 1_700_000_000_000_000_000


def packet(*fields: bytes) -> bytes:
    return content(1, b"".join(fields))


def event(kind: int, at: int, *more: bytes, sequence: int = 1, track: int | None = 7) -> bytes:
    where = b"" if track is None else number(11, track)
    return packet(number(8, at), content(11, number(9, kind) + where + b"".join(more)), number(10, sequence))


def name(text: str) -> bytes:
    return content(23, text)


def thread(uuid: int, text: str, pid: int = 3, tid: int = 4) -> bytes:
    return packet(content(60, number(1, uuid) + content(4, number(1, pid) + number(2, tid) + content(5, text))))


def clocks(*known: tuple[int, ...], sequence: int = 1) -> bytes:
    """Clocks as (id, time[, counts on, unit])."""
    parts = [b"".join(number(i, value) for i, value in enumerate(clock, 1)) for clock in known]
    return packet(content(6, b"".join(content(1, part) for part in parts)), number(10, sequence))


def read(tmp_path: Path, *packets: bytes) -> Capture:
    path = write(tmp_path / "t.pftrace", b"".join(packets))
    assert perfetto.sniff(path.read_bytes())
    return perfetto.read(path, MEMORY)


def spans(capture: Capture) -> list[tuple[str, int, int]]:
    rows = [row for row in rows_of(capture) if row["kind"] == "execution"]
    return [(row["name"], row["start_ns"], row["end_ns"]) for row in rows]


def test_slices_instants_and_counters(tmp_path: Path) -> None:
    capture = read(
        tmp_path,
        thread(7, "worker"),
        packet(content(60, number(1, 9) + content(2, "queue depth") + number(5, 7) + content(8, b""))),
        event(BEGIN, 1000, name("outer")),
        event(BEGIN, 1200, name("inner")),
        event(END, 1500),
        event(INSTANT, 1600, name("swap")),
        event(COUNTER, 1700, number(30, -3), track=9),
        event(COUNTER, 1800, double(44, 2.5), track=9),
        event(END, 2000),
    )
    rows = rows_of(capture)
    assert [(r["name"], r["start_ns"], r["end_ns"], r["stream"]) for r in rows if r["kind"] == "execution"] == [
        ("outer", 0, 1000, "worker")
    ]
    assert [(r["name"], r["start_ns"]) for r in rows if r["kind"] == "mark"] == [("swap", 600)]
    readings = [(r["name"], r["start_ns"], r["value"]) for r in rows if r["kind"] == "counter"]
    assert readings == [("queue depth", 700, -3.0), ("queue depth", 800, 2.5)]
    assert "slices inside others of their thread left out: 1" in capture.notes
    assert (capture.header.source, capture.header.clock) == ("perfetto", "trace")


def test_names_and_tracks_that_a_sequence_said_before(tmp_path: Path) -> None:
    def interned(key: int, text: str, sequence: int) -> bytes:
        return packet(content(12, content(2, number(1, key) + content(2, text))), number(10, sequence), number(13, 1))

    defaults = packet(content(59, content(11, number(11, 5))), number(10, 1))
    capture = read(
        tmp_path,
        interned(1, "first", 1), interned(1, "other", 2), defaults,
        event(BEGIN, 10, number(10, 1), track=None), event(END, 20, track=None),
        event(BEGIN, 12, number(10, 1), sequence=2), event(END, 18, sequence=2),
        interned(1, "later", 1),
        event(BEGIN, 30, number(10, 1), track=None), event(END, 35, track=None),
    )  # fmt: skip
    assert spans(capture) == [("other", 2, 8), ("first", 0, 10), ("later", 20, 25)]


def test_clocks_that_count_on_and_the_epoch(tmp_path: Path) -> None:
    capture = read(
        tmp_path,
        clocks((6, 5_000), (1, REAL_NS), (64, 0, 1, 1000)),
        packet(content(59, number(58, 64)), number(10, 1)),
        event(BEGIN, 2, name("a")),
        event(END, 3),
        packet(
            number(8, 9_000), number(58, 6), number(10, 1), content(11, number(9, BEGIN) + number(11, 8) + name("b"))
        ),
        event(END, 1, track=8),
    )
    assert spans(capture) == [("a", REAL_NS + 2_000, REAL_NS + 5_000), ("b", REAL_NS + 4_000, REAL_NS + 6_000)]
    assert capture.header.clock == "epoch"


def test_tracks_have_the_names_of_their_processes(tmp_path: Path) -> None:
    def process(uuid: int, pid: int, text: str) -> bytes:
        return packet(content(60, number(1, uuid) + content(3, number(1, pid) + content(6, text))))

    capture = read(
        tmp_path,
        process(1, 100, "host"),
        process(2, 200, "GPU 1"),
        packet(content(60, number(1, 11) + number(5, 1) + content(2, "main"))),
        packet(content(60, number(1, 12) + number(5, 2) + content(2, "stream 3"))),
        event(BEGIN, 10, name("launch"), track=11),
        event(END, 12, track=11),
        event(BEGIN, 20, name("kernel"), track=12),
        event(END, 29, track=12),
    )
    (row,) = [row for row in rows_of(capture) if row["kind"] == "execution"]
    assert (row["name"], row["device"], row["stream"]) == ("kernel", 1, "GPU 1 / stream 3")
    assert "slices of host threads left out, device tracks are shown: 1" in capture.notes


def test_it_is_found_by_content(tmp_path: Path) -> None:
    head = thread(7, "w") + event(BEGIN, 1, name("a"))
    assert next(i for i in importers() if i.sniff(head)).NAME == perfetto.NAME
    for other in (profile(), b"\n", b"\nThis is a text.\nOf two lines.\n", b"\n\x05hello", b"[]", b""):
        assert not perfetto.sniff(other)


def test_what_is_not_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match=r"without one track event \(compressed packets left out: 1"):
        read(tmp_path, packet(number(8, 3), content(50, b"zzz")), packet(number(8, 4)))
    whole = [event(BEGIN, 1, name("a")), event(END, 5), packet(content(11, number(9, BEGIN)))]
    capture = read(tmp_path, *whole, event(BEGIN, 9, name("cut"))[:-4])
    assert spans(capture) == [("a", 0, 4)]
    assert "events without usable times left out: 1" in capture.notes


@pytest.mark.parametrize("window", [16, 50])
def test_window_size_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int) -> None:
    packets = [thread(7, "w")]
    for i in range(20):
        packets += [event(BEGIN, 10 * i + 1, name(f"s{i}")), event(END, 10 * i + 5)]
    wanted = spans(read(tmp_path, *packets))
    monkeypatch.setattr("fusetui.importers.perfetto._WINDOW", window)
    assert spans(read(tmp_path, *packets)) == wanted
    assert len(wanted) == 20


@pytest.mark.parametrize("block", range(4))
def test_mutations_are_read_or_refused(tmp_path: Path, block: int) -> None:
    packets = [clocks((6, 5_000), (1, REAL_NS), (64, 0, 1, 1000)), thread(7, "w")]
    for i in range(6):
        packets += [event(BEGIN, 10 * i + 1, name(f"s{i}")), event(END, 10 * i + 5), event(COUNTER, 9, number(30, i))]
    read_in = 0
    lines: list[str] = []
    for case in range(block, 200, 4):
        path = write(tmp_path / "fuzz.pftrace", mutate(b"".join(packets), random.Random(case)))
        try:
            rows = rows_of(perfetto.read(path, 1 << 20))
        except TelemetryError as error:
            lines.append(str(error))
        else:
            assert all(row["end_ns"] >= row["start_ns"] for row in rows)
            read_in += 1
    assert read_in + len(lines) == 50
    assert read_in >= 15
    assert not any("\n" in line for line in lines)
