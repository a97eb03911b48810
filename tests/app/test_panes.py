"""Panes: what they show, at every size, with hostile and missing data, and that only changed cells are repainted."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.screen import Screen

from fusetui.analysis.snapshot import Depth, Snapshot, Tail
from fusetui.app.canvas import Canvas
from fusetui.app.glyphs import SETS, Glyphs
from fusetui.app.palette import DEFAULT, SELECTED, Ink
from fusetui.app.pane import Pane
from fusetui.app.panes.batching import BatchingPane
from fusetui.app.panes.common import first_slot, shown, time_span
from fusetui.app.panes.cores_busy import CoresBusyPane, range_label, tiles
from fusetui.app.panes.cores_heat import CoresHeatPane
from fusetui.app.panes.counters import CountersPane
from fusetui.app.panes.depth import DepthPane
from fusetui.app.panes.imbalance import ImbalancePane
from fusetui.app.panes.launch import LaunchPane
from fusetui.app.panes.mapping_buckets import MappingBucketsPane
from fusetui.app.panes.mapping_drift import MappingDriftPane
from fusetui.app.panes.mapping_heat import MappingHeatPane
from fusetui.app.panes.mapping_metastable import MappingMetastablePane
from fusetui.app.panes.mapping_shares import MappingSharesPane
from fusetui.app.panes.pipeline import PipelinePane
from fusetui.app.panes.queue_heat import QueueHeatPane
from fusetui.app.panes.queue_streams import QueueStreamsPane
from fusetui.app.panes.source import SourcePane
from fusetui.app.panes.streams import StreamsPane
from fusetui.app.panes.tail import TailPane
from fusetui.app.panes.tail_drivers import TailDriversPane
from fusetui.app.panes.tail_histogram import TailHistogramPane
from fusetui.app.panes.tail_waterfall import TailWaterfallPane
from fusetui.app.panes.wait_histogram import WaitHistogramPane
from fusetui.telemetry.header import Header
from fusetui.telemetry.source import TransportState

sys.path.insert(0, str(Path(__file__).parent))
from fake_snapshot import bare_snapshot, cores_of, fake_snapshot, mapping_of, stream_of

PANES: list[type[Pane]] = [
    BatchingPane, MappingBucketsPane, MappingDriftPane, MappingHeatPane, MappingMetastablePane, MappingSharesPane,
    TailDriversPane, TailWaterfallPane,
    CoresBusyPane, CoresHeatPane, CountersPane, DepthPane, ImbalancePane, LaunchPane, PipelinePane,
    QueueHeatPane, QueueStreamsPane, SourcePane, StreamsPane, TailPane, TailHistogramPane, WaitHistogramPane,
]  # fmt: skip
HOSTILE = ("[/x]", "\x1b]0;pwned\x07", "注意力" * 9, "a" * 4_000, "[@click=app.quit]q[/]", "‮rtl", "é́́́", "")


def drawn(pane: Pane, snapshot: Snapshot | None, width: int, height: int, glyphs: Glyphs = SETS["braille"]) -> Canvas:
    """A pane drawn without an app."""
    canvas = Canvas(width, height, glyphs)
    pane.snapshot = snapshot
    pane._now_s = 0.4 if snapshot is None else snapshot.taken_s + 0.4
    pane.compose_canvas(canvas)
    return canvas


def lines_of(canvas: Canvas) -> list[str]:
    return [canvas.line_text(y) for y in range(canvas.height)]


def hostile_snapshot(rng: np.random.Generator) -> Snapshot:
    """Names that attack, values that are not numbers, arrays of nothing but gaps."""
    slots = 40
    base = fake_snapshot(1, slots=slots)
    nothing = np.full(slots, np.nan)
    endless = np.full(slots, np.inf)
    streams = tuple(
        replace(stream_of(rng, name, slots, 3.0, 30), heat_ns=(nothing, endless, np.zeros(slots))[i % 3])
        for i, name in enumerate(HOSTILE)
    )
    cores = replace(
        cores_of(rng, len(HOSTILE), slots), labels=HOSTILE, busy_share=np.full((len(HOSTILE), slots), np.nan)
    )
    mapping = replace(
        mapping_of(slots), plans=(*HOSTILE[:7], "(others)"), shapes=(*HOSTILE[1:], "(others)"), notes=HOSTILE,
        padding=np.full(8, np.inf), hit_share=np.full(8, np.nan), batch_by_slot=endless,
    )  # fmt: skip
    counter = base.counter_rows[0]
    rows = tuple(replace(counter, name=name, unit=name, last=np.nan, max=np.inf, by_slot=nothing) for name in HOSTILE)
    return replace(
        base,
        streams=streams,
        cores=cores,
        mapping_detail=mapping,
        counter_rows=rows,
        header=Header(source=HOSTILE[1], slo_ns=1),
        health=replace(base.health, name=HOSTILE[0], detail=HOSTILE[2], last_error=HOSTILE[1], missing=HOSTILE),
        latency=Tail(
            7, 2**62, 2**62, None, None, 2**62, None, 5, frozenset({"p95"}), False, "p99 needs n ≥ 100, have 7"
        ),
        latency_series=replace(base.latency_series, p99_ns=endless, p95_ns=nothing, p50_ns=np.zeros(slots)),
        depth=Depth(np.inf, 2**60, -5, 0),
        depth_by_slot=endless,
        slot_start_ns=np.full(slots, -(2**62)),
        slot_ns=2**50,
    )


SNAPSHOTS: dict[str, Callable[[], Snapshot | None]] = {
    "none": lambda: None,
    "bare": bare_snapshot,
    "busy": fake_snapshot,
    "big": lambda: fake_snapshot(2, slots=240, core_count=700, named=[(f"stream {i}", 1.0 + i, i) for i in range(40)]),
    "one": lambda: fake_snapshot(3, slots=1, core_count=1, named=[("only", 1.0, 0)]),
    "hostile": lambda: hostile_snapshot(np.random.default_rng(3)),
}
MADE = {name: make() for name, make in SNAPSHOTS.items()}


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(PANES),
    st.sampled_from(sorted(MADE)),
    st.integers(0, 300),
    st.integers(0, 90),
    st.sampled_from(sorted(SETS)),
)
def test_every_pane_at_every_size(kind: type[Pane], which: str, width: int, height: int, name: str) -> None:
    canvas = drawn(kind(), MADE[which], width, height, SETS[name])
    for y, text in enumerate(lines_of(canvas)):
        assert canvas.strip(y, DEFAULT.styles).cell_length == width
        assert cell_len(text) == width
        assert not any(char < " " or "\x7f" <= char < "\xa0" for char in text)
        if name == "ascii":
            assert text.isascii()


@pytest.mark.parametrize("kind", PANES)
@pytest.mark.parametrize("which", sorted(MADE))
def test_every_pane_at_the_small_sizes(kind: type[Pane], which: str) -> None:
    for width in (*range(4), 8, *range(11, 15), 20, 40, 58):
        for height in (*range(7), 8, 11):
            canvas = drawn(kind(), MADE[which], width, height)
            assert all(cell_len(text) == width for text in lines_of(canvas))


@pytest.mark.parametrize("kind", PANES)
def test_every_pane_explains_itself_and_can_be_copied(kind: type[Pane]) -> None:
    pane = kind()
    assert pane.TITLE
    assert "Columns" in pane.HELP or kind in (PipelinePane, SourcePane)
    assert "Blind to" in pane.HELP
    assert max(len(line) for line in pane.HELP.split("\n")) <= 125
    drawn(pane, MADE["busy"], 60, 12)
    assert pane.TITLE.split(" ·")[0] in pane.text()
    assert "╭" not in pane.text()


@pytest.mark.parametrize("kind", [kind for kind in PANES if kind not in (PipelinePane, SourcePane)])
def test_empty_panes_teach(kind: type[Pane]) -> None:
    text = kind().empty(bare_snapshot())
    assert text
    assert kind().empty(fake_snapshot()) is None


def test_the_tail_pane_tells_p99_over_the_objective() -> None:
    latency = Tail(12_400, 12_200_000, 31_000_000, 58_100_000, None, 99_000_000, 14e6)
    canvas = drawn(TailPane(), fake_snapshot(latency=latency), 60, 12)
    text = "\n".join(lines_of(canvas))
    assert lines_of(canvas)[0].startswith("╭ Tail latency · requests · ms ─")
    assert lines_of(canvas)[0].endswith("─ n 12.4k · <1s ╮")
    for label in ("p99  58.1 ✗", "p95  31.0", "p50  12.2", "SLO    50"):
        assert label in text
    y = next(y for y, line in enumerate(lines_of(canvas)) if "p99" in line)
    assert canvas.inks[y, lines_of(canvas)[y].index("p99")] == Ink.BREACH


def test_bounds_and_refusals_show() -> None:
    latency = Tail(
        37, 12_200_000, 31_000_000, None, None, 40_000_000, 14e6, 5, frozenset({"p95"}), False, "p99 needs n ≥ 100"
    )
    text = "\n".join(lines_of(drawn(TailPane(), fake_snapshot(latency=latency), 60, 12)))
    assert "p95 ≥31.0" in text
    assert "p99     —" in text
    assert "≈ n 37" in text
    assert "p99 needs n ≥ 100" in text


def test_the_queue_pane_lines_up_its_numbers() -> None:
    lines = lines_of(drawn(QueueStreamsPane(), fake_snapshot(), 80, 12))
    head = lines[1]
    right = head.index("p99") + 3
    for name in ("prefill", "decode", "embed"):
        line = next(line for line in lines if name in line)
        assert line[right - 4 : right + 4].strip()[0].isdigit()
        assert line[right] == " "
        assert line[right + 1 : right + 3] in ("ms", "µs")
    assert "waiting 41, oldest ≥ 22.4 s ▲" in "\n".join(lines)


def test_nothing_moves_when_numbers_cross_a_width() -> None:
    def outline(p99: int) -> list[str]:
        latency = Tail(12_400, 1_000_000, 5_000_000, p99, None, 99_000_000, 14e6)
        lines = lines_of(drawn(PipelinePane(), fake_snapshot(latency=latency, header=Header()), 120, 4))
        return ["".join("9" if char.isdigit() or char == "." else char for char in line) for line in lines]

    first = outline(9_990_000)
    for p99 in (10_000_000, 99_900_000, 5_550_000):
        assert outline(p99) == first


def test_the_pipeline_is_boxes_when_wide_and_a_line_when_narrow() -> None:
    pane = PipelinePane(current=1)
    pane.first = 1
    wide = lines_of(drawn(pane, fake_snapshot(), 120, 4))
    for name in ("COMPILE PLAN", "RUNTIME QUEUE", "CORE PLACEMENT", "COMPLETION", "◀ first"):
        assert name in wide[0]
    assert "hit      97.2 %" in wide[1]
    assert "λ        0.31" in wide[1]
    narrow = lines_of(drawn(pane, fake_snapshot(), 80, 1))
    assert narrow[0].startswith(" PLAN hit 97.2% ▸ QUEUE p99 ")
    assert "◀first ▸ CORES λ 0.31 ▸ DONE p99" in narrow[0]
    unknown = lines_of(drawn(pane, bare_snapshot(), 120, 4))
    assert "needs column mapping" in unknown[2]


def test_core_labels_and_map() -> None:
    assert range_label(("0/0", "0/7"), 0, 1) == "0/0–7"
    assert range_label(("0/0", "1/7"), 0, 1) == "0/0–1/7"
    assert range_label(("a",), 0, 0) == "a"
    lines = lines_of(drawn(CoresBusyPane(), fake_snapshot(), 60, 11))
    assert "0/0–7 " in lines[1]
    assert "0/56–63" in lines[8]
    assert "λ    0.31" in lines[1]
    few = lines_of(drawn(CoresBusyPane(), fake_snapshot(core_count=4), 60, 11))
    assert few[1].startswith("│ 0/0 ")


@given(st.integers(1, 5_000), st.integers(1, 200), st.integers(1, 60))
def test_tiles_fit(count: int, width: int, height: int) -> None:
    per_cell = -(-count // (width * height))
    groups = -(-count // per_cell)
    per_line, wide, tall = tiles(groups, width, height)
    assert per_line * wide <= width
    assert -(-groups // per_line) * tall <= height


def test_tiles_are_large_and_square() -> None:
    assert tiles(64, 36, 10) == (16, 2, 2)
    assert tiles(16, 36, 10) == (8, 4, 4)
    assert tiles(132, 36, 10) == (16, 2, 1)


@pytest.mark.parametrize(("first", "begins"), [(0, 0), (29, 0), (30, 30), (44, 30), (45, 45), (53, 53), (59, 53)])
def test_a_window_that_fills_is_shown_by_halves(first: int, begins: int) -> None:
    rows = np.zeros(60, np.int64)
    rows[first:] = 9
    snapshot = fake_snapshot(rows_by_slot=rows)
    assert first_slot(snapshot) == begins
    assert shown(snapshot, np.arange(60.0))[0] == begins
    assert time_span(snapshot)[0] == snapshot.slot_start_ns[begins]


@pytest.mark.parametrize(
    ("now_s", "changes", "mark"),
    [
        (0.4, {}, "· <1s"),
        (6.0, {}, "stale 6.0s"),
        (3.0, {"health": "lost"}, "lost 3.0s"),
        (9.0, {"playing": False}, "paused"),
    ],
)
def test_age_is_told(now_s: float, changes: dict[str, Any], mark: str) -> None:
    snapshot = fake_snapshot()
    if "health" in changes:
        snapshot = replace(snapshot, health=replace(snapshot.health, state=changes["health"]))
    if "playing" in changes:
        snapshot = replace(snapshot, transport=TransportState(False, 1.0, 0, 0, 1, False, False, False))
    pane = TailPane()
    pane.snapshot, pane._now_s = snapshot, now_s
    canvas = Canvas(60, 10)
    pane.compose_canvas(canvas)
    assert mark in canvas.line_text(0)
    faded = bool((canvas.inks[1:9, 1:59] == Ink.DIM).all())
    assert faded == ("stale" in mark or "lost" in mark)


class Host(App[None]):
    CSS = "Pane { width: 60; height: 12; }"
    palette = DEFAULT
    glyphs = SETS["braille"]
    kinds: ClassVar[list[type[Pane]]] = []

    def compose(self) -> ComposeResult:
        yield from (kind() for kind in self.kinds)


async def _host(*kinds: type[Pane]) -> Host:
    app = Host()
    app.kinds = list(kinds)
    return app


@pytest.mark.parametrize("hidden", ["", "pane", "screen"])
def test_only_changed_cells_are_repainted_and_none_when_hidden(hidden: str) -> None:
    async def run() -> tuple[list[Region], list[str]]:
        app = await _host(TailPane)
        async with app.run_test(size=(80, 24)) as pilot:
            pane = app.query_one(TailPane)
            first = fake_snapshot(1)
            pane.tick_s = 1.0
            pane.show(first, first.taken_s + 1.2)
            await pilot.pause()
            pane.display = hidden != "pane"
            if hidden == "screen":
                await app.push_screen(Screen())
                await app.push_screen(Screen())
            await pilot.pause()
            asked: list[Region] = []
            refresh = pane.refresh
            pane.refresh = lambda *regions, **options: (asked.extend(regions), refresh(*regions, **options))[1]  # type: ignore[method-assign]
            pane.show(first, first.taken_s + 1.3)
            shown = [line.text for line in pane.render_lines(pane.size.region)]
            return list(asked), shown

    regions, shown = asyncio.run(run())
    if hidden:
        assert regions == []
    else:
        assert [(region.y, region.height) for region in regions] == [(0, 1)]
        assert regions[0].width <= 4
        assert "1.3s" in shown[0]


def test_a_paused_view_is_not_drawn_again() -> None:
    async def run() -> None:
        app = await _host(PipelinePane)
        async with app.run_test(size=(120, 24)) as pilot:
            await pilot.pause()
            pane = app.query_one(PipelinePane)
            drawings: list[Canvas] = []
            compose = pane.compose_canvas
            pane.compose_canvas = lambda canvas: (drawings.append(canvas), compose(canvas))[1]  # type: ignore[method-assign]
            paused = replace(fake_snapshot(1), transport=TransportState(False, 1.0, 0, 0, 1, False, False, False))
            for now_s in (1.0, 2.0, 3.0):
                pane.show(paused, now_s)
            assert len(drawings) == 1
            pane.first = 2
            pane.show(paused, 4.0)
            assert len(drawings) == 2
            app.glyphs = SETS["ascii"]
            pane.show(paused, 5.0)
            pane.show(fake_snapshot(2), 6.0)
            assert len(drawings) == 4

    asyncio.run(run())


def test_the_cursor_stays_on_its_stream() -> None:
    async def run() -> None:
        app = await _host(QueueStreamsPane)
        async with app.run_test(size=(80, 24)) as pilot:
            pane = app.query_one(QueueStreamsPane)
            pane.show(fake_snapshot(1), 0.6)
            pane.focus()
            await pilot.press("down", "down")
            assert pane.selected == "decode"
            swapped = fake_snapshot(2, named=[("decode", 400.0, 3), ("prefill", 1.0, 2), ("embed", 0.1, 0)])
            pane.show(swapped, 1.1)
            assert pane.keys(swapped)[0] == "decode"
            assert pane._canvas.inks[2, 3] & SELECTED
            assert pane.row_query(swapped).stream == "decode"
            await pilot.press("end")
            assert pane.selected == "embed"
            await pilot.click(QueueStreamsPane, offset=(4, 2))
            assert pane.selected == "decode"

    asyncio.run(run())


def test_the_focused_frame_is_lit_and_a_new_glyph_set_is_taken_up() -> None:
    async def run() -> None:
        app = await _host(TailPane, TailDriversPane)
        async with app.run_test(size=(80, 30)) as pilot:
            tail = app.query_one(TailPane)
            for pane in app.query(Pane):
                pane.show(fake_snapshot(1), 0.6)
            tail.focus()
            await pilot.pause()
            assert tail._canvas.inks[5, 0] == Ink.ACCENT
            app.query_one(TailDriversPane).focus()
            await pilot.pause()
            assert tail._canvas.inks[5, 0] == Ink.GRID
            app.glyphs = SETS["ascii"]
            tail.show(fake_snapshot(1), 0.6)
            shown = [line.text for line in tail.render_lines(tail.size.region)]
            assert all(line.isascii() for line in shown)
            assert shown[0].startswith("+ Tail latency . requests . ms -")

    asyncio.run(run())


def test_a_wide_name_is_clipped_inside_its_column() -> None:
    snapshot = fake_snapshot(named=[("注意力機構ストリーム", 3.0, 2)])
    line = lines_of(drawn(QueueStreamsPane(), snapshot, 60, 8))[2]
    assert line.startswith("│ 注意力… ")
    assert cell_len(line) == 60


def test_a_long_title_gives_way_to_the_trust_marks() -> None:
    snapshot = fake_snapshot(health=replace(fake_snapshot().health, name="a" * 90))
    top = lines_of(drawn(SourcePane(), snapshot, 60, 8))[0]
    assert top.startswith("╭ Source · aaaa")
    assert top.endswith("a… ── <1s ╮")
    narrow = lines_of(drawn(SourcePane(), snapshot, 16, 8))[0]
    assert narrow == "╭ Source · aa… ╮"
