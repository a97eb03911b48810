"""Decisions about findings, and the flight recorder: what is kept, and that nothing is overwritten."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from fake_feed import SECOND, FakeFeed, feed_of
from fake_snapshot import MS, T0
from shell_app import make_app
from textual.widgets import Input
from triage_pilot import press, said, settle, text

from fusetui.app.decisions import Decision, Decisions
from fusetui.app.flight import save_flight
from fusetui.app.screens.decide import DecideScreen, status_of
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.open import open_trace
from fusetui.telemetry.schema import SCHEMA

SIZE = (120, 40)


# Decisions


async def test_a_decision_is_added_and_none_is_changed(tmp_path: Path, found: None) -> None:
    app = make_app(feed_of("live"), tmp_path / "bookmarks")
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "7", "o")
        form = app.screen
        assert isinstance(form, DecideScreen)
        assert form.query_one("#owner", Input).value == "sched-team"
        assert form.query_one("#fix", Input).value == "admit a fifth less"
        form.query_one("#status", Input).value = "never"
        await press(pilot, "ctrl+s")
        assert app.screen is form
        assert "open, accepted, fixed or rolled back" in text(app)
        form.query_one("#status", Input).value = "acc"
        await press(pilot, "enter", "enter", "enter", "enter")
        await pilot.press(*"p99<50ms")
        await press(pilot, "enter")
        assert app.screen is app.base_screen
        assert "accepted sche…" in text(app)
        assert "2 open" in text(app)
        await press(pilot, "o")
        app.screen.query_one("#status", Input).value = "rolled back"
        await press(pilot, "ctrl+s")
        assert "2 taken" in text(app)
    path = tmp_path / "decisions" / "test.jsonl"
    taken = [json.loads(line) for line in path.read_text().splitlines()]
    assert [one["status"] for one in taken] == ["accepted", "rolled back"]
    assert [one["guardrail"] for one in taken] == ["p99<50ms"] * 2
    assert {(one["finding"], one["subject"]) for one in taken} == {("queueing/tail", "prefill")}
    again = Decisions("test", tmp_path / "decisions")
    assert [one.status for one in again.of("queueing/tail", "prefill")] == ["accepted", "rolled back"]
    assert again.of("queueing/tail", "decode") == ()


def test_a_line_that_is_no_decision_is_counted_and_left(tmp_path: Path) -> None:
    first = Decision("2026-11-30T03:10:41Z", "a", "", "s", "me", "open", "", "", "")
    decisions = Decisions("k", tmp_path)
    decisions.add(first)
    with decisions.path.open("a") as file:
        file.write('{"finding": "a", "status": "nonsense"}\nnot json')
    again = Decisions("k", tmp_path)
    assert (again.all, again.broken) == ((first,), 2)
    again.add(replace(first, status="fixed"))
    assert [one.status for one in Decisions("k", tmp_path).all] == ["open", "fixed"]
    assert "not json\n" in decisions.path.read_text()


def test_a_status_may_be_begun() -> None:
    assert [status_of(typed) for typed in ("o", "A", "fix", "rolled")] == ["open", "accepted", "fixed", "rolled back"]
    for typed in ("", "x", "openly"):
        with pytest.raises(ValueError, match="open, accepted, fixed or rolled back"):
            status_of(typed)


# The flight recorder


def batch_of(start: int, n: int) -> pa.RecordBatch:
    columns = {"kind": ["execution"] * n, "start_ns": [start + i for i in range(n)]}
    columns |= {"end_ns": [start + i + 10 for i in range(n)], "name": ["gemm"] * n}
    rows = [{**{f.name: None for f in SCHEMA}, **{k: v[i] for k, v in columns.items()}} for i in range(n)]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def rows_of(path: Path) -> int:
    """Rows of a capture, read as everybody reads it."""
    trace = open_trace(path)
    rows = sum(trace.read(number).num_rows for number in range(len(trace.index().rows)))
    trace.close()
    return rows


def test_the_rows_in_memory_become_a_capture_and_nothing_is_overwritten(tmp_path: Path) -> None:
    batches = [batch_of(T0, 30), batch_of(T0 + 5 * SECOND, 20)]
    header = Header(source="simulated", slo_ns=5 * MS)
    saved = [save_flight(lambda: batches, header, [tmp_path]) for _ in range(3)]
    assert len({one.path for one in saved}) == 3
    assert {(one.rows, one.span_ns) for one in saved} == {(50, 5 * SECOND + 19)}
    for one in saved:
        assert one.path.name.startswith("fusetui-2")
        trace = open_trace(one.path)
        assert trace.header.slo_ns == 5 * MS
        assert rows_of(one.path) == 50


def test_a_folder_that_takes_nothing_gives_way_and_the_last_reason_is_told(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("mine")
    saved = save_flight(lambda: [batch_of(T0, 5)], Header(), [in_the_way / "deep", tmp_path / "flights"])
    assert saved.path.parent == tmp_path / "flights"
    with pytest.raises(TelemetryError, match="cannot be written"):
        save_flight(lambda: [batch_of(T0, 5)], Header(), [in_the_way / "deep"])
    with pytest.raises(TelemetryError, match="no rows are kept yet"):
        save_flight(list, Header(), [tmp_path])
    assert in_the_way.read_text() == "mine"


async def test_w_saves_and_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: None) -> None:
    monkeypatch.chdir(tmp_path)
    feed: FakeFeed = feed_of("live")
    app = make_app(feed, tmp_path / "marks")
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "w")
        await app.workers.wait_for_complete()
        await settle(pilot)
        assert said(app) == ["not saved: flight recorder: no rows are kept yet"]
        app.clear_notifications()
        feed.batches = [batch_of(T0, 40)]
        await press(pilot, "w")
        await app.workers.wait_for_complete()
        await settle(pilot)
        assert said(app)[0].startswith(f"40 rows of the last 39.0 ns saved: {tmp_path}/fusetui-2")
    (path,) = tmp_path.glob("*.arrows")
    assert rows_of(path) == 40
