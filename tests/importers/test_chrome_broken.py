"""Broken Chrome JSON as tools have written it: what can be read is read, every loss is counted."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
from kineto_samples import MEMORY, executions, rows_of, write
from test_kineto_fuzz import mutate

from fusetui.importers import chrome
from fusetui.importers.open import open_capture
from fusetui.telemetry.errors import TelemetryError


def event(name: str, ts: Any, dur: Any = 5) -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": 1, "tid": 7, "ts": ts, "dur": dur, "args": {"grid": [1, 1]}}


EVENTS = [event("first", 20), event("second", 30.125), event("third", 40)]
TEXT = "[\n" + ",\n".join(map(json.dumps, EVENTS)) + "\n]"
OBJECT = '{"traceEvents": ' + TEXT + ', "traceName": "/tmp/a].json"}'


def names(tmp_path: Path, content: str | bytes) -> tuple[list[str], list[str]]:
    capture = chrome.read(write(tmp_path / "t.json", content), MEMORY)
    return [row["name"] for row in executions(capture)], capture.notes


@pytest.mark.parametrize("literal", ["inf", "-inf", "nan", "NaN", "Infinity", "-Infinity"])
def test_literals_that_are_not_json(tmp_path: Path, literal: str) -> None:
    assert names(tmp_path, TEXT.replace("[1, 1]", literal, 1))[0] == ["first", "second", "third"]


def test_a_time_that_is_no_number_drops_the_event(tmp_path: Path) -> None:
    found, notes = names(tmp_path, TEXT.replace("30.125", "NaN"))
    assert found == ["first", "third"]
    assert "events left out, without usable times: 1" in notes


def test_misencoded_names(tmp_path: Path) -> None:
    found, _ = names(tmp_path, TEXT.encode().replace(b"first", b"fir\xffst"))
    assert found == ["fir\N{REPLACEMENT CHARACTER}st", "second", "third"]


@pytest.mark.parametrize("name", ["für", "日本", "grün\N{EM DASH}日"])
@pytest.mark.parametrize("escaped", [True, False])
@pytest.mark.parametrize("mend", [True, False])
def test_names_beyond_ascii_however_written(tmp_path: Path, name: str, escaped: bool, mend: bool) -> None:
    text = "[" + json.dumps(event(name, 20), ensure_ascii=escaped) + "," + json.dumps(EVENTS[1]) + "]"
    text = text.replace('"grid": [1, 1]', '"path": "C:\\Users"', 1) if mend else text
    assert names(tmp_path, text)[0] == [name, "second"]


def test_unescaped_quotes_cost_one_event(tmp_path: Path) -> None:
    found, notes = names(tmp_path, TEXT.replace("second", 'f("a")'))
    assert found == ["first", "third"]
    assert "unreadable events skipped: 1" in notes


def test_a_lost_quote_costs_one_event(tmp_path: Path) -> None:
    found, notes = names(tmp_path, TEXT.replace('"tid"', 'tid"', 1))
    assert found == ["second", "third"]
    assert "unreadable events skipped: 1" in notes


def test_raw_control_characters(tmp_path: Path) -> None:
    assert names(tmp_path, TEXT.replace("first", "fi\x01r\nst"))[0][0] == "fi\N{MIDDLE DOT}r st"


def test_single_backslashes(tmp_path: Path) -> None:
    found, notes = names(tmp_path, TEXT.replace("first", "C:\\Users\\python"))
    assert found == ["C:\\Users\\python", "second", "third"]
    assert "events that are not proper JSON, mended: 1" in notes


@pytest.mark.parametrize("text", [TEXT, OBJECT])
def test_a_trailing_comma(tmp_path: Path, text: str) -> None:
    assert names(tmp_path, text.replace("\n]", ",\n]"))[0] == ["first", "second", "third"]


def test_a_bracket_in_a_later_text(tmp_path: Path) -> None:
    assert names(tmp_path, OBJECT) == (
        ["first", "second", "third"],
        ["no enqueue times in this format: queue wait is not measured"],
    )


@pytest.mark.parametrize("text", [TEXT, OBJECT])
def test_the_closing_bracket_may_be_missing(tmp_path: Path, text: str) -> None:
    for ending in ("", ",", ",\n"):
        found, notes = names(tmp_path, text[: text.index("\n]")] + ending)
        assert found == ["first", "second", "third"]
        assert "the closing ] of the events is missing; what came before was read" in notes


def test_a_file_cut_in_an_event(tmp_path: Path) -> None:
    found, notes = names(tmp_path, TEXT[: TEXT.index("third") + 2])
    assert found == ["first", "second"]
    assert "the file ends in the middle of an event; what came before was read" in notes


def test_gzip_cut_off(tmp_path: Path) -> None:
    noise = random.Random(3)
    text = json.dumps([event(f"k{noise.getrandbits(400):x}", 1 + i * 10) for i in range(4000)])
    packed = gzip.compress(text.encode())
    found, notes = names(tmp_path, packed[: len(packed) // 2])
    assert 1000 < len(found) < 3000
    assert any("gzip data is cut off" in note for note in notes)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match="the file is empty"):
        open_capture([write(tmp_path / "t.json", "")], memory_bytes=MEMORY)


def test_times_as_texts_keep_their_nanoseconds(tmp_path: Path) -> None:
    text = json.dumps([event("a", "1700000000000123.456", "0.5"), event("b", " 1700000000000124.5 ", "1e0")])
    rows = executions(chrome.read(write(tmp_path / "t.json", text), MEMORY))
    assert [(row["start_ns"], row["end_ns"]) for row in rows] == [
        (1700000000000123456, 1700000000000123956),
        (1700000000000124500, 1700000000000125500),
    ]


def test_event_arrays_in_event_arrays(tmp_path: Path) -> None:
    inner = json.dumps({"traceEvents": EVENTS[:2]})
    assert names(tmp_path, '{"traceEvents": [' + inner + ", " + json.dumps(EVENTS[2]) + "]}")[0] == [
        "first", "second", "third",
    ]  # fmt: skip
    assert names(tmp_path, '{"traceEvents": {"traceEvents": ' + json.dumps(EVENTS) + "}}")[0] == [
        "first", "second", "third",
    ]  # fmt: skip
    assert names(tmp_path, json.dumps([EVENTS[:2], EVENTS[2]]))[0] == ["first", "second", "third"]


def test_time_zero_and_duration_zero(tmp_path: Path) -> None:
    found, notes = names(tmp_path, json.dumps([*EVENTS, event("nothing", 0, 0), event("tiny", 50, 0)]))
    assert found == ["first", "second", "third", "tiny"]
    assert "events left out, with time 0 and duration 0: 1" in notes


def test_integers_beyond_64_bits(tmp_path: Path) -> None:
    events = [*EVENTS, {**event("big", 60), "tid": (1 << 63) + 5, "args": {"Comms Id": 1 << 70}}, event("far", 1 << 64)]
    found, notes = names(tmp_path, json.dumps(events))
    assert found == ["first", "second", "third", "big"]
    assert "events left out, without usable times: 1" in notes


def test_odd_types_do_not_cost_the_window(tmp_path: Path) -> None:
    odd = [
        {"ph": 5, "name": ["a"], "ts": 1},
        {"ph": "X", "name": 17, "pid": {}, "tid": [1], "ts": 70, "dur": 2, "args": "none"},
        {"ph": "C", "name": None, "ts": 3, "args": [1]},
        {"ph": "M", "name": "thread_name", "args": "none"},
        "text", 3, None, [1],
    ]  # fmt: skip
    found, notes = names(tmp_path, json.dumps([*EVENTS, *odd]))
    assert found == ["first", "second", "third", "17"]
    assert "unreadable events skipped: 4" in notes


@pytest.mark.parametrize("rubbish", ['"' * 200_000, '},{"ph":' * 60_000, "[" * 200_000, '{"a":' * 100_000])
def test_rubbish_after_good_events_ends_the_reading(tmp_path: Path, rubbish: str) -> None:
    found, notes = names(tmp_path, TEXT[: TEXT.index("\n]")] + "," + rubbish)
    assert found == ["first", "second", "third"]
    assert any(word in " ".join(notes) for word in ("stopped after", "in the middle of an event", "] of the events"))


@pytest.mark.parametrize("block", range(4))
def test_mutations_are_read_or_refused(tmp_path: Path, block: int) -> None:
    mixed = [*EVENTS, {"ph": "C", "name": "c", "pid": 1, "ts": 9, "args": {"a": 1}}]
    mixed += [{"ph": phase, "name": "e", "pid": 1, "tid": 2, "ts": t} for t, phase in enumerate("BEBBEEi", 10)]
    data, read = json.dumps({"traceEvents": mixed}).encode(), 0
    lines: list[str] = []
    for case in range(block, 200, 4):
        path = write(tmp_path / "fuzz.json", mutate(data, random.Random(case)))
        try:
            rows = rows_of(chrome.read(path, 1 << 20))
        except TelemetryError as error:
            lines.append(str(error))
        else:
            assert all(row["end_ns"] >= row["start_ns"] for row in rows)
            read += 1
    assert read + len(lines) == 50
    assert read >= 25
    assert not any("\n" in line for line in lines)
