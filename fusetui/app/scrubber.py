"""The line of time: how busy the capture was, the window now shown, bookmarks, marks, anomalies and the position."""

from __future__ import annotations

from typing import Final

import numpy as np
from textual import events
from textual.message import Message

from fusetui.analysis.snapshot import Ints, Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.frame import Frame
from fusetui.app.line import Line
from fusetui.app.palette import Ink

_MARK: Final = ("◆", Ink.WARN)
_CHANGE: Final = ("●", Ink.BREACH)
_BACK: Final = ("○", Ink.OK)
_RAISED: Final = ("▲", Ink.BREACH)
_CLEARED: Final = ("✓", Ink.OK)


class Scrubber(Line):
    """Density of events over the whole capture (or over the window of a live source); a click goes there."""

    class Seek(Message):
        """A person clicked at this share (0..1) of the capture."""

        def __init__(self, fraction: float) -> None:
            super().__init__()
            self.fraction = fraction

    _bar: tuple[int, int] = (0, 0)

    def on_click(self, event: events.Click) -> None:
        start, width = self._bar
        if width > 1 and start <= event.x < start + width:
            self.post_message(self.Seek((event.x - start) / (width - 1)))

    def draw(self, canvas: Canvas, frame: Frame | None) -> None:
        snapshot = frame.snapshot if frame else None
        if frame is None or snapshot is None:
            canvas.put(1, 0, "no data yet", Ink.DIM)
            return
        first, last = _range(snapshot)
        span = max(1, last - first)
        x, right = 1, canvas.width - 1
        if frame.paused:
            x = canvas.put(x, 0, "PAUSED ", Ink.ACCENT)
        clock = snapshot.header.clock
        if canvas.width >= 70:
            x = canvas.put(x, 0, f"{fmt.moment(first, span, clock)} ", Ink.DIM)
            right = canvas.put_right(right, 0, fmt.moment(last, span, clock), Ink.DIM) - 1
        note = _counts(frame, snapshot)
        if note and right - x > 40:
            right = canvas.put_right(right, 0, note, Ink.ACCENT) - 1
        self._bar = (x, max(0, right - x))
        if right - x >= 2:
            _draw_bar(canvas, x, right - x, frame, snapshot)


def _range(snapshot: Snapshot) -> tuple[int, int]:
    transport = snapshot.transport
    if transport is None:
        return snapshot.window_start_ns, snapshot.now_ns
    return transport.start_ns, transport.end_ns


def _counts(frame: Frame, snapshot: Snapshot) -> str:
    parts = []
    if frame.bookmarks:
        parts.append(f"⚑{len(frame.bookmarks)}")
    for glyph, _ in (_MARK, _CHANGE, _RAISED):
        n = sum(1 for _, one, _ in _signs(frame, snapshot) if one == glyph)
        parts += [f"{glyph}{n}"] if n else []
    if snapshot.transport is not None and snapshot.transport.growing:
        parts.append("growing")
    return " ".join(parts)


def _draw_bar(canvas: Canvas, x: int, width: int, frame: Frame, snapshot: Snapshot) -> None:
    rows = snapshot.rows_by_slot if frame.density is None else frame.density
    levels = heights(rows, width)
    ramp = canvas.glyphs.columns
    first, last = _range(snapshot)
    inks = np.full(width, Ink.DIM)
    left, right = (column(ns, first, last, width) for ns in (snapshot.window_start_ns, snapshot.now_ns))
    if snapshot.transport is not None:
        inks[left : right + 1] = Ink.ACCENT
    canvas.paint(x, 0, "".join(ramp[level] for level in levels), inks)
    for at_ns, glyph, ink in _signs(frame, snapshot):
        if first <= at_ns <= last:
            canvas.put(x + column(at_ns, first, last, width), 0, glyph, ink)
    for bookmark in frame.bookmarks:
        if first <= bookmark.t1_ns <= last:
            canvas.put(x + column(bookmark.t1_ns, first, last, width), 0, "⚑", Ink.ACCENT)
    if snapshot.transport is not None:
        if left > 0:
            canvas.put(x + left - 1, 0, "[", Ink.STRONG)
        canvas.put(x + min(right + 1, width - 1), 0, "]", Ink.STRONG)


def _signs(frame: Frame, snapshot: Snapshot) -> list[tuple[int, str, int]]:
    """(time, glyph, ink) of what is worth seeing; what matters most is drawn last, and so seen where it is crowded."""
    marks = {mark.at_ns for mark in snapshot.marks} | {one.at_ns for one in frame.moments if one.kind == "mark"}
    found: list[tuple[int, str, int]] = [(at_ns, *_MARK) for at_ns in sorted(marks)]
    found += [(one.at_ns, *(_CHANGE if one.bad else _BACK)) for one in frame.moments if one.kind == "change"]
    found += [(one.at_ns, *(_RAISED if one.bad else _CLEARED)) for one in frame.moments if one.kind == "alert"]
    return found


def column(ns: int, first: int, last: int, width: int) -> int:
    """The bar's cell of a time, kept inside the bar."""
    share = (ns - first) / max(1, last - first)
    return max(0, min(width - 1, int(share * width)))


def heights(rows: Ints, width: int) -> list[int]:
    """`rows` per bin as heights 0..8 in `width` cells, 0 only for nothing; by square root, so that quiet times show."""
    if not rows.size or width <= 0:
        return [0] * max(0, width)
    starts = np.arange(width) * rows.size // width
    sums = (np.add.reduceat(rows, starts) if rows.size >= width else rows[starts]).astype(np.float64)
    top = sums.max()
    if top <= 0:
        return [0] * width
    levels: list[int] = np.ceil(np.sqrt(np.maximum(sums, 0) / top) * 8).astype(np.int64).tolist()
    return levels
