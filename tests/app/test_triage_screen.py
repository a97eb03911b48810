"""Findings on line two, on the overview and on their own screen; proofs, walks, decisions, the flight recorder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_feed import SECOND, feed_of
from fake_snapshot import MS, T0, fake_snapshot
from fake_triage import fake_triage, findings_of, only, quiet_triage
from shell_app import make_app
from triage_pilot import lines, press, settle, text

from fusetui.app.panes.evidence import EvidencePane
from fusetui.app.panes.findings import FindingsPane
from fusetui.app.panes.launch import LaunchPane
from fusetui.app.panes.queue_heat import QueueHeatPane
from fusetui.app.panes.tail_waterfall import TailWaterfallPane
from fusetui.app.screens.help import HelpScreen
from fusetui.app.triage_keys import pane_of
from fusetui.app.verdict import verdict
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.triage.finding import Triage
from fusetui.triage.owners import OwnerRule, Owners
from fusetui.triage.rules import all_rules

SIZE = (120, 40)


# Line two


def test_the_verdict_names_the_top_finding_its_stage_and_its_share() -> None:
    snapshot = fake_snapshot(1)
    says = verdict(snapshot, fake_triage(snapshot))
    assert says.severity == "breach"
    assert says.text.startswith("p99 ")
    assert says.text.endswith(": queueing on prefill (41 % of the tail), runtime queue")
    assert says.finding is not None
    assert says.finding.id == "queueing/tail"
    assert says.first_stage == 1


def test_without_an_objective_the_sentence_comes_first_with_stage_and_since() -> None:
    snapshot = fake_snapshot(1, header=Header())
    triage = fake_triage(snapshot)
    warned = replace(findings_of(snapshot)[0], severity="warn")
    says = verdict(snapshot, replace(triage, findings=(warned,)))
    assert says.severity == "warn"
    since = "(runtime queue, since 03:10:37Z); requests p99 "
    assert says.text.startswith(f"queueing on stream prefill: 41 % of the tail is queue wait {since}")
    contradiction = verdict(snapshot, only(triage, "contradiction/launch", "host/calls"))
    assert contradiction.severity == "warn"
    assert contradiction.text.startswith("launches fell by 38 % but p95 rose by 22 %; requests p99 ")


def test_what_is_only_good_to_know_or_not_judged_leaves_the_wording_as_it_was() -> None:
    snapshot = fake_snapshot(1)
    plain = verdict(snapshot)
    assert verdict(snapshot, only(fake_triage(snapshot), "host/calls")) == plain
    assert verdict(snapshot, replace(fake_triage(snapshot), judged=False)) == plain
    assert verdict(snapshot, Triage()) == plain
    lost = replace(snapshot, health=replace(snapshot.health, state="lost", last_error="closed"))
    assert verdict(lost, fake_triage(lost)).text.startswith("source lost: closed")


async def test_line_two_says_which_key_proves_it(tmp_path: Path, found: None) -> None:
    app = make_app(feed_of("ended"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert "queueing on prefill (41 % of the tail), runtime queue" in lines(app)[1]
        assert lines(app)[1].endswith("Enter: proof")
        assert isinstance(app.focused, FindingsPane)
        await press(pilot, "2")
        assert lines(app)[1].endswith("p: proof")


# The overview and the triage screen


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_the_overview_lists_the_findings(tmp_path: Path, found: None, size: tuple[int, int]) -> None:
    app = make_app(feed_of("live"), tmp_path)
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        shown = text(app)
        assert "3 open" in shown
        rows = [at for at, line in enumerate(lines(app)) if "✗ queueing" in line or "▲ memory burst" in line]
        assert len(rows) == 2
        # The owner is beside the sentence, or below the class where there is a line for it.
        assert "sched-team" in "\n".join(lines(app)[rows[0] : rows[1]])
        assert "compiler-team" in "\n".join(lines(app)[rows[1] : rows[1] + 2])
        assert "prefill: 41 %" in lines(app)[rows[0]]


async def test_the_evidence_is_of_the_finding_under_the_cursor(tmp_path: Path, found: None) -> None:
    app = make_app(feed_of("live"), tmp_path)
    async with app.run_test(size=(160, 60)) as pilot:
        await press(pilot, "7")
        shown = text(app)
        for piece in (
            "41.2 ms  queue wait p99  [enqueue_ns, start_ns]", "41.0 %  share of the slowest's latency",
            "37  depth, mean", "1.40  rate over calm", "611 W  power", "—  absent",
            "leaves open why the queue is there", "next        see which stream waits",
            "fix         admit a fifth less",
        ):  # fmt: skip
            assert piece in shown, piece
        evidence = pane_of(app.base_screen, "evidence") if app.base_screen else None
        assert isinstance(evidence, EvidencePane)
        await pilot.press("down", "down")
        assert evidence.finding() is not None
        assert evidence.finding().id == "contradiction/launch"  # type: ignore[union-attr]
        assert "▲ launches fell by 38 %" in evidence.text() or "launches fell" in evidence.text()
        await press(pilot, "y")
        assert app.clipboard.startswith("### launches fell by 38 % but p95 rose by 22 %\n")
        assert "(against launch/exposed)" in text(app)


async def test_the_matrix_tells_whether_there_is_evidence_of_each_kind(tmp_path: Path, found: None) -> None:
    app = make_app(feed_of("live"), tmp_path)
    async with app.run_test(size=(200, 60)) as pilot:
        await press(pilot, "7")
        rows = {kind: line for line in lines(app) for kind in ("occupancy and timeline", "cache, SRAM") if kind in line}
        assert "✓ 100 %, have occupancy" in rows["occupancy and timeline"]
        assert "▲ 42.0 %, have cache" in rows["cache, SRAM"]
        assert "tells cache, SRAM and bandwidth" in rows["cache, SRAM"]
        assert "— have counter-profile" in text(app)


async def test_a_finding_is_copied_as_markdown_with_its_rows(tmp_path: Path, found: None) -> None:
    app = make_app(feed_of("live"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "7", "y")
        assert (
            app.clipboard.split("\n")[2] == "breach · queueing · runtime queue · owner sched-team · 41.0 % of the tail"
        )
        assert "| queue wait p99 | 41.2 ms | enqueue\\_ns, start\\_ns |" in app.clipboard
        assert '- Rows: `03:10:37.7Z to 03:10:40.7Z, stream = "prefill"`' in app.clipboard


async def test_quiet_says_what_was_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusetui.triage.judge.triage", quiet_triage)
    app = make_app(feed_of("live"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "7")
        said = " ".join(text(app).replace("│", " ").split())
        assert f"Nothing crossed its threshold: {len(all_rules())} rules looked at 12.4k requests in 10.0 s." in said
        await press(pilot, "enter")
        assert app.current_mode == "triage"
        assert not app.detours


async def test_too_little_to_judge_is_not_called_quiet(tmp_path: Path) -> None:
    app = make_app(feed_of("no data"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "7")
        assert "Not judged: nothing ran in this window." in text(app)


async def test_rules_that_fail_say_so_and_the_app_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> Triage:
        raise KeyError("wheel")

    monkeypatch.setattr("fusetui.triage.judge.triage", broken)
    app = make_app(feed_of("live"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "7")
        assert "the rules failed: KeyError: 'wheel'" in text(app)
        await press(pilot, "1")
        assert app.current_mode == "overview"


async def test_the_rules_are_asked_once_for_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counted(snapshot: Any, *_: object, **__: object) -> Triage:
        asked.append(snapshot.version)
        return quiet_triage(snapshot)

    monkeypatch.setattr("fusetui.triage.judge.triage", counted)
    feed = feed_of("live")
    app = make_app(feed, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "7", "1", "2")
        assert asked == [1]
        feed.base = fake_snapshot(2)
        await settle(pilot)
        assert asked == [1, 2]


async def test_owners_come_from_the_file_and_a_broken_one_is_told(tmp_path: Path) -> None:
    def refuse() -> Owners:
        raise TelemetryError("owners.toml", "not TOML")

    app = make_app(feed_of("live"), tmp_path, owners=lambda: Owners((OwnerRule("queue-folk", "queueing"),)))
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "7")
        assert "queue-folk" in text(app)
    app = make_app(feed_of("live"), tmp_path, owners=refuse)
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "7")
        assert "owners.toml: not TOML" in text(app)


# Proofs and walks


async def test_enter_goes_to_the_rows_that_prove_it_and_esc_comes_back(tmp_path: Path, found: None) -> None:
    feed = feed_of("playing")
    assert feed.source.transport is not None
    app = make_app(feed, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "7", "enter")
        assert app.current_mode == "queue"
        assert isinstance(app.focused, QueueHeatPane)
        assert feed.filter_text == 'stream = "prefill"'
        assert feed.window_ns == 3 * SECOND
        state = feed.source.transport.state()
        assert (state.position_ns, state.playing) == (T0 + 500 * MS - SECOND, False)
        assert lines(app)[1].startswith(" ✗ proof of queueing: see which stream waits")
        assert lines(app)[1].endswith("esc: back")
        await press(pilot, "escape")
        assert app.current_mode == "triage"
        assert (feed.filter_text, feed.window_ns) == ("", 10 * SECOND)
        state = feed.source.transport.state()
        assert (state.position_ns, state.playing) == (T0, True)
        assert app.detours == []


async def test_p_proves_what_line_two_says_from_any_screen(tmp_path: Path, found: None) -> None:
    feed = feed_of("live")
    app = make_app(feed, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "4", "p")
        assert app.current_mode == "queue"
        assert feed.filter_text == 'stream = "prefill"'
        await press(pilot, "escape")
        assert app.current_mode == "cores"
        assert feed.filter_text == ""


async def test_a_pane_without_room_gets_the_whole_body(tmp_path: Path, found: None) -> None:
    app = make_app(feed_of("live"), tmp_path)
    async with app.run_test(size=(60, 14)) as pilot:
        await press(pilot, "d", "d")
        assert app.current_mode == "cores"
        assert app.base_screen is not None
        zoomed = app.base_screen.zoomed
        assert type(zoomed).__module__.endswith(".streams")
        await press(pilot, "escape")
        assert app.current_mode == "overview"
        await press(pilot, "4")
        assert app.base_screen.zoomed is None


async def test_d_walks_tail_fairness_memory_and_back(tmp_path: Path, found: None) -> None:
    app = make_app(feed_of("live"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "d")
        assert isinstance(app.focused, TailWaterfallPane)
        assert "1/3 tail: queue adds most to the median, +26.9 ms: is it of the stage" in lines(app)[1]
        await press(pilot, "d")
        assert app.current_mode == "cores"
        told = "2/3 fairness: Jain 0.87, embed got 61.0 % of its demand: does it wait while others run?"
        assert told in lines(app)[1]
        await press(pilot, "d")
        assert app.current_mode == "fusion"
        assert "3/3 memory: traffic is modelled, not measured" in lines(app)[1]
        await press(pilot, "d")
        assert app.current_mode == "overview"
        assert "queueing on prefill" in lines(app)[1]


async def test_a_pane_that_is_on_another_screen_is_found_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def elsewhere(snapshot: Any, *_: object, **__: object) -> Triage:
        return Triage((replace(findings_of(snapshot)[0], screen="tail", pane="launch"),))

    monkeypatch.setattr("fusetui.triage.judge.triage", elsewhere)
    app = make_app(feed_of("live"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "7", "enter")
        assert isinstance(app.focused, LaunchPane)


async def test_esc_takes_back_a_filter_that_no_snapshot_shows_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: None
) -> None:
    feed = feed_of("playing")
    app = make_app(feed, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)

        def later(text: str) -> None:
            feed.filters.append(text)

        monkeypatch.setattr(feed, "set_filter", later)
        await press(pilot, "p", "escape")
        assert feed.filters == ['stream = "prefill"', ""]


async def test_every_pane_explains_itself(tmp_path: Path, found: None) -> None:
    app = make_app(feed_of("live"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "7")
        assert app.base_screen is not None
        for pane in app.base_screen.panes:
            app.base_screen.set_focus(pane)
            await press(pilot, "question_mark")
            assert isinstance(app.screen, HelpScreen)
            assert "Columns" in app.screen.body_text
            assert "Blind to" in app.screen.body_text
            await press(pilot, "escape")
