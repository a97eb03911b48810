"""Moments: what stands, where the keys go, what line two and the scrubber say of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fake_feed import END, SECOND, START, FakeFeed
from fake_snapshot import T0, fake_snapshot
from shell_app import make_app
from test_shell_screens import screen_text, settle

from fusetui.analysis.snapshot import Mark
from fusetui.app.bookmarks import Bookmarks
from fusetui.app.line_two import with_moments
from fusetui.app.lookout import Lookout, Seen
from fusetui.app.moments import Moment, beside, change_moment, standing
from fusetui.app.session import Session
from fusetui.app.verdict import Verdict

SHOWN = replace(fake_snapshot(1), marks=())
AT = SHOWN.now_ns - 2 * SECOND
ROSE = change_moment("latency", AT, 22_100_000, 38_000_000)
BACK = change_moment("latency", AT + SECOND, 38_000_000, 22_000_000)
RAISED = Moment(AT, "alert", "alert slow raised: p99(latency) 38 ms", "slow", bad=True)


def test_a_change_says_from_what_to_what() -> None:
    assert (ROSE.text, ROSE.bad) == ("p95 latency 22.1 → 38.0 ms", True)
    assert not BACK.bad


def test_only_what_got_worse_and_stayed_so_stands() -> None:
    assert standing([ROSE], SHOWN) == [ROSE]
    assert standing([ROSE, BACK], SHOWN) == []
    assert standing([replace(ROSE, at_ns=SHOWN.window_start_ns - 1)], SHOWN) == []
    assert standing([replace(ROSE, at_ns=SHOWN.now_ns + 1)], SHOWN) == []
    halfway = change_moment("latency", AT + SECOND, 38_000_000, 30_000_000)
    assert standing([ROSE, halfway], SHOWN) == [ROSE]
    worse = change_moment("latency", AT + SECOND, 38_000_000, 60_000_000)
    assert standing([ROSE, worse], SHOWN) == [ROSE]
    cleared = Moment(AT + 1, "alert", "alert slow cleared", "slow")
    assert standing([RAISED, cleared], SHOWN) == []
    other = replace(ROSE, of="queue wait", at_ns=AT + 5)
    assert standing([ROSE, BACK, other, RAISED], SHOWN) == [RAISED, other]


def test_the_neighbour_is_the_nearest_that_way() -> None:
    places = [Moment(at, "mark", str(at)) for at in (10, 20, 30)]
    assert beside(places, 20, 1) == places[2]
    assert beside(places, 20, -1) == places[0]
    assert beside(places, 30, 1) is None


def test_line_two_says_since_when() -> None:
    calm = Verdict("calm", "requests p99 38 ms")
    says = with_moments(calm, SHOWN, [ROSE])
    assert says.severity == "warn"
    assert says.text.startswith("p95 latency 22.1 → 38.0 ms since ")
    assert "not confirmed yet" in with_moments(calm, SHOWN, [replace(ROSE, sure=False)]).text
    assert with_moments(calm, SHOWN, [ROSE, BACK]) == calm
    assert with_moments(calm, SHOWN, [RAISED]).text.startswith("alert slow since ")
    breach = Verdict("breach", "p99 over SLO")
    assert with_moments(breach, SHOWN, [RAISED, ROSE]).text.startswith("p99 over SLO; p95 latency 22.1 → 38.0 ms since")
    assert with_moments(breach, SHOWN, [RAISED]).severity == "breach"


def session_with(moments: tuple[Moment, ...], folder: Path, *, replay: bool) -> Session:
    feed = FakeFeed(replace(SHOWN, marks=(Mark(T0 - SECOND, "deploy"),)), replay=replay)
    session = Session(feed, Bookmarks("test", folder))
    session.lookout = Lookout(feed, lambda: None)
    session.lookout.seen = Seen(moments=moments)
    return session


def test_the_keys_go_from_moment_to_moment(tmp_path: Path) -> None:
    early, late = replace(ROSE, at_ns=START + 30 * SECOND), replace(RAISED, at_ns=END - 1)
    session = session_with((early, late), tmp_path, replay=True)
    transport = session.transport
    assert transport is not None
    assert session.next_moment(-1).startswith("deploy · ")
    assert session.next_moment(-1).startswith("p95 latency 22.1 → 38.0 ms · ")
    assert transport.state().position_ns == early.at_ns + 4 * SHOWN.slot_ns
    assert session.next_moment(-1) == "no anomaly before this"
    assert session.next_moment(1).startswith("deploy · ")
    assert session.next_moment(1).startswith("alert slow raised")
    assert session.next_moment(1) == "no anomaly after this"
    assert not transport.state().playing


def test_a_live_view_tells_the_newest(tmp_path: Path) -> None:
    live = session_with((ROSE,), tmp_path, replay=False)
    told = live.next_moment(1)
    assert told.startswith(("p95 latency", "deploy"))
    assert "a live source has no past to move in" in told


async def test_moments_are_on_the_scrubber_and_counted(tmp_path: Path) -> None:
    feed = FakeFeed(SHOWN, replay=True)
    app = make_app(feed, tmp_path)
    app.session.lookout = Lookout(feed, lambda: None)
    app.session.lookout.seen = Seen(moments=(ROSE, RAISED))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        lines = screen_text(app).split("\n")
        assert "●1 ▲1" in lines[-2]
        await pilot.press("A")
        await settle(pilot)
        assert ("seek", AT + 4 * SHOWN.slot_ns) in feed.source.transport.calls  # type: ignore[union-attr]
