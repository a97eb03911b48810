"""The fusion and what-if screens: keys, right values, what is shown without a capture and with one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fake_feed import FakeFeed, feed_of
from fake_plan import GROUPS, fake_measured, fake_planned
from shell_app import make_app
from textual.pilot import Pilot

from fusetui.accelerator.policy import POLICIES
from fusetui.analysis.planned import Captured, Knobs, Planned, make_planned
from fusetui.app.app import FusetuiApp
from fusetui.app.fmt import signed
from fusetui.app.glyphs import SETS
from fusetui.app.pane import Pane
from fusetui.app.panes.knobs import KnobsPane
from fusetui.app.panes.plan_groups import PlanGroupsPane
from fusetui.app.panes.plan_residual import PlanResidualPane
from fusetui.app.panes.plan_roofline import PlanRooflinePane
from fusetui.app.panes.whatif_groups import changes_of
from fusetui.app.planner import Answer
from fusetui.app.screens.help import HelpScreen
from fusetui.app.screens.rows import RowsScreen

SIZE = (120, 40)


@pytest.fixture
def fixed_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans whose numbers do not change with the model."""
    monkeypatch.setattr("fusetui.app.planner.make_planned", fake_planned)


async def settle(pilot: Pilot[Any]) -> None:
    """Let keys, plans and screens come to rest."""
    await pilot.pause()
    app = pilot.app
    assert isinstance(app, FusetuiApp)
    for _ in range(500):
        if not (app.board.planner.busy or app.runtime.worker.busy):
            break
        await pilot.pause(0.01)
    app.tick(now=True)
    await pilot.pause(0.02)


def answer_of(app: FusetuiApp) -> Answer:
    """The newest answer."""
    answer = app.board.answer
    assert answer is not None
    return answer


def pane_of(app: FusetuiApp, kind: type[Pane]) -> Pane:
    """The pane of a kind on the screen that is shown."""
    screen = app.base_screen
    assert screen is not None
    return next(pane for pane in screen.panes if isinstance(pane, kind))


def inside(pane: Pane) -> list[str]:
    """What a pane shows."""
    return [pane._canvas.line_text(y) for y in range(pane._canvas.height)]


async def press(pilot: Pilot[Any], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await settle(pilot)


async def test_nothing_is_planned_before_it_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[Knobs] = []

    def counted(knobs: Knobs, captured: Captured | None = None, *, policies: Sequence[str] = ()) -> Planned:
        plans.append(knobs)
        return fake_planned(knobs, captured, policies=policies)

    monkeypatch.setattr("fusetui.app.planner.make_planned", counted)
    app = make_app(feed_of("live"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "2", "3", "1")
        assert plans == []
        await press(pilot, "5")
        assert len(plans) == 1
        await press(pilot, "8", "5", "1", "5")
        for _ in range(5):
            app.tick(now=True)
            await settle(pilot)
        assert len(plans) == 1


async def test_a_wide_overview_shows_the_plan_there_is_and_makes_none(tmp_path: Path, fixed_plans: None) -> None:
    app = make_app(feed_of("playing"), tmp_path)
    async with app.run_test(size=(200, 60)) as pilot:
        await settle(pilot)
        pane = pane_of(app, PlanGroupsPane)
        assert not pane.display
        assert not app.board.asked
        await press(pilot, "5", "1")
        assert pane.display
        assert "attention_norm" in "\n".join(inside(pane))
        await pilot.resize_terminal(120, 40)
        await settle(pilot)
        assert not pane.display


async def test_the_fusion_screen_without_any_capture(tmp_path: Path) -> None:
    app = make_app(feed_of("nothing"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "5")
        today = answer_of(app).today
        assert today is not None
        assert today.knobs.block == "transformer-prefill"
        assert today.hardware.name == "H100"
        table = inside(pane_of(app, PlanGroupsPane))
        assert "attention_norm" in table[2]
        assert "uncalibrated" in table[0]
        assert "model" in table[0]
        text = "\n".join(inside(pane_of(app, PlanResidualPane)))
        assert "Nothing measured" in text


async def test_more_bandwidth_makes_a_block_that_memory_limits_faster(tmp_path: Path) -> None:
    app = make_app(feed_of("nothing"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "8")
        app.board._choose_block("norm-chain")
        app.board.changes["shape.tokens"] = 1 << 20
        await press(pilot, "home", "down", "down")
        assert pane_of(app, KnobsPane).selected == "bandwidth"  # type: ignore[attr-defined]
        await press(pilot, "plus", "plus", "equals_sign")
        answer = answer_of(app)
        assert app.board.changes["bandwidth"] == 2.0
        assert answer.predicted is not None
        doubled = answer.predicted.plan.totals.kernel_ns
        expected = make_planned(answer.knobs).plan.totals.kernel_ns
        assert doubled == expected
        await press(pilot, "0")
        assert "bandwidth" not in app.board.changes
        back = answer_of(app).predicted
        assert back is not None
        ratio = doubled / back.plan.totals.kernel_ns
        assert 0.5 <= ratio < 0.6


async def test_without_fusion_every_operator_is_launched(tmp_path: Path) -> None:
    app = make_app(feed_of("nothing"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "8")
        while app.board.value(next(k for k in app.board.knobs if k.name == "policy")) != "none":
            app.board.turn("policy", 1)
        await settle(pilot)
        predicted = answer_of(app).predicted
        assert predicted is not None
        kernels = [op for op in predicted.graph.operators if not op.is_view]
        assert predicted.plan.totals.launches == len(kernels)
        assert set(predicted.plans.plans) <= set(POLICIES)


async def test_knobs_are_turned_marked_and_put_back(tmp_path: Path, fixed_plans: None) -> None:
    app = make_app(feed_of("playing"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "8", "right", "right", "down", "minus")
        assert app.board.changes == {"bandwidth": 1.5, "launch": 0.75}
        lines = inside(pane_of(app, KnobsPane))
        assert next(line for line in lines if "bandwidth" in line).split()[1:6] == [
            "◆",
            "bandwidth",
            "×1.5",
            "today",
            "×1",
        ]
        answer = answer_of(app)
        assert answer.today is not None
        assert answer.predicted is not None
        assert answer.predicted.plan.totals.predicted_ns < answer.today.plan.totals.predicted_ns
        text = "\n".join(inside(app.base_screen.panes[1]))  # type: ignore[union-attr]
        assert "exposed launch" in text
        assert "−25 %" in text
        await press(pilot, "tab", "plus")  # + works whichever pane has the focus
        assert app.board.changes == {"bandwidth": 1.5}
        await press(pilot, "R")
        assert app.board.changes == {}
        assert answer_of(app).predicted is answer_of(app).today


async def test_a_knob_at_a_value_that_cannot_be_planned_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fusetui.app.planner.make_planned", fake_planned)
    app = make_app(feed_of("playing"), tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "8")
        app.board.changes["dtype"] = "fp64"
        await press(pilot, "plus")
        text = "\n".join(inside(app.base_screen.panes[1]))  # type: ignore[union-attr]
        assert "no value for 'fp64'" in text
        await press(pilot, "5")
        assert "attention_norm" in "\n".join(inside(pane_of(app, PlanGroupsPane)))


async def test_the_cursor_is_on_the_same_group_in_every_pane(tmp_path: Path, fixed_plans: None) -> None:
    app = make_app(feed_of("playing"), tmp_path)
    async with app.run_test(size=(200, 60)) as pilot:
        await press(pilot, "5", "down", "down")
        assert app.board.group == "g2"
        selected = pane_of(app, PlanGroupsPane)._canvas.inks >= 32
        assert [y for y in range(selected.shape[0]) if selected[y].any()] == [3]
        assert (pane_of(app, PlanRooflinePane)._canvas.inks >= 32).any()


async def test_enter_shows_the_rows_of_a_measured_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = fake_measured()

    def make(knobs: Knobs, captured: Captured | None = None, *, policies: Sequence[str] = ()) -> Planned:
        return measured

    monkeypatch.setattr("fusetui.app.planner.make_planned", make)
    feed = feed_of("playing")
    feed.frame = feed.frame.with_columns(name=feed.frame["name"].replace({"gemm_3": "aten::softmax"}))
    app = make_app(feed, tmp_path)
    async with app.run_test(size=(200, 60)) as pilot:
        await press(pilot, "5", "tab", "down", "enter")
        assert not isinstance(app.screen, RowsScreen)  # g1 did not run
        await press(pilot, "down", "down", "down", "down", "enter")
        assert isinstance(app.screen, RowsScreen)
        await app.workers.wait_for_complete()
        await settle(pilot)
        frame = app.screen.table.frame
        assert frame is not None
        assert frame["name"].to_list() == ["aten::softmax"]


async def test_residuals_tell_their_sign_and_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusetui.app.planner.make_planned", lambda *_, **__: fake_measured())
    app = make_app(feed_of("playing"), tmp_path)
    async with app.run_test(size=(200, 60)) as pilot:
        await press(pilot, "5")
        lines = inside(pane_of(app, PlanResidualPane))
        assert [line.split()[1] for line in lines[1:4]] == ["g9", "g5", "g2"]
        assert "×12.3 unexplained ▲" in lines[1]
        assert "+41 % slower ▲" in lines[2]
        assert "+5.0 % fits ✓" in lines[3]
        assert "explained 90.0 % of 90.0 ms" in lines[4]
        assert "memcpy 6.00 ms" in lines[5]
        row = next(line for line in inside(pane_of(app, PlanGroupsPane)) if " g5 " in line)
        assert "+41 %  slower ▲" in row


async def test_every_plan_pane_explains_itself(tmp_path: Path, fixed_plans: None) -> None:
    app = make_app(feed_of("playing"), tmp_path)
    async with app.run_test(size=(200, 60)) as pilot:
        for key, count in (("5", 6), ("8", 4)):
            await press(pilot, key)
            screen = app.base_screen
            assert screen is not None
            assert len(screen.panes) == count
            for pane in screen.panes:
                assert "Blind to" in pane.HELP
                assert "≈" in pane.HELP or isinstance(pane, KnobsPane)
                pane.focus()
                await press(pilot, "question_mark")
                assert isinstance(app.screen, HelpScreen)
                await press(pilot, "escape")
                assert pane.title(None) in pane.text()


async def test_the_hints_name_the_keys_of_the_screen(tmp_path: Path) -> None:
    app = make_app(feed_of("nothing"), tmp_path)
    async with app.run_test(size=(200, 60)) as pilot:
        await press(pilot, "5")
        assert ("r", "read again", 6) in app.hints()
        assert not any(hint == "change" for _, hint, _ in app.hints())
        await press(pilot, "8")
        assert ("+-", "change", 1) in app.hints()
        await press(pilot, "1")
        assert not any(hint in ("change", "read again") for _, hint, _ in app.hints())


async def test_reading_again_asks_for_rows_once(tmp_path: Path, fixed_plans: None) -> None:
    feed: FakeFeed = feed_of("playing")
    app = make_app(feed, tmp_path)
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "5")
        assert len(feed.queries) == 1
        assert (feed.queries[0].kind, feed.queries[0].order) == ("execution", "time")
        app.tick(now=True)
        await settle(pilot)
        assert len(feed.queries) == 1
        await press(pilot, "r")
        assert len(feed.queries) == 2


def test_what_changed_about_groups() -> None:
    today, then = fake_planned(Knobs()), fake_planned(Knobs(bandwidth=2.0))
    assert [change.what for change in changes_of(today.plan, then.plan)] == [""] * len(GROUPS)
    alone = make_planned(Knobs(policy="none"))
    changes = {change.group.ops: change for change in changes_of(alone.plan, today.plan)}
    assert changes["q_proj", "q_rope"].what == "merged g2+g5"
    split = changes_of(today.plan, alone.plan)
    assert split[1].what == "split from g2"
    assert split[1].today_ns is None
    merged = changes["q_proj", "q_rope"].today_ns
    assert merged == alone.plan.groups[1].predicted_ns + alone.plan.groups[4].predicted_ns


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (None, "—"),
        (0.0, "±0 %"),
        (0.41, "+41 %"),
        (-0.032, "−3.2 %"),
        (0.0951, "+9.5 %"),
        (8.0, "+800 %"),
        (11.3, "×12.3"),
    ],
)
def test_signed(share: float | None, text: str) -> None:
    assert signed(share) == text
    assert len(text) <= 6


def test_every_glyph_set_has_a_likeness_for_what_the_panes_draw() -> None:
    for glyphs in SETS.values():
        text = glyphs.text("≈ − × ± ◆ ▲ ✓ → ◂ ▸ ● ○ ↑↓")
        assert "?" not in text
