"""The mapping screen's panes: right values, lines of a map, glyphs that tell without colour, drill-down."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from fake_feed import FakeFeed, feed_of
from fake_snapshot import bare_snapshot, fake_snapshot, mapping_of
from shell_app import make_app
from textual.pilot import Pilot

from fusetui.analysis.snapshot import Snapshot
from fusetui.app.app import FusetuiApp
from fusetui.app.canvas import Canvas
from fusetui.app.charts.ways import WAY_INKS, dominant, draw_ways
from fusetui.app.glyphs import SETS
from fusetui.app.pane import Pane
from fusetui.app.panes.batching import BatchingPane
from fusetui.app.panes.mapping_buckets import MappingBucketsPane
from fusetui.app.panes.mapping_common import bucket_names, bucket_query
from fusetui.app.panes.mapping_drift import MappingDriftPane
from fusetui.app.panes.mapping_heat import MappingHeatPane
from fusetui.app.panes.mapping_metastable import MappingMetastablePane
from fusetui.app.panes.mapping_rows import map_lines
from fusetui.app.panes.mapping_shares import MappingSharesPane, share_series
from fusetui.app.screens.rows import RowsScreen, query_text

SNAPSHOT = fake_snapshot(1)


def lines_of(pane: Pane, width: int, height: int, snapshot: Snapshot = SNAPSHOT, glyphs: str = "braille") -> list[str]:
    canvas = Canvas(width, height, SETS[glyphs])
    pane.snapshot, pane._now_s = snapshot, snapshot.taken_s
    pane.compose_canvas(canvas)
    return [canvas.line_text(y) for y in range(height)]


def test_a_cell_is_the_way_most_took_and_of_equals_the_one_further_from_the_plan() -> None:
    counts = np.zeros((2, 4, 4))
    counts[0, 0, 0] = 5
    counts[0, 1] = (3, 3, 0, 0)
    counts[0, 2] = (1, 0, 9, 0)
    counts[1, :2, 3] = 1
    assert dominant(counts, 4).tolist() == [[0, 1, 2, -1], [3, 3, -1, -1]]
    assert dominant(counts, 2).tolist() == [[0, 2], [3, -1]]
    assert dominant(counts[:, :, :0], 2).tolist() == [[-1, -1], [-1, -1]]
    for name, text in (("braille", "░▓█ "), ("ascii", ".%# ")):
        canvas = Canvas(4, 2, SETS[name])
        draw_ways(canvas, counts)
        assert canvas.line_text(0) == text
    assert canvas.inks[0].tolist()[:3] == list(WAY_INKS[:3])


def test_the_map_shows_when_each_shape_left_its_plan() -> None:
    lines = lines_of(MappingHeatPane(), 100, 14)
    small, large = (next(line for line in lines if line.startswith(f"│ batch={size} ")) for size in (8, 160))
    assert set(small[13:92]) == {"░", " "}
    assert set(large[13:92]) == {"█", " "}
    assert small.rstrip("│ ").endswith("100 %")
    assert large.rstrip("│ ").endswith("0.00 %")
    slots = np.arange(79) * 60 // 79
    assert [x - 12 for x, char in enumerate(lines[1]) if char == "◆"] == np.flatnonzero(
        (slots == 15) | (slots == 30)
    ).tolist()
    assert "░░ planned  ▓▓ adapted  ██ fallback  ╌╌ unmapped" in "\n".join(lines)
    assert [line.split()[1] for line in lines[2:10]] == [
        "batch=8", "batch=16", "batch=32", "batch=64", "batch=96", "batch=128", "batch=160", "(others)",
    ]  # fmt: skip


def test_more_shapes_than_lines_are_put_together_with_their_neighbours() -> None:
    detail = mapping_of(60)
    lines = map_lines(detail, 4)
    assert [line.label for line in lines] == ["batch=8‥32", "batch=64‥128", "batch=160", "(others)"]
    assert [line.buckets for line in lines] == [(0, 1, 2), (3, 4, 5), (6,), (7,)]
    mixed = replace(detail, shapes=("batch=9", "batch=10", "seq=1", "seq=2", "batch=9", "seq=1", "x", "(others)"),
                    plans=("a", "a", "a", "a", "b", "b", "a", "(others)"))  # fmt: skip
    assert [line.label for line in map_lines(mixed, 8)] == [
        "batch=9 · a", "batch=9 · b", "batch=10 · a", "seq=1 · a", "seq=1 · b", "seq=2 · a", "x · a", "(others)",
    ]  # fmt: skip
    grouped = map_lines(mixed, 4)
    assert [line.label for line in grouped] == ["batch=9‥10 · a", "seq=1‥2 · a", "x · a", "(others)"]
    assert sorted(i for line in grouped for i in line.buckets) == list(range(8))
    assert len(map_lines(mixed, 2)) == 2
    assert map_lines(mixed, 0) == []


def test_the_table_tells_what_a_shape_cost() -> None:
    lines = lines_of(MappingBucketsPane(), 140, 12)
    head = lines[1].split()
    assert head[1:4] == ["shape", "·", "plan"]
    row = {line.split()[1]: line for line in lines[2:10]}
    assert "0.00 %     100 %" in row["batch=64"]
    assert "×1.50" in row["batch=64"]
    assert "+12 %" in row["batch=64"]
    assert "310 ms" in row["batch=64"]
    assert "0.98" in row["batch=8"]
    assert "310 ms" in row["batch=128"]
    assert "−20.0 ms" in row["batch=160"]
    right = {lines[y].rstrip("│ ").rfind("ms") for y, line in enumerate(lines) if " ms " in line[-14:]}
    assert len(right) <= 1


def test_shares_and_totals() -> None:
    shares = share_series(SNAPSHOT.mapping_detail)
    assert shares[:, 0].tolist() == [120 / 180, 60 / 180, 0.0]
    assert shares[:, -1].tolist() == [5 / 45, 0.0, 40 / 45]
    text = "\n".join(lines_of(MappingSharesPane(), 60, 12))
    for part in (
        "accuracy     0.85 n 2.40k",
        "gain        +12 % n 900",
        "fb cost    290 ms n 600",
        "padding     ×1.42",
    ):
        assert part in text
    planned = int(SNAPSHOT.mapping_detail.counts[:, 0].sum()) / int(SNAPSHOT.mapping_detail.counts[:, :3].sum())
    assert f"planned  {planned * 100:.1f} %" in text


def test_drift_and_evidence_tell_what_they_do_not_prove() -> None:
    lines = lines_of(MappingDriftPane(), 70, 8)
    assert "✗ major  PSI 0.31  by chance < 0.02  against envelope" in lines[1]
    assert [line.split()[1] for line in lines[3:6]] == ["batch=160", "batch=8", "batch=96"]
    assert "+25.0 pt" in lines[3]
    stuck = replace(SNAPSHOT, mapping_detail=mapping_of(60, stuck=True))
    for width in (60, 118):
        text = " ".join(
            " ".join(line.strip("│ ") for line in lines_of(MappingMetastablePane(), width, 14, stuck)).split()
        )
        assert "97.0 % fell back" in text
        assert " 96 " in text
        assert "61.0" in text
        assert "151" in text
        assert "This does not prove" in text
        assert "· that B" in text
    calm = "\n".join(lines_of(MappingMetastablePane(), 70, 8))
    assert "not shown: 8.60 %" in calm
    assert "· more than 63 plans and shapes" in calm


def test_batches_are_told_where_they_are_known() -> None:
    text = "\n".join(lines_of(BatchingPane(), 60, 11))
    assert "gate tail  2.00 ms" in text
    assert "largest        96" in text
    known = SNAPSHOT.mapping_detail.batch_by_slot
    assert re.search(rf"fill +{known.mean() / 96 * 100:.1f} %", text)
    assert "column batch" in "\n".join(lines_of(BatchingPane(), 60, 11, bare_snapshot()))


def test_the_rows_behind_a_shape() -> None:
    detail = SNAPSHOT.mapping_detail
    assert bucket_names(detail)[0] == "batch=8"
    one = bucket_query(detail, [3])
    assert one is not None
    assert (one.plan, one.shape, one.kind) == ("p17", "batch=64", "execution")
    assert "plan p17, shape batch=64" in query_text(one)
    several = bucket_query(detail, [3, 4])
    assert several is not None
    assert (several.plan, several.shape) == ("p17", None)
    assert bucket_query(detail, [7]) is None
    assert bucket_query(bare_snapshot().mapping_detail, []) is None


async def press(pilot: Pilot[Any], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await pilot.pause()
        app = pilot.app
        assert isinstance(app, FusetuiApp)
        app.tick(now=True)
        await pilot.pause()


async def test_enter_on_a_shape_opens_its_executions(tmp_path: Path) -> None:
    feed: FakeFeed = feed_of("playing")
    app = make_app(feed, tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "6", "tab", "down", "down", "enter")
        assert isinstance(app.screen, RowsScreen)
        await app.workers.wait_for_complete()
        assert (feed.queries[-1].plan, feed.queries[-1].shape) == ("p17", "batch=16")
        await press(pilot, "escape")
        assert app.base_screen is not None
        focused = app.base_screen.focused_pane
        assert isinstance(focused, MappingBucketsPane)
        assert focused.selected == "batch=16"


async def test_the_gate_has_a_pane_only_where_batches_are_known(tmp_path: Path) -> None:
    for state, there in (("playing", True), ("no data", False)):
        app = make_app(feed_of(state), tmp_path)
        async with app.run_test(size=(120, 50)) as pilot:
            await press(pilot, "3")
            assert app.base_screen is not None
            pane = next(pane for pane in app.base_screen.panes if isinstance(pane, BatchingPane))
            assert pane.display == there
