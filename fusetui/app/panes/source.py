"""The source: what comes in, what was lost, and what it cannot tell."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.charts.facts import Fact, draw_facts
from fusetui.app.palette import Ink
from fusetui.app.pane import Pane
from fusetui.telemetry.source import ProducerHealth

_INKS = {
    "live": Ink.OK,
    "playing": Ink.OK,
    "paused": Ink.ACCENT,
    "waiting": Ink.DIM,
    "ended": Ink.DIM,
    "reconnecting": Ink.WARN,
    "hung": Ink.WARN,
    "lost": Ink.BREACH,
    "failed": Ink.BREACH,
}
_MARKS = {"live": "✓", "playing": "✓", "reconnecting": "▲", "hung": "▲", "lost": "✗", "failed": "✗"}


class SourcePane(Pane):
    TITLE = "Source"
    HELP = """Where the telemetry comes from and how healthy the way of it is.

rate      events per second of trace time over the window; taken in: events per second of wall time lately
lag       how far the newest event is behind the source's clock
dropped   rows of whole batches not taken in because reading was behind
rejected  batches that failed validation; the last error says which column of which batch
bad rows  rows left out for impossible times (end before start)
producers the connections, files or devices inside the source
missing   what this source cannot tell here, and how to get it
Blind to  what a producer never sent."""

    def title(self, snapshot: Snapshot | None) -> str:
        return self.TITLE if snapshot is None else f"{self.TITLE} · {snapshot.health.name}"

    def draw(self, canvas: Canvas, snapshot: Snapshot) -> None:
        y = draw_facts(canvas, _facts(snapshot), value_cells=9)
        health = snapshot.health
        lines: list[tuple[str, int]] = [(text, Ink.DIM) for text in (health.detail,) if text]
        if health.last_error:
            lines.append((f"✗ {health.last_error}", Ink.BREACH))
        after: list[tuple[str, int]] = [(f"— {text}", Ink.DIM) for text in health.missing]
        area = canvas.view(0, y, canvas.width, canvas.height - y)
        lines += _producers(health.producers, area.width, area.height - len(lines) - len(after)) + after
        _draw_lines(area, lines)


def _producers(producers: Sequence[ProducerHealth], width: int, room: int) -> list[tuple[str, int]]:
    """A line each; where one is too long two each if there is room, else without what the mark says."""
    heads: list[str] = [
        f"{_MARKS.get(p.state, '·')} {p.name}  {p.state}  {fmt.count(p.rows).strip()}" for p in producers
    ]
    inks: list[int] = [_INKS[p.state] for p in producers]
    whole = [f"{head}  {p.detail}".rstrip() for head, p in zip(heads, producers, strict=True)]
    if all(cell_len(line) <= width for line in whole):
        return list(zip(whole, inks, strict=True))
    two = [
        (line, ink)
        for head, p, ink in zip(heads, producers, inks, strict=True)
        for line in (head, *([f"  {p.detail}"] if p.detail else []))
    ]
    if len(two) <= room:
        return two
    short = [
        f"{_MARKS.get(p.state, '·')} {p.name}  {'' if p.state == 'live' else f'{p.state}  '}{p.detail}".rstrip()
        for p in producers
    ]
    return list(zip(short, inks, strict=True))


def _draw_lines(canvas: Canvas, lines: list[tuple[str, int]]) -> None:
    room = canvas.height
    hidden = len(lines) - room
    for y, (text, ink) in enumerate(lines[:room]):
        if hidden > 0 and y == room - 1:
            canvas.put(0, y, f"… {hidden + 1} more", Ink.DIM)
        else:
            canvas.put(0, y, fmt.clip(text, canvas.width), ink)


def _facts(snapshot: Snapshot) -> list[Fact]:
    health = snapshot.health
    lost = health.dropped_rows or health.dropped_batches
    return [
        Fact("state", f"{_MARKS.get(health.state, '')} {health.state}".strip(), _INKS[health.state]),
        Fact("rate", fmt.rate(snapshot.rows_per_s)),
        Fact("taken in", fmt.rate(snapshot.ingest_per_s)),
        Fact("rows", fmt.count(health.rows) + "  "),
        Fact("bytes", fmt.size(health.bytes_in)),
        Fact("lag", fmt.duration(health.lag_ns)),
        Fact("dropped", fmt.count(health.dropped_rows) + "  ", Ink.WARN if lost else Ink.FG),
        Fact("rejected", fmt.count(health.rejected_batches) + "  ", Ink.WARN if health.rejected_batches else Ink.FG),
        Fact("bad rows", fmt.count(health.bad_rows) + "  ", Ink.WARN if health.bad_rows else Ink.FG),
        Fact("kept raw", fmt.count(snapshot.raw_rows) + "  "),
    ]
