"""From the median to the tail, step by step: which stage adds how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fusetui.analysis.attribution.parts import PARTS, STAGE_OF, STAGES
from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.palette import DATA, Ink
from fusetui.app.pane import Pane
from fusetui.app.panes.tail_drivers import TAIL_TEACHES

if TYPE_CHECKING:
    from fusetui.analysis.attribution.parts import TailTime

_LABEL: Final = 15
_VALUE: Final = 9
_LESS: Final = "▒"
_LEAST: Final = 0.002


@dataclass(frozen=True, slots=True)
class Step:
    """A bar from `low` to `high` ns; by_ns: what it adds, None of the first and the last, which stand on the ground."""

    label: str
    low: float
    high: float
    by_ns: float | None = None


class TailWaterfallPane(Pane):
    TITLE = "From the median to the tail"
    HELP = """Mean latency of the median, what each stage adds to it (█) or takes off (▒), and that of the slowest.

Items     requests, or executions when there are no requests; the slowest: at or above p95; median: from p45 to p55
Stages    compile plan: padding and fallback; runtime queue: gate, queue and launch; core placement: imbalance and
          contention; completion: planned time and the rest. Where there is room each part has its own line.
Left out  parts that add less than 0.2 % of the tail, where each part has its own line
◀ first   the stage that left its budget first: an objective shared out as the calm part of the window spends it, or
          without an objective the median and spread of that part
Columns   enqueue_ns, start_ns, end_ns, launch_ns, request, batch, shape, mapping, plan, core
Blind to  causes: what a stage adds is not always its own doing."""

    def trust(self, snapshot: Snapshot) -> str:
        time = snapshot.tail_time
        return "" if time is None else f"n {fmt.count(time.tail.n).strip()} {time.of}s"

    def empty(self, snapshot: Snapshot) -> str | None:
        return None if snapshot.tail_time is not None else TAIL_TEACHES

    def row_query(self, snapshot: Snapshot) -> RowQuery | None:
        return RowQuery(order="latency", kind=snapshot.tail_time.of) if snapshot.tail_time else None

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        time = snapshot.tail_time
        if time is None:
            return
        steps = waterfall(time, by_part=True)
        if len(steps) > canvas.height:
            steps = fewer(waterfall(time, by_part=False), canvas.height)
        first = STAGES[time.first] if time.first is not None else ""
        top = max(step.high for step in steps)
        for y, step in enumerate(steps[: canvas.height]):
            _draw_step(canvas, y, step, top, mark=step.label == first)
        if first and len(steps) < canvas.height:
            left = time.stages[time.first].left_ns if time.first is not None and time.stages else None
            since = "" if left is None else f" at {fmt.moment(left, 3600e9, snapshot.header.clock).strip()}"
            text = f"{canvas.glyphs.first} {first} left its budget first{since}"
            canvas.put(0, len(steps), fmt.clip(text, canvas.width), Ink.WARN)


def waterfall(time: TailTime, *, by_part: bool) -> list[Step]:
    """Median, then what the tail has more or less of, by stage and in the order of the pipeline, then the tail."""
    tail, median = time.tail, time.median
    steps = [Step("median", 0.0, median.latency_ns)]
    at = median.latency_ns
    for label, by_ns in _parts(time) if by_part else _stages(time):
        steps.append(Step(label, min(at, at + by_ns), max(at, at + by_ns), by_ns))
        at += by_ns
    return [*steps, Step("slowest", 0.0, tail.latency_ns)]


def fewer(steps: list[Step], most: int) -> list[Step]:
    """At most `most` steps (three at least): the smallest ones between both ends put together, as the last of them."""
    spare = len(steps) - max(most, 3)
    if spare <= 0:
        return steps
    middle = steps[1:-1]
    small = sorted(middle, key=lambda step: abs(step.by_ns or 0.0))[: spare + 1]
    at, found = steps[0].high, [steps[0]]
    for step in [one for one in middle if one not in small]:
        found.append(Step(step.label, min(at, at + (step.by_ns or 0.0)), max(at, at + (step.by_ns or 0.0)), step.by_ns))
        at += step.by_ns or 0.0
    others = sum(step.by_ns or 0.0 for step in small)
    return [*found, Step("others", min(at, at + others), max(at, at + others), others), steps[-1]]


def _stages(time: TailTime) -> list[tuple[str, float]]:
    pairs = zip(STAGES, time.tail.by_stage_ns, time.median.by_stage_ns, strict=True)
    return [(name, tail - median) for name, tail, median in pairs]


def _parts(time: TailTime) -> list[tuple[str, float]]:
    order = sorted(range(len(PARTS)), key=lambda part: STAGE_OF[part])
    more = [(PARTS[part], time.tail.mean_ns[part] - time.median.mean_ns[part]) for part in order]
    return [(name, ns) for name, ns in more if abs(ns) >= _LEAST * time.tail.latency_ns]


def _draw_step(canvas: Canvas, y: int, step: Step, top: float, *, mark: bool) -> None:
    ground = step.by_ns is None
    label = f"{step.label} {canvas.glyphs.first}" if mark else step.label
    canvas.put(0, y, fmt.fit(label, _LABEL), Ink.WARN if mark else Ink.STRONG if ground else Ink.FG)
    room = canvas.width - _LABEL - _VALUE - 1
    if room >= 4 and top > 0:
        begin = round(step.low / top * room)
        end = max(round(step.high / top * room), begin + (step.high > step.low))
        less = step.by_ns is not None and step.by_ns < 0
        glyph = canvas.glyphs.text(_LESS) if less else canvas.glyphs.rows[-1]
        canvas.put(_LABEL + min(begin, room - 1), y, glyph * (end - begin), Ink.DIM if ground else DATA)
    sign = "" if step.by_ns is None else "−" if step.by_ns < 0 else "+"
    value = step.high if step.by_ns is None else abs(step.by_ns)
    canvas.put_right(canvas.width, y, f"{sign}{fmt.duration(value).lstrip()}", Ink.STRONG if ground else Ink.FG)
