"""Core imbalance over time, and what it costs."""

from __future__ import annotations

import numpy as np

from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.axis import Scale, nice_ceiling
from fusetui.app.charts.facts import Fact, draw_facts
from fusetui.app.charts.line import Series, draw_lines
from fusetui.app.palette import DATA, Ink
from fusetui.app.pane import Pane, draw_text
from fusetui.app.panes.beside import titled, was_series
from fusetui.app.panes.common import CORES_TEACH, shown, time_span
from fusetui.app.panes.cores_busy import mean_share


class ImbalancePane(Pane):
    TITLE = "Core imbalance · λ"
    HELP = """How unequally work is spread over the cores, over time.

Formula   λ = max/mean - 1 of busy time over cores; not defined when all are idle or there is one core.
stretch   slowest core - mean core of a parallel step (a request's executions on several cores): the time lost to it
J         Jain's index (Σb)² / (n Σb²) of busy time over cores
dots      the baseline, where there is one
Columns   start_ns, end_ns, core (device, host), request for the stretch
Blind to  imbalance inside a core, and placement that is unequal by design."""

    def title(self, snapshot: Snapshot | None) -> str:
        return titled(self.TITLE, self.baseline)

    def trust(self, snapshot: Snapshot) -> str:
        return f"{fmt.count(snapshot.cores.imbalance.steps).strip()} steps"

    def empty(self, snapshot: Snapshot) -> str | None:
        return None if snapshot.cores.labels else CORES_TEACH

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        balance = snapshot.cores.imbalance
        if balance.lambda_ is None and not np.isfinite(snapshot.cores.lambda_by_slot).any():
            draw_text(canvas, f"λ is not defined here: {balance.why or 'fewer than two cores did work'}.")
            return
        head = draw_facts(canvas.view(0, 0, canvas.width, canvas.height // 3), _facts(snapshot), 7, 5)
        plot = canvas.view(0, head, canvas.width, canvas.height - head)
        values = shown(snapshot, snapshot.cores.lambda_by_slot)
        series = [Series(values, f"λ {fmt.ratio(balance.lambda_)}", DATA, thick=True)]
        was = self.baseline
        if was is not None:
            level = was.cores.imbalance.lambda_
            series += was_series(snapshot, was, was.cores.lambda_by_slot, level)
            values = np.concatenate([values, *(one.values for one in series[1:])])
        # Linear, always: 0 is a perfect balance, and how far below 0.01 it lies tells nobody anything.
        known = values[np.isfinite(values)]
        scale = Scale(0.0, nice_ceiling(float(known.max()) if known.size else 1.0))
        draw_lines(plot, series, time=time_span(snapshot), scale=scale)


def _facts(snapshot: Snapshot) -> list[Fact]:
    cores, balance = snapshot.cores, snapshot.cores.imbalance
    share = mean_share(cores)
    known = np.isfinite(share)
    busiest = int(np.nanargmax(share)) if known.any() else None
    idlest = int(np.nanargmin(share)) if known.any() else None

    def core(index: int | None) -> tuple[str, str]:
        if index is None:
            return fmt.percent(None), ""
        return fmt.percent(float(share[index])), f"#{cores.labels[index]}"

    return [
        Fact("stretch p95", fmt.duration(balance.stretch_p95_ns), Ink.STRONG),
        Fact("stretch p50", fmt.duration(balance.stretch_p50_ns)),
        Fact("busiest", core(busiest)[0], note=core(busiest)[1]),
        Fact("idlest", core(idlest)[0], note=core(idlest)[1]),
        Fact("stretch max", fmt.duration(balance.stretch_max_ns)),
        Fact("Jain", fmt.ratio(balance.jain)),
    ]
