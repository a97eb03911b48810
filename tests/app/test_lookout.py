"""The lookout: alerts of a live source are raised, logged and told; a capture is looked through once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from fake_feed import FakeFeed
from fake_snapshot import fake_snapshot

from fusetui.analysis.expression.rule import parse_rule
from fusetui.app import lookout as lookout_module
from fusetui.app.look_back import LookBack
from fusetui.app.lookout import Lookout, Watching
from fusetui.app.watching import watching
from fusetui.data import data_dir
from fusetui.importers.open import open_capture
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.schema import build_batch
from fusetui.triage.alert import Alert, Alerts
from fusetui.triage.alert_log import AlertLog

SECOND = 1_000_000_000
NOW = fake_snapshot(1).now_ns


def waits(wait_ms: float, n: int = 40) -> pa.RecordBatch:
    end = NOW - np.arange(n)[::-1] * 1_000_000
    rows = {"kind": "execution", "name": "k", "stream": "s", "start_ns": end - 1000, "end_ns": end}
    return build_batch({**rows, "enqueue_ns": end - 1000 - int(wait_ms * 1e6)})


def until(true: Callable[[], bool]) -> None:
    for _ in range(400):
        if true():
            return
        time.sleep(0.02)
    pytest.fail("it never came")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookout_module, "LOOK_S", 0.02)
    monkeypatch.setattr(lookout_module, "MAX_SHARE", 10.0)


ALERT = Alert("slow", parse_rule("p50(queue_wait) < 5ms"), for_ns=0, clear_ns=0)


@pytest.mark.usefixtures("quick")
def test_a_live_source_raises_and_clears(tmp_path: Path) -> None:
    feed = FakeFeed(fake_snapshot(1))
    feed.batches = [waits(9.0)]
    feed.source.now_ns = lambda: NOW  # type: ignore[method-assign]
    log = AlertLog(tmp_path / "a.jsonl")
    watch = Lookout(feed, lambda: Watching(Alerts([ALERT]), log))
    watch.start()
    until(lambda: any(state.raised_ns for state in watch.seen.alerts))
    assert [(one.kind, one.of, one.bad) for one in watch.seen.moments] == [("alert", "slow", True)]
    feed.batches = [waits(1.0)]
    until(lambda: len(watch.seen.moments) == 2)
    watch.stop()
    assert [json.loads(line)["what"] for line in log.path.read_text().splitlines()] == ["raised", "cleared"]
    assert watch.seen.problem == ""


@pytest.mark.usefixtures("quick")
def test_a_file_that_cannot_be_read_is_said_and_the_rest_goes_on() -> None:
    def broken() -> Watching | None:
        raise TelemetryError("alerts.toml", "not TOML")

    watch = Lookout(FakeFeed(fake_snapshot(1)), broken)
    watch.start()
    until(lambda: watch.seen.problem != "")
    time.sleep(0.1)
    assert watch.seen.problem == "alerts.toml: not TOML"
    watch.stop()


@pytest.mark.usefixtures("quick")
def test_whatever_fails_is_said_and_ends_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = FakeFeed(fake_snapshot(1))
    monkeypatch.setattr(feed, "raw", lambda: 1 // 0)
    watch = Lookout(feed, lambda: None)
    watch.start()
    until(lambda: watch.seen.problem != "")
    assert watch.seen.problem.startswith("watching stopped: ZeroDivisionError")
    watch.stop()


def sample_moments(*alerts: Alert) -> list[tuple[str, str, bool]]:
    trace = open_capture([data_dir("sample_traces") / "torch-serving.arrows"], memory_bytes=1 << 28)
    found = LookBack(trace, Alerts(alerts) if alerts else None, lambda _: False).moments()
    trace.close()
    assert list(found) == sorted(found)
    return [(one.kind, one.of or one.text, one.bad) for one in found]


def test_a_capture_is_looked_through_for_marks_and_changes() -> None:
    found = sample_moments()
    assert [of for kind, of, _ in found if kind == "mark"] == ["load starts", "burst begins", "burst ends"]
    assert [(of, bad) for kind, of, bad in found if kind == "change"] == [
        ("queue wait", True), ("queue wait", False)
    ]  # fmt: skip
    # The rise lies beside the mark that says why.
    assert found.index(("change", "queue wait", True)) <= found.index(("mark", "burst begins", False)) + 1


def test_a_capture_shows_what_alerts_would_have_been_raised() -> None:
    slow = Alert("slow", parse_rule("p95(latency) < 400ms"), 5 * SECOND, 2 * SECOND, 2 * SECOND)
    never = Alert("never", parse_rule("p95(latency) < 60s"), 5 * SECOND, 2 * SECOND, 2 * SECOND)
    found = [(of, bad) for kind, of, bad in sample_moments(slow, never) if kind == "alert"]
    assert found == [("slow", True), ("slow", False)]


def test_it_can_be_given_up() -> None:
    trace = open_capture([data_dir("sample_traces") / "torch-serving.arrows"], memory_bytes=1 << 28)
    assert LookBack(trace, None, lambda _: True).moments() == ()
    trace.close()


def test_alerts_come_from_the_config_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert watching(None, "key") is None
    (tmp_path / "config" / "fusetui").mkdir(parents=True)
    (tmp_path / "config" / "fusetui" / "alerts.toml").write_text('[[alert]]\nname = "a"\nrule = "hit > 90%"\n')
    found = watching(None, "key")
    assert found is not None
    assert [state.alert.name for state in found.alerts.states] == ["a"]
    assert found.log is not None
    assert found.log.path == tmp_path / "state" / "fusetui" / "alerts" / "key.jsonl"
