"""Broken Kineto files as profilers have written them: what can be read is read, every loss is counted."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest
from kineto_samples import BASE, MEMORY, executions, kernel, launch, read, text_of, write

from fusetui.importers import kineto
from fusetui.telemetry.errors import TelemetryError

EVENTS = [launch("cudaLaunchKernel", 10, 4, 1), kernel("first", 20, 5, 1), kernel("second", 30.125, 5, 2)]
TEXT = text_of(EVENTS, baseTimeNanoseconds=BASE)


def names(path: Path, content: str | bytes) -> tuple[list[str], list[str]]:
    capture = read(path, content)
    return [row["name"] for row in executions(capture)], capture.notes


@pytest.mark.parametrize("literal", ["inf", "-inf", "nan", "NaN", "Infinity", "-Infinity"])
def test_literals_that_are_not_json(tmp_path: Path, literal: str) -> None:
    bad = TEXT.replace('"grid": [1, 1, 1]', f'"memory bandwidth (GB/s)": {literal}', 1)
    assert names(tmp_path, bad)[0] == ["first", "second"]


def test_time_that_is_no_number_drops_the_event(tmp_path: Path) -> None:
    found, notes = names(tmp_path, TEXT.replace('"ts": 30.125', '"ts": NaN'))
    assert found == ["first"]
    assert "events without usable times left out: 1" in notes


def test_misencoded_names(tmp_path: Path) -> None:
    found, _ = names(tmp_path, TEXT.encode().replace(b"first", b"fir\xffst"))
    assert found == ["fir\N{REPLACEMENT CHARACTER}st", "second"]


def test_names_in_utf8_survive_the_tolerant_way(tmp_path: Path) -> None:
    found, _ = names(tmp_path, TEXT.replace("first", "für").replace('"grid": [1, 1, 1]', '"x": inf'))
    assert found == ["für", "second"]


def test_unescaped_quotes_skip_one_event(tmp_path: Path) -> None:
    found, notes = names(tmp_path, TEXT.replace("first", 'f("a")'))
    assert found == ["second"]
    assert "unreadable events skipped: 1" in notes


def test_lost_quote_before_a_key(tmp_path: Path) -> None:
    found, notes = names(tmp_path, TEXT.replace('"tid": 7', 'tid": 7', 1))
    assert found == ["second"]
    assert "unreadable events skipped: 1" in notes


def test_raw_control_characters(tmp_path: Path) -> None:
    found, _ = names(tmp_path, TEXT.replace("first", "fi\x01r\nst"))
    assert found == ["fi\N{MIDDLE DOT}r st", "second"]


def test_unescaped_backslashes(tmp_path: Path) -> None:
    found, notes = names(tmp_path, TEXT.replace("first", "C:\\Users\\python"))
    assert found == ["C:\\Users\\python", "second"]
    assert "events that are not proper JSON, mended: 1" in notes


def test_closing_bracket_in_a_later_text(tmp_path: Path) -> None:
    assert "a].json" in TEXT
    assert names(tmp_path, TEXT) == (
        ["first", "second"],
        ["device work without its launch call in the capture: 1 of 2"],
    )


def test_trailing_comma_after_the_last_event(tmp_path: Path) -> None:
    assert names(tmp_path, TEXT.replace("\n  ],", ",\n  ],"))[0] == ["first", "second"]


def test_missing_closing_bracket(tmp_path: Path) -> None:
    found, notes = names(tmp_path, TEXT[: TEXT.index("\n  ],")])
    assert found == ["first", "second"]
    assert any("the closing ] of the events is missing" in note for note in notes)


def test_file_cut_in_the_middle_of_an_event(tmp_path: Path) -> None:
    found, notes = names(tmp_path, TEXT[: TEXT.index('"second"') + 3])
    assert found == ["first"]
    assert any("ends in the middle of an event" in note for note in notes)


def test_gzip_cut_off(tmp_path: Path) -> None:
    noise = random.Random(1)
    events = [kernel(f"k{noise.getrandbits(400):x}", i * 10, 5, i + 1) for i in range(4000)]
    packed = gzip.compress(text_of(events).encode())
    found, notes = names(tmp_path, packed[: len(packed) // 2])
    assert 1000 < len(found) < 3000
    assert any("gzip data is cut off" in note for note in notes)


def test_gzip_damaged_in_the_middle(tmp_path: Path) -> None:
    noise = random.Random(2)
    events = [kernel(f"k{noise.getrandbits(400):x}", i * 10, 5, i + 1) for i in range(4000)]
    packed = bytearray(gzip.compress(text_of(events).encode()))
    packed[len(packed) // 2 : len(packed) // 2 + 64] = b"\xff" * 64
    found, notes = names(tmp_path, bytes(packed))
    assert 1000 < len(found) < 4000
    assert notes


def test_gzip_bomb_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "bomb.json.gz", gzip.compress(TEXT[:-20].encode() + b" " * (80 << 20)))
    with pytest.raises(TelemetryError, match="gzip expands more than 250-fold"):
        kineto.read(path, MEMORY)


def test_several_gzip_members(tmp_path: Path) -> None:
    half = len(TEXT) // 2
    packed = gzip.compress(TEXT[:half].encode()) + gzip.compress(TEXT[half:].encode())
    assert names(tmp_path, packed)[0] == ["first", "second"]


def test_times_as_text(tmp_path: Path) -> None:
    events = [kernel("k", "1700000000000123.456", "0.5", 1), kernel("padded", " 1700000000000124.5 ", "1e0", 2)]
    found = executions(read(tmp_path, text_of(events)))
    assert [(row["start_ns"], row["end_ns"]) for row in found] == [
        (1700000000000123456, 1700000000000123956),
        (1700000000000124500, 1700000000000125500),
    ]


def test_time_zero_and_duration_zero(tmp_path: Path) -> None:
    found, notes = names(tmp_path, text_of([*EVENTS, kernel("nothing", 0, 0, 9)]))
    assert found == ["first", "second"]
    assert "events with time 0 and duration 0 left out: 1" in notes


def test_duration_zero_alone_is_kept(tmp_path: Path) -> None:
    assert names(tmp_path, text_of([*EVENTS, kernel("tiny", 40, 0, 9)]))[0] == ["first", "second", "tiny"]


@pytest.mark.parametrize("duration", ["-1", "1e300", '"x"', "null", "[]", "1e999"])
def test_impossible_durations_drop_the_event(tmp_path: Path, duration: str) -> None:
    found, notes = names(tmp_path, TEXT.replace('"ts": 30.125, "dur": 5', f'"ts": 30.125, "dur": {duration}'))
    assert found == ["first"]
    assert "events without usable times left out: 1" in notes


def test_nested_event_arrays(tmp_path: Path) -> None:
    inner = json.dumps({"traceEvents": EVENTS[:2]})
    text = '{"schemaVersion": 1, "traceEvents": [' + inner + ", " + json.dumps(EVENTS[2]) + "]}"
    assert names(tmp_path, text)[0] == ["first", "second"]
    text = '{"schemaVersion": 1, "traceEvents": {"traceEvents": ' + json.dumps(EVENTS) + "}}"
    assert names(tmp_path, text)[0] == ["first", "second"]


def test_integers_beyond_64_bits(tmp_path: Path) -> None:
    big = (1 << 63) + 12345
    events = [launch("cudaLaunchKernel", 10, 4, big), kernel("big", 20, 5, big, **{"Comms Id": 1 << 70})]
    (row,) = executions(read(tmp_path, text_of(events)))
    assert row["launch_ns"] == 4000


def test_correlation_zero_is_none(tmp_path: Path) -> None:
    (row,) = executions(read(tmp_path, text_of([launch("cudaLaunchKernel", 10, 4, 0), kernel("k", 20, 5, 0)])))
    assert "enqueue_ns" not in row


def test_odd_types_do_not_cost_the_window(tmp_path: Path) -> None:
    odd = [
        {"ph": "X", "cat": 5, "name": ["a"], "ts": 1, "dur": 1},
        {"ph": "X", "cat": "kernel", "name": 17, "pid": {}, "tid": [1], "ts": 40, "dur": 2, "args": "none"},
        {"ph": "X", "cat": "kernel", "name": "k", "ts": 50, "dur": 2, "args": {"stream": {}, "device": 1 << 40}},
        "text", 3, None, [1],
    ]  # fmt: skip
    document = {"schemaVersion": 1, "traceEvents": [*EVENTS, *odd]}
    found, notes = names(tmp_path, json.dumps(document))
    assert found == ["first", "second", "17", "k"]
    assert "unreadable events skipped: 4" in notes


def test_overlaps_on_a_stream_are_kept_and_counted(tmp_path: Path) -> None:
    found, notes = names(tmp_path, text_of([kernel("long", 10, 50, 1), kernel("inside", 20, 5, 2)]))
    assert found == ["inside", "long"]
    assert any("overlaps its predecessor on the same stream: 1" in note for note in notes)


def test_one_enormous_name_is_cut_and_costs_no_other(tmp_path: Path) -> None:
    rest = [f"k{i}" for i in range(40)]
    huge = kernel("x" * (5 << 20), 40, 5, 3)
    found, _ = names(tmp_path, text_of([*EVENTS, huge, *[kernel(k, 50 + i * 10, 5, 4) for i, k in enumerate(rest)]]))
    assert found[:2] + found[3:] == ["first", "second", *rest]
    assert found[2] == "x" * 4095 + "…"


def test_event_beyond_all_bounds_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusetui.importers.kineto_stream.MAX_EVENT", 1 << 20)
    rest = [f"k{i}" for i in range(40)]
    huge = kernel("x" * (9 << 20), 40, 5, 3)
    found, notes = names(
        tmp_path, text_of([*EVENTS, huge, *[kernel(k, 50 + i * 10, 5, 4) for i, k in enumerate(rest)]])
    )
    assert found[-40:] == rest
    assert any("unreadable events skipped" in note for note in notes)


def test_too_many_different_names_stay_within_memory(tmp_path: Path) -> None:
    events = [kernel(f"{i:06d}" * 300, i * 10, 5, i + 1) for i in range(1500)]
    capture = kineto.read(write(tmp_path / "a.json", text_of(events)), 4 << 20)
    found = executions(capture)
    assert len(found) == 1500
    assert found[-1]["name"] == "…"
    assert any("too many different texts" in note for note in capture.notes)


def test_tables_beyond_memory_spill_and_read_the_same(tmp_path: Path) -> None:
    events = [launch("cudaLaunchKernel", i * 10, 1, i + 1) for i in range(3000)]
    events += [kernel("k", i * 10 + 5, 2, i + 1) for i in range(3000)]
    path = write(tmp_path / "a.json", text_of(events, baseTimeNanoseconds=BASE))
    assert executions(kineto.read(path, 100_000)) == executions(kineto.read(path, MEMORY))


@pytest.mark.parametrize(
    "rubbish",
    [
        '"' * 200_000,
        '},{"ph":' * 60_000,
        "[" * 200_000,
        '{"a":' * 100_000,
        "," * 200_000,
        "[1]," * 100_000,
        "\\" * 200_000,
    ],
    ids=["quotes", "boundaries", "arrays", "objects", "commas", "values", "backslashes"],
)
def test_rubbish_after_good_events_ends_the_reading(tmp_path: Path, rubbish: str) -> None:
    found, notes = names(tmp_path, TEXT[: TEXT.index("\n  ],")] + "," + rubbish)
    assert found == ["first", "second"]
    assert any(word in " ".join(notes) for word in ("stopped after", "in the middle of an event", "] of the events"))


@pytest.mark.parametrize("window", [64, 333, 2000])
def test_window_size_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int) -> None:
    events = EVENTS + [kernel(f"k{i}", 50 + i * 10, 5, i + 4) for i in range(60)]
    text = text_of(events, baseTimeNanoseconds=BASE).replace('"k7"', '"k"7"').replace('"k9"', '"k\x01"')
    wanted = names(tmp_path, text)
    monkeypatch.setattr("fusetui.importers.kineto_stream.WINDOW", window)
    assert names(tmp_path, text) == wanted
    assert "unreadable events skipped: 1" in wanted[1]
