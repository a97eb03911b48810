"""Several hosts in one source: each with its clock offset, wrapped where need be; who is away is in line one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_snapshot import fake_snapshot

from fusetui.analysis.snapshot import Snapshot
from fusetui.app.canvas import Canvas
from fusetui.app.frame import Frame
from fusetui.app.glyphs import BRAILLE
from fusetui.app.panes.source import SourcePane
from fusetui.app.titlebar import Field, fit_fields, title_fields
from fusetui.app.verdict import Verdict
from fusetui.telemetry.source import ProducerHealth, State

DETAIL = "all came; clock +1.2 ±3.1 ms"


def hosts(*states: State) -> Snapshot:
    base = fake_snapshot(0)
    producers = tuple(
        ProducerHealth(f"host{i}@vm (tcp client {i})", one, 2_330, DETAIL) for i, one in enumerate(states)
    )
    health = replace(base.health, state="live", producers=producers, missing=(), last_error="", detail="")
    return replace(base, health=health, transport=None)


def lines(snapshot: Snapshot, width: int, height: int) -> list[str]:
    canvas = Canvas(width, height)
    SourcePane().draw(canvas, snapshot)
    return [canvas.line_text(y).rstrip() for y in range(height)]


def state_of(snapshot: Snapshot, width: int = 80) -> str:
    frame = Frame(snapshot, snapshot.taken_s, "tcp:127.0.0.1:9000", Verdict("ok", ""))
    fields: list[Field] = fit_fields(title_fields(frame, BRAILLE, brief=width < 100), width, 2)
    return next(field.text for field in fields if "live" in field.text)


def test_with_room_a_host_has_one_line() -> None:
    told = lines(hosts("live", "live"), 90, 12)
    assert f"✓ host0@vm (tcp client 0)  live  2.33k  {DETAIL}" in told


def test_a_host_that_does_not_fit_wraps_to_two_lines() -> None:
    told = lines(hosts("live", "lost"), 56, 14)
    at = told.index("✗ host1@vm (tcp client 1)  lost  2.33k")
    assert told[at + 1] == f"  {DETAIL}"


def test_without_room_for_two_lines_the_clock_is_still_told() -> None:
    told = lines(hosts("live", "live", "live"), 56, 8)
    assert told[-3:] == [f"✓ host{i}@vm (tcp client {i})  {DETAIL}" for i in range(3)]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize(
    ("states", "said"),
    [
        (("live",), "live"),
        (("live", "live", "live"), "live 3/3"),
        (("live", "ended"), "live 2/2"),
        (("live", "lost", "live"), "▲ 2/3 live: host1@vm (tcp clien… lost"),
        (("hung", "lost", "live"), "▲ 1/3 live: host0@vm (tcp clien… hung +1"),
    ],
)
def test_line_one_says_how_many_are_there_and_who_is_not(states: tuple[State, ...], said: str, width: int) -> None:
    assert state_of(hosts(*states), width) == said
