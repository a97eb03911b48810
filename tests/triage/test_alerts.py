"""Alerts: hysteresis, no data, the same numbers as `check`, owners, and rows bounded."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusetui.analysis.expression.judge import BREACHED, HOLDS, SHORT, judge
from fusetui.analysis.expression.observe import observe
from fusetui.analysis.expression.rows import Rows
from fusetui.analysis.expression.rule import parse_rule
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import build_batch
from fusetui.triage import alert_rows
from fusetui.triage.alert import Alert, Alerts, AlertState, step
from fusetui.triage.alert_rows import RecentBatches, newest_rows
from fusetui.triage.owners import OwnerRule, Owners

SECOND = 1_000_000_000
ALERT = Alert("slow", parse_rule("p50(queue_wait) < 5ms"), 10 * SECOND, 2 * SECOND, 3 * SECOND, owner="nobody")


def executions(at_s: float, wait_ms: float, n: int = 50, stream: str = "prefill") -> pa.RecordBatch:
    """n executions that ended within a second up to at_s, each waited wait_ms."""
    end = (at_s * SECOND - np.arange(n)[::-1] * (SECOND // n)).astype(np.int64)
    start = end - 1_000_000
    rows = {"kind": "execution", "name": "k", "stream": stream, "device": np.zeros(n, np.int32)}
    rows |= {"core": (np.arange(n) % 4).astype(np.int32), "request": np.arange(n)}
    return build_batch({**rows, "enqueue_ns": start - int(wait_ms * 1e6), "start_ns": start, "end_ns": end})


def stepped(verdicts: list[str]) -> list[str]:
    """What happens with a verdict a second."""
    state, happened = AlertState(ALERT), []
    for second, verdict in enumerate(verdicts):
        after = step(state, verdict, second * SECOND)  # type: ignore[arg-type]
        if (after.raised_ns is None) != (state.raised_ns is None):
            happened.append(f"{'cleared' if after.raised_ns is None else 'raised'} {second}")
        state = after
    return happened


def test_it_is_raised_after_for_and_cleared_after_clear() -> None:
    assert stepped([HOLDS] + [BREACHED] * 4 + [HOLDS] * 5) == ["raised 3", "cleared 8"]


def test_it_does_not_flap() -> None:
    assert stepped([BREACHED, HOLDS] * 10) == []
    assert stepped([BREACHED] * 3 + [HOLDS, BREACHED] * 10) == ["raised 2"]


def test_no_data_neither_raises_nor_clears_and_what_was_waited_for_begins_anew() -> None:
    assert stepped([BREACHED, BREACHED, SHORT, BREACHED, BREACHED]) == []
    assert stepped([BREACHED] * 3 + [SHORT] * 20) == ["raised 2"]
    assert stepped([BREACHED] * 3 + [HOLDS] * 3 + [SHORT] + [HOLDS] * 3) == ["raised 2"]


@given(st.lists(st.sampled_from([BREACHED, HOLDS, SHORT]), max_size=60))
def test_whatever_comes_raises_and_clears_take_turns(verdicts: list[str]) -> None:
    happened = [one.split()[0] for one in stepped(verdicts)]
    assert happened == ["raised", "cleared"] * (len(happened) // 2) + ["raised"] * (len(happened) % 2)


def test_what_it_observed_is_told() -> None:
    alerts = Alerts([ALERT])
    events = []
    for second in range(1, 6):
        events += alerts.look([executions(s, 9.0) for s in range(1, second + 1)], Header(), second * SECOND)
    (event,) = events
    assert (event.what, event.at_ns, event.since_ns) == ("raised", 3 * SECOND, 1 * SECOND)
    assert event.says == "p50(queue_wait) 9.00 ms, n 150"
    assert event.as_dict()["rule"] == "p50(queue_wait) < 5ms"
    assert "hooks" not in event.as_dict()


def test_without_rows_there_is_no_data() -> None:
    alerts = Alerts([ALERT, Alert("launch", parse_rule("p50(launch) < 1ms"))])
    assert alerts.look([], Header(), SECOND) == []
    assert all(state.no_data for state in alerts.states)
    alerts.look([executions(2, 9.0)], Header(), 2 * SECOND)
    assert [state.no_data for state in alerts.states] == [False, True]
    assert "no row has a launch" in alerts.states[1].says


def test_only_the_time_it_looks_over_counts() -> None:
    batches = [executions(1, 9.0), executions(30, 1.0)]
    assert newest_rows(batches, Header(), 30 * SECOND, 10 * SECOND).scope().observe(ALERT.rule.node.measure).n == 50
    assert newest_rows(batches, Header(), 1 * SECOND, 10 * SECOND).scope().observe(ALERT.rule.node.measure).value == 9e6


def test_the_owner_is_of_the_alert_else_of_owners_toml() -> None:
    owners = Owners((OwnerRule("sched-team", "queueing", (("stream", "pre*"),)),))
    known = {"for_ns": 0, "of_class": "queueing", "subject": "prefill", "subject_kind": "stream"}
    named = Alert("a", ALERT.rule, owner="me", **known)  # type: ignore[arg-type]
    found = [
        Alerts([alert], owners) for alert in (named, Alert("b", ALERT.rule, **known), Alert("c", ALERT.rule, for_ns=0))
    ]  # type: ignore[arg-type]
    assert [alerts.look([executions(1, 9.0)], Header(), SECOND)[0].owner for alerts in found] == [
        "me",
        "sched-team",
        "",
    ]


RULES = (
    "p50(latency) < 5ms", "p95(queue_wait) < 1ms", "mean(service) > 1us", "max(queue_wait) < 3ms", "rate > 3",
    "count(executions) > 3", "count(requests) = 0", "imbalance < 0.3", "busy < 2", "depth < 3", "share(planned) > 0.5",
    "p95(queue_wait) < 1ms where stream ~ prefill", "fairness > 0.5", "p50(launch) < 1us", "burst < 2",
)  # fmt: skip


@pytest.mark.parametrize("text", RULES)
@pytest.mark.parametrize("still_open", [0, 7])
def test_an_alert_observes_what_check_does(text: str, still_open: int) -> None:
    batches = [executions(1, 2.0), executions(1.5, 0.5, stream="decode")]
    if still_open:
        since = np.arange(2 * SECOND, 2 * SECOND + still_open)
        opened = {"kind": "execution", "name": "k", "stream": "prefill", "enqueue_ns": since}
        batches.append(build_batch({**opened, "request": np.arange(900, 900 + still_open)}))
    rule, plain = parse_rule(text), Rows(batches, Header())
    rows = newest_rows(batches, Header(), 3 * SECOND, 60 * SECOND)
    seen = judge(rule, lambda c: rows.scope(c.where).observe(c.measure))
    wanted = judge(rule, lambda c: observe(c.measure, plain.scope(c.where)))
    assert [part.observed for part in seen.parts] == [part.observed for part in wanted.parts]
    assert seen.verdict == wanted.verdict


def test_a_count_over_more_rows_than_are_looked_at_is_no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alert_rows, "MAX_ROWS", 120)
    batches = [executions(second, 1.0) for second in range(1, 6)]
    rows = newest_rows(batches, Header(), 5 * SECOND, 60 * SECOND, 120)
    assert rows.cut
    assert sum(map(len, rows.batches)) == 120
    seen = rows.scope().observe(parse_rule("count(executions) < 3").node.measure)  # type: ignore[union-attr]
    assert (seen.value, seen.why) == (None, "more rows came in that time than an alert looks at: use a rate")
    assert rows.scope().observe(parse_rule("p50(queue_wait) < 3ms").node.measure).value == 1e6  # type: ignore[union-attr]


def test_recent_batches_are_bounded_in_time_and_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    recent = RecentBatches(10 * SECOND)
    for second in range(1, 61):
        recent.add(executions(second, 1.0))
    assert 10 <= len(recent.batches) <= 12
    assert recent.newest_ns == 60 * SECOND
    monkeypatch.setattr(alert_rows, "MAX_ROWS", 120)
    crowded = RecentBatches(10 * SECOND)
    for _ in range(50):
        crowded.add(executions(1, 1.0))
    assert sum(map(len, crowded.batches)) == 150
