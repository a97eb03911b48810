"""How often the plan fitted, slot by slot, and what it all came to."""

from __future__ import annotations

import numpy as np

from fusetui.analysis.mapping import MappingDetail
from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.axis import Scale
from fusetui.app.charts.facts import Fact, draw_facts
from fusetui.app.charts.line import Series, draw_lines
from fusetui.app.charts.resample import Floats
from fusetui.app.charts.ways import WAY_INKS
from fusetui.app.palette import Ink
from fusetui.app.panes.common import shown, time_span
from fusetui.app.panes.mapping_common import BucketPane, cost, times

_CHART_FROM = 4
_FACT_CELLS = 8


class MappingSharesPane(BucketPane):
    TITLE = "Shares and what they cost"
    HELP = """Shares of planned, adapted and fallback over time, and the measures of the whole window.

Lines      of the executions that carry a mapping and ended in the slot; a gap is a slot without any
accuracy   Σ n min(t, t of the best way) / Σ n t over planned work that also ran otherwise; 1 is the best
gain       Σ n t planned / Σ n t - 1 - switching / Σ n t over adapted work that also ran planned
fb cost    Σ n (t - t of the best other way) over work that fell back; with − the fallback was the faster one
padding    Σ tokens that ran / Σ tokens asked for; recompiles with the time they took
t          p50 of a way (a plan with a mapping) from 5 runs on; n beside a value: executions it rests on
Columns    plan, shape, mapping, name, group, batch, request, start_ns, end_ns
Blind to   ways that never ran: an accuracy of 1 is the best of what was tried, not the best there is."""

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        detail = snapshot.mapping_detail
        facts = _facts(detail)
        room = canvas.height - _CHART_FROM
        used = draw_facts(canvas.view(0, 0, canvas.width, max(1, room)), facts, _FACT_CELLS, 8) if room >= 1 else 0
        _draw_shares(canvas.view(0, used, canvas.width, canvas.height - used), snapshot, detail)


def _facts(detail: MappingDetail) -> list[Fact]:
    totals = detail.totals
    n = {name: f"n {fmt.count(count).strip()}" if count else "" for name, count in (
        ("accuracy", totals.accuracy_n), ("gain", totals.gain_n), ("cost", totals.fallback_n),
        ("padding", totals.padding_n),
    )}  # fmt: skip
    return [
        Fact("accuracy", fmt.ratio(totals.accuracy), Ink.STRONG, n["accuracy"]),
        Fact("gain", fmt.signed(totals.gain), Ink.STRONG, n["gain"]),
        Fact("fb cost", cost(totals.fallback_ns), Ink.STRONG, n["cost"]),
        Fact("padding", times(totals.padding), Ink.FG, n["padding"]),
        Fact("compiles", fmt.count(totals.compiles)),
        Fact("stall", fmt.duration(totals.stall_ns if totals.compiles else None)),
    ]


def share_series(detail: MappingDetail) -> Floats:
    """[3, S] shares of planned, adapted and fallback among executions that carry a mapping, NaN: none."""
    counts = detail.counts_by_slot[:, :, :3].sum(axis=0).T.astype(np.float64)
    total = counts.sum(axis=0)
    shares: Floats = np.divide(counts, total, out=np.full(counts.shape, np.nan), where=total > 0)
    return shares


def _draw_shares(canvas: Canvas, snapshot: Snapshot, detail: MappingDetail) -> None:
    shares = shown(snapshot, share_series(detail))
    whole = detail.counts.sum(axis=0)[:3]
    told = int(whole.sum())
    if not told:
        canvas.put(0, 0, fmt.clip("no execution carries a mapping (column mapping)", canvas.width), Ink.DIM)
        return
    lines = [
        Series(shares[i] * 100, f"{name} {fmt.percent(int(whole[i]) / told)}", WAY_INKS[i], thick=i == 2)
        for i, name in enumerate(("planned ", "adapted ", "fallback"))
    ]
    marks = snapshot.slot_start_ns[detail.compiles_by_slot > 0].tolist() if detail.compiles_by_slot.any() else ()
    draw_lines(canvas, list(reversed(lines)), scale=Scale(0.0, 100.0), time=time_span(snapshot), marks=marks)
