"""How busy every core was over the window, one glyph per core, and how unequal."""

from __future__ import annotations

import numpy as np

from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Cores, Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.bars import draw_meter
from fusetui.app.charts.heat import levels
from fusetui.app.charts.resample import Floats
from fusetui.app.palette import DATA, Ink
from fusetui.app.pane import Pane
from fusetui.app.panes.common import CORES_TEACH

_STATS_CELLS = 17
_MAX_TILE_CELLS = 8
_MAX_TILE_LINES = 4


class CoresBusyPane(Pane):
    TITLE = "Cores · busy"
    HELP = """Busy share of every core over the window: a glyph per core, in core order, light to full from 0 to 1.

Formula   busy = union of [start_ns, end_ns) of the executions on a core, over the window.
λ         max/mean - 1 of busy time over cores: 0 is perfect balance, 1 means the busiest does twice the mean.
J         Jain's index (Σb)² / (n Σb²): 1 is perfect balance; one straggler among many hardly moves it, λ does.
#         the busiest and the idlest core.
Columns   start_ns, end_ns, host, device, core (without core: per device, without device: per host)
Blind to  what a busy core achieves: waiting on memory counts as busy."""

    def title(self, snapshot: Snapshot | None) -> str:
        if snapshot is None or snapshot.cores.level == "core":
            return self.TITLE
        return f"{'Devices' if snapshot.cores.level == 'device' else 'Hosts'} · busy"

    def trust(self, snapshot: Snapshot) -> str:
        number = len(snapshot.cores.labels)
        level = snapshot.cores.level
        return f"{number} {level if number == 1 else level + 's'}"

    def empty(self, snapshot: Snapshot) -> str | None:
        return None if snapshot.cores.labels else CORES_TEACH

    def row_query(self, snapshot: Snapshot) -> RowQuery | None:
        labels, share = snapshot.cores.labels, mean_share(snapshot.cores)
        if not labels or np.isnan(share).all():
            return None
        return RowQuery(order="time", kind="execution", core_label=labels[int(np.nanargmax(share))])

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        cores = snapshot.cores
        share = mean_share(cores)
        stats = canvas.width >= 40
        room = canvas.width - (_STATS_CELLS + 2 if stats else 0)
        if len(share) <= canvas.height:
            _draw_bars(canvas.view(0, 0, room, canvas.height), cores.labels, share)
        else:
            _draw_map(canvas.view(0, 0, room, canvas.height), cores.labels, share)
        if stats:
            _draw_stats(canvas.view(room + 2, 0, _STATS_CELLS, canvas.height), cores, share)


def mean_share(cores: Cores) -> Floats:
    """[C] mean busy share of each core over the slots that have data; NaN where none has."""
    known = np.isfinite(cores.busy_share)
    number = known.sum(axis=1)
    total = np.where(known, cores.busy_share, 0.0).sum(axis=1)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def _draw_bars(canvas: Canvas, labels: tuple[str, ...], share: Floats) -> None:
    cells = min(12, max(len(label) for label in labels))
    length = canvas.width - cells - 6
    for y, (label, value) in enumerate(zip(labels, share.tolist(), strict=True)):
        canvas.put(0, y, fmt.fit(label, cells), Ink.DIM)
        if np.isfinite(value):
            draw_meter(canvas, cells + 1, y, length, value, DATA)
        canvas.put(canvas.width - 4, y, fmt.ratio(value))


def _draw_map(canvas: Canvas, labels: tuple[str, ...], share: Floats) -> None:
    """A tile per core, lines of cores labelled with their range; too many cores for that are shown by their mean."""
    count = len(share)
    label_cells = 10 if canvas.width >= 28 else 0
    width = canvas.width - label_cells
    if width <= 0 or canvas.height <= 0:
        return
    per_cell = -(-count // (width * canvas.height))
    groups = _group_mean(share, per_cell)
    per_line, wide, tall = tiles(len(groups), width, canvas.height)
    step = levels(groups, 0.0, 1.0)
    shades = " " + canvas.glyphs.shades
    for line in range(-(-len(groups) // per_line)):
        part = step[line * per_line : (line + 1) * per_line]
        chars = "".join(shades[s + 1] * wide for s in part.tolist())
        inks = np.repeat(np.where(part < 0, int(Ink.FG), Ink.HEAT_1 + part), wide)
        for y in range(line * tall, (line + 1) * tall):
            canvas.paint(label_cells, y, chars, inks)
        if label_cells:
            first, last = line * per_line * per_cell, min(count, (line + 1) * per_line * per_cell) - 1
            canvas.put(0, line * tall, fmt.fit(range_label(labels, first, last), label_cells - 1), Ink.DIM)


def tiles(count: int, width: int, height: int) -> tuple[int, int, int]:
    """(per line, cells wide, lines tall) of `count` tiles in an area: as large and square as they fit.

    A line holds a power of two of them, so that it is a recognisable part of a device.
    """
    best, best_score = (width, 1, 1), 0
    for power in range(width.bit_length()):
        per_line = 1 << power
        lines = -(-count // per_line)
        if per_line > width or lines > height:
            continue
        wide, tall = min(_MAX_TILE_CELLS, width // per_line), min(_MAX_TILE_LINES, height // lines)
        if min(wide, 2 * tall) >= best_score:
            best, best_score = (per_line, wide, tall), min(wide, 2 * tall)
    return best


def _group_mean(share: Floats, per_cell: int) -> Floats:
    if per_cell <= 1:
        return share
    starts = np.arange(0, len(share), per_cell)
    known = np.isfinite(share)
    number = np.add.reduceat(known, starts)
    total = np.add.reduceat(np.where(known, share, 0.0), starts)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def range_label(labels: tuple[str, ...], first: int, last: int) -> str:
    """`0/16–31`: the first label and what differs in the last one."""
    low, high = labels[first], labels[last]
    if first == last:
        return low
    stem = low.rfind("/") + 1
    return f"{low}–{high[stem:] if high[:stem] == low[:stem] else high}"


def _draw_stats(canvas: Canvas, cores: Cores, share: Floats) -> None:
    known = np.isfinite(share)
    busiest = int(np.nanargmax(share)) if known.any() else -1
    idlest = int(np.nanargmin(share)) if known.any() else -1
    mean = float(share[known].mean()) if known.any() else None
    rows = (
        ("λ", fmt.ratio(cores.imbalance.lambda_), ""),
        ("max", fmt.ratio(share[busiest] if busiest >= 0 else None), _at(cores, busiest)),
        ("mean", fmt.ratio(mean), ""),
        ("J", fmt.ratio(cores.imbalance.jain), ""),
        ("min", fmt.ratio(share[idlest] if idlest >= 0 else None), _at(cores, idlest)),
    )
    for y, (label, value, note) in enumerate(rows):
        canvas.put(0, y, label, Ink.DIM)
        canvas.put(5, y, value, Ink.STRONG if label == "λ" else Ink.FG)
        canvas.put(10, y, fmt.clip(note, max(0, canvas.width - 10)), Ink.DIM)


def _at(cores: Cores, index: int) -> str:
    return f"#{cores.labels[index]}" if index >= 0 else ""
