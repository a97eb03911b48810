"""The first two lines: where the data comes from, how time runs, what is lost, what fusetui costs; then the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len

from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.canvas import Canvas
from fusetui.app.frame import Frame
from fusetui.app.glyphs import Glyphs
from fusetui.app.line import Line
from fusetui.app.palette import Ink
from fusetui.telemetry.text import safe_text

_STATES: Final = {
    "waiting": ("waiting", Ink.DIM),
    "live": ("live", Ink.OK),
    "playing": ("playing", Ink.OK),
    "paused": ("PAUSED", Ink.ACCENT),
    "ended": ("ended", Ink.DIM),
    "reconnecting": ("reconnecting", Ink.WARN),
    "lost": ("LOST", Ink.BREACH),
    "hung": ("HUNG", Ink.BREACH),
    "failed": ("FAILED", Ink.BREACH),
}
_HERE: Final = frozenset({"live", "playing", "ended"})
"""States of a connection inside a source that need no look: what has ended said so."""
_LEAST_TEXT: Final = 60
_SECOND_NS: Final = 1_000_000_000
_TENTHS_NS: Final = 59 * _SECOND_NS
_WHOLE_SECONDS_NS: Final = 3600 * _SECOND_NS
_VERDICT_INKS: Final = {
    "ok": Ink.OK,
    "calm": Ink.DIM,
    "warn": Ink.WARN,
    "breach": Ink.BREACH,
    "unknown": Ink.DIM,
}


@dataclass(frozen=True, slots=True)
class Field:
    """One piece of the title bar; `rank`: lower stays longer when room is short."""

    text: str
    ink: int
    rank: int


def title_fields(frame: Frame, glyphs: Glyphs, brief: bool) -> list[Field]:
    """The pieces of the title bar in order; brief: for a narrow screen."""
    state = _state(frame, glyphs)
    fields = [] if brief else [Field("fusetui", Ink.DIM, 7)]
    fields += [Field(fmt.clip(frame.title, 24 if brief else 36), Ink.STRONG, 1), state]
    snapshot = frame.snapshot
    if snapshot is None:
        return fields
    clock = snapshot.header.clock
    window = frame.window_ns or snapshot.now_ns - snapshot.window_start_ns
    # As many decimals as the window deserves, one at least where there is room: time that runs is seen to run.
    span = min(window, _TENTHS_NS) if not brief or window < _SECOND_NS else _WHOLE_SECONDS_NS
    fields.append(Field(fmt.moment(snapshot.now_ns, span, clock), Ink.FG, 1))
    fields.append(Field(f"{'win' if brief else 'window'} {_window(window)}", Ink.FG, 3))
    if snapshot.filter_text:
        text = safe_text(snapshot.filter_text, 200)
        fields.append(Field(f"filter {fmt.clip(text, 16 if brief else 32)}", Ink.ACCENT, 1))
    # Live: what comes in now; a replay: what the trace held then.
    rate = snapshot.ingest_per_s if snapshot.transport is None else snapshot.rows_per_s
    fields.append(Field(f"{fmt.count(rate).strip():>5} ev/s", Ink.FG, 4))
    if snapshot.health.lag_ns is not None and snapshot.transport is None:
        lag_s = snapshot.health.lag_ns / 1e9
        fields.append(Field(f"lag {fmt.age(lag_s):>4}", Ink.WARN if lag_s > 5 else Ink.FG, 5))
    fields.append(_lost(snapshot, glyphs))
    fields += _alerts(frame, glyphs)
    if frame.recording_failed:
        why = frame.recording_failed.partition(": ")[2]
        fields.append(Field(f"{glyphs.warn} {fmt.clip(why, 48)}", Ink.BREACH, 0))
    elif frame.recorded is not None:
        fields.append(Field(f"rec {fmt.count(frame.recorded).strip()}", Ink.ACCENT, 2))
    if frame.cpu is not None and frame.bytes_per_s is not None:
        own = f"self {frame.cpu * 100:4.1f}% {frame.bytes_per_s / 1000:4.0f} kB/s"
        fields.append(Field(own, Ink.DIM, 8))
    if frame.slowed:
        fields.append(Field(f"slow terminal: {frame.hz:g} Hz, {frame.skipped} skipped", Ink.WARN, 2))
    return fields


def _state(frame: Frame, glyphs: Glyphs) -> Field:
    snapshot = frame.snapshot
    if frame.held:
        return Field("PAUSED (source goes on)", Ink.ACCENT, 0)
    if frame.paused:
        return Field("PAUSED", Ink.ACCENT, 0)
    if snapshot is None:
        return Field("waiting for data", Ink.DIM, 0)
    transport, state = snapshot.transport, snapshot.health.state
    if transport is not None and state in ("playing", "paused", "ended", "live", "waiting"):
        if transport.at_end and not transport.playing:
            return Field("following", Ink.OK, 0) if transport.growing else Field("ended", Ink.DIM, 0)
        loop = " loop" if transport.loop else ""
        return Field(f"{glyphs.play} {transport.speed:g}×{loop}", Ink.OK, 0)
    word, ink = _STATES[state]
    producers = snapshot.health.producers
    if len(producers) < 2:
        return Field(word, ink, 0)
    # Of several hosts one may be gone while the source goes on: said where it is seen on every screen and size.
    away = [one for one in producers if one.state not in _HERE]
    if not away or state != "live":
        return Field(f"{word} {len(producers) - len(away)}/{len(producers)}", ink, 0)
    first = f"{fmt.clip(away[0].name, 20)} {away[0].state}"
    more = f" +{len(away) - 1}" if len(away) > 1 else ""
    return Field(f"{glyphs.warn} {len(producers) - len(away)}/{len(producers)} live: {first}{more}", Ink.WARN, 0)


def _lost(snapshot: Snapshot, glyphs: Glyphs) -> Field:
    health = snapshot.health
    lost = health.dropped_batches + health.rejected_batches
    rows = health.dropped_rows + health.bad_rows
    if not lost and not rows:
        return Field("lost 0", Ink.FG, 3)
    amount = f"{fmt.count(rows).strip()}" if rows else f"{fmt.count(lost).strip()} batches"
    return Field(f"{glyphs.warn} lost {amount}", Ink.WARN, 0)


def _alerts(frame: Frame, glyphs: Glyphs) -> list[Field]:
    """How many are raised, or why nobody watches them."""
    seen = frame.watched
    if seen is None:
        return []
    if seen.problem:
        return [Field(f"{glyphs.warn} alerts: {fmt.clip(seen.problem, 40)}", Ink.WARN, 2)]
    n = sum(state.raised_ns is not None for state in seen.alerts)
    return [Field(f"{glyphs.warn} {n} alert{'s' * (n > 1)}", Ink.BREACH, 0)] if n else []


def _window(ns: int) -> str:
    return fmt.duration(ns).strip().replace(".00", "").replace(".0 ", " ")


def fit_fields(fields: list[Field], width: int, gap: int) -> list[Field]:
    """Those that fit in `width` cells, the highest ranks left out first."""
    fields = list(fields)
    while len(fields) > 1 and sum(_cells(f) for f in fields) + gap * (len(fields) - 1) + 2 > width:
        fields.remove(max(fields, key=lambda field: field.rank))
    return fields


def _cells(field: Field) -> int:
    return cell_len(field.text)


class TitleBar(Line):
    """Line one."""

    def draw(self, canvas: Canvas, frame: Frame | None) -> None:
        if frame is None:
            return
        brief = canvas.width < 100
        separator = "  " if brief else " │ "
        fields = fit_fields(title_fields(frame, canvas.glyphs, brief), canvas.width, len(separator))
        x = 1
        for number, field in enumerate(fields):
            if number:
                x = canvas.put(x, 0, separator, Ink.GRID)
            x = canvas.put(x, 0, field.text, field.ink)


class VerdictLine(Line):
    """Line two."""

    def draw(self, canvas: Canvas, frame: Frame | None) -> None:
        if frame is None:
            return
        verdict = frame.verdict
        glyphs = canvas.glyphs
        mark = {"ok": glyphs.ok, "warn": glyphs.warn, "breach": glyphs.breach}.get(verdict.severity, "·")
        ink = _VERDICT_INKS[verdict.severity]
        x = canvas.put(1, 0, f"{mark} ", ink)
        loud = verdict.severity in ("warn", "breach")
        room = canvas.width - x - 1
        hint = verdict.hint if room - cell_len(verdict.hint) >= _LEAST_TEXT else ""
        if hint:
            canvas.put_right(canvas.width - 1, 0, hint, Ink.ACCENT)
            room -= cell_len(hint) + 2
        canvas.put(x, 0, fmt.clip(verdict.text, room), ink if loud else Ink.FG)
