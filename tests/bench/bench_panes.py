"""What drawing the panes costs: CPU per tick of nine panes at 120x40, and of the whole app at 2 Hz.

    python tests/bench/bench_panes.py

Prints the CPU time of composing, diffing and turning changed lines into strips, per tick, for each glyph set, beside a
budget of 10 ms; then the CPU share of a headless app that shows them at 2 Hz.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "app"))

import numpy as np
from fake_snapshot import fake_snapshot
from textual.app import App, ComposeResult
from textual.containers import Grid

from fusetui.app.canvas import Canvas
from fusetui.app.glyphs import SETS, Glyphs
from fusetui.app.palette import DEFAULT
from fusetui.app.pane import Pane
from fusetui.app.panes.cores_busy import CoresBusyPane
from fusetui.app.panes.cores_heat import CoresHeatPane
from fusetui.app.panes.pipeline import PipelinePane
from fusetui.app.panes.queue_streams import QueueStreamsPane
from fusetui.app.panes.streams import StreamsPane
from fusetui.app.panes.tail import TailPane
from fusetui.app.panes.tail_drivers import TailDriversPane
from fusetui.app.panes.tail_histogram import TailHistogramPane
from fusetui.app.panes.tail_waterfall import TailWaterfallPane

BUDGET_MS = 10.0
KINDS: tuple[type[Pane], ...] = (
    TailPane, QueueStreamsPane, CoresBusyPane, TailWaterfallPane, StreamsPane, TailHistogramPane, CoresHeatPane,
    TailDriversPane,
)  # fmt: skip
TICKS = 40


def tick_ms(glyphs: Glyphs) -> list[float]:
    """CPU ms of each tick: pipeline strip 120x4 and eight panes of 60x12."""
    panes = [(PipelinePane(current=1), 120, 4), *((kind(), 60, 12) for kind in KINDS)]
    old: dict[int, Canvas] = {}
    spent = []
    for tick in range(TICKS):
        snapshot = fake_snapshot(tick)
        begun = time.process_time()
        for i, (pane, width, height) in enumerate(panes):
            pane.snapshot, pane._now_s = snapshot, snapshot.taken_s
            canvas = Canvas(width, height, glyphs)
            pane.compose_canvas(canvas)
            changed = range(height)
            if i in old:
                changed = np.flatnonzero(canvas.changes(old[i]).any(axis=1)).tolist()
            for y in changed:
                canvas.strip(y, DEFAULT.styles)
            old[i] = canvas
        spent.append((time.process_time() - begun) * 1e3)
    return spent


class Watch(App[None]):
    """Eight panes at 2 Hz."""

    CSS = "Grid { grid-size: 2; height: 1fr; } PipelinePane { height: 4; }"
    palette = DEFAULT
    glyphs = SETS["braille"]

    def compose(self) -> ComposeResult:
        yield PipelinePane(current=1)
        yield Grid(*(kind() for kind in KINDS[:6]))

    def on_mount(self) -> None:
        self.frames = [fake_snapshot(tick) for tick in range(12)]
        self.at = 0
        self.set_interval(0.5, self.tick)

    def tick(self) -> None:
        snapshot = self.frames[self.at % len(self.frames)]
        self.at += 1
        for pane in self.query(Pane):
            pane.show(snapshot, snapshot.taken_s + 0.1)


async def app_share(seconds: float) -> float:
    app = Watch()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause(1.0)
        cpu, wall = time.process_time(), time.monotonic()
        await pilot.pause(seconds)
        return (time.process_time() - cpu) / (time.monotonic() - wall)


def main() -> None:
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs: a busy machine inflates CPU time too")
    for name, glyphs in SETS.items():
        spent = tick_ms(glyphs)[5:]
        best, middle, worst = min(spent), statistics.median(spent), max(spent)
        verdict = "within" if middle <= BUDGET_MS else "OVER"
        figures = f"best {best:5.2f}, median {middle:5.2f}, worst {worst:5.2f} ms CPU a tick"
        print(f"{name:8} 9 panes: {figures}: {verdict} {BUDGET_MS:g} ms")
    print(f"headless app, 7 panes at 2 Hz, 120x40: {asyncio.run(app_share(8.0)) * 100:.1f} % of a core")


if __name__ == "__main__":
    main()
