"""Rules: their grammar, what their measures are, and three-valued verdicts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tracerows import MS, S, batch_of

from fusetui.analysis.expression.burst import burst_of
from fusetui.analysis.expression.judge import BREACHED, HOLDS, SHORT, judge, worst
from fusetui.analysis.expression.lexer import ExpressionError
from fusetui.analysis.expression.measures import Measure
from fusetui.analysis.expression.observe import Observed, observe
from fusetui.analysis.expression.rows import Rows
from fusetui.analysis.expression.rule import Comparison, Joined, parse_rule
from fusetui.telemetry.header import Header


def rows(count: int = 400, open_n: int = 0) -> Rows:
    """Executions 10 ms apart: i waits i µs and runs 1 ms; every tenth falls back, odd ones are on stream b."""
    made = [
        {
            "enqueue_ns": i * 10 * MS,
            "start_ns": i * 10 * MS + i * 1000,
            "end_ns": i * 10 * MS + i * 1000 + MS,
            "stream": "b" if i % 2 else "a",
            "mapping": "fallback" if i % 10 == 0 else "planned",
            "dram_bytes": 1000,
        }
        for i in range(count)
    ]
    made += [{"enqueue_ns": 0, "request": 10_000 + i, "stream": "a"} for i in range(open_n)]
    return Rows([batch_of(made)], Header(clock="trace"))


def verdict(text: str, of: Rows, min_n: int = 0) -> str:
    return judge(parse_rule(text), lambda c: observe(c.measure, of.scope(c.where)), min_n).verdict


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("p99(queue_wait) < 5ms", 5e6),
        ("p99.9(wait)<1.5us", 1500.0),
        ("max(dram_bytes) <= 4MiB", 4 * 2**20),
        ("sum(dram_bytes) > 3kB", 3000.0),
        ("share(fallback) < 5%", 0.05),
        ("hit >= 0.9", 0.9),
        ("rate > 100/s", 100.0),
        ("change(p95(latency)) <= +10%", 0.1),
        ("change(rate) > -5%", -0.05),
        ("stall = 0", 0.0),
    ],
)
def test_limits_carry_units(text: str, limit: float) -> None:
    node = parse_rule(text).node
    assert isinstance(node, Comparison)
    assert node.limit == pytest.approx(limit)
    assert node.text == text


def test_where_holds_for_what_stands_before_it_in_the_same_brackets() -> None:
    node = parse_rule('(count > 1 and hit > 0 where core = 3) or busy > 0 where stream ~ "pre"').node
    assert isinstance(node, Joined)
    assert node.word == "or"
    both, busy = node.left, node.right
    assert isinstance(both, Joined)
    assert isinstance(both.left, Comparison)
    assert isinstance(busy, Comparison)
    assert [only.text for only in both.left.where] == ["core = 3", 'stream ~ "pre"']
    assert [only.text for only in busy.where] == ['stream ~ "pre"']


@pytest.mark.parametrize(
    ("text", "what", "at"),
    [
        ("", "no measure", 0),
        ("p99(queue_wait) < 5", "needs a unit", 18),
        ("p99 < 5ms", "p99 needs what it is of", 4),
        ("p100(latency) < 5ms", "no measure p100", 0),
        ("p0(latency) < 5ms", "no measure p0", 0),
        ("p99(colour) < 5ms", "expected one of: latency", 4),
        ("p99(latency < 5ms", "expected )", 12),
        ("p99(latency) ~ 5ms", "expected one of <", 13),
        ("p99(latency) < fast", "expected a number", 15),
        ("share(fallback) < 5ms", "unit %", 18),
        ("count < 5ms", "has no unit", 8),
        ("busy < 1 where", "expected a field", 14),
        ("busy < 1 where busy < 1", "no field busy", 15),
        ("busy < 1 busy < 2", "expected `and`", 9),
        ("change(change(busy)) < 1", "change of a change", 7),
        ("max(dram_bytes) < 4mib", "a size needs a unit", 18),
        ("(" * 60 + "busy < 1" + ")" * 60, "nested", 50),
        ("change(" * 250 + "busy", "change of a change", 7),
        ("__import__('os') < 1", "no measure", 0),
    ],
)
def test_errors_point_at_the_fault(text: str, what: str, at: int) -> None:
    with pytest.raises(ExpressionError) as raised:
        parse_rule(text)
    assert what in str(raised.value)
    assert raised.value.at == at


_PIECES = ("p99", "(", ")", "latency", "<", ">=", "5ms", "10%", "and", "or", "not", "where", "stream", "~", "'a'")
_MORE = ("change", "count", "busy", "'", '"', "é", "\x1b", "99", "1e400")


@given(st.lists(st.sampled_from(_PIECES + _MORE), max_size=30).map(" ".join) | st.text(max_size=80))
def test_any_text_is_a_rule_or_an_error_with_a_caret(text: str) -> None:
    caught = None
    try:
        judge(parse_rule(text), lambda c: Observed(None, 0))
    except ExpressionError as error:
        caught = error
    assert caught is None or 0 <= caught.at <= len(text)
    assert caught is None or str(caught).splitlines()[-1].strip() == "^"


def test_a_rule_is_short() -> None:
    with pytest.raises(ExpressionError, match="a rule has at most"):
        parse_rule("busy < 1 and " * 1000 + "busy < 1")


@pytest.mark.parametrize(
    ("text", "value", "n"),
    [
        ("p50(queue_wait)", 199_000.0, 400),
        ("p99(queue_wait)", 395_000.0, 400),
        ("p50(latency)", 1_199_000.0, 400),
        ("mean(queue_wait)", 199_500.0, 400),
        ("max(queue_wait)", 399_000.0, 400),
        ("min(latency)", 1_000_000.0, 400),
        ("sum(service)", 4e8, 400),
        ("sum(dram_bytes)", 400_000.0, 400),
        ("count", 400.0, 400),
        ("count(requests)", 0.0, 0),
        ("share(fallback)", 0.1, 400),
        ("hit", 0.9, 400),
        ("busy", 400 * MS / (3990 * MS + 399_000 + MS), 400),
        ("burst", 1.0, 400),
        ("rate", 400 / ((3990 * MS + 399_000 + MS) / S), 400),
    ],
)
def test_what_measures_are(text: str, value: float, n: int) -> None:
    node = parse_rule(f"{text} > 0").node
    assert isinstance(node, Comparison)
    seen = observe(node.measure, rows().scope())
    assert seen.value == pytest.approx(value)
    assert seen.n == n


def test_burst_of_two_speeds() -> None:
    """1000 B/µs for 100 µs, then 100 B/µs for 900 µs: 190,000 B in 1 ms; the peak is 1000 B/µs."""
    start, end = np.array([0, 100_000]), np.array([100_000, 1_000_000])
    moved = np.array([100_000, 90_000])
    assert burst_of(start, end, moved) == pytest.approx(1000 / 190)
    assert burst_of(start, end, moved * 0) is None


def test_verdicts() -> None:
    of = rows()
    assert verdict("p99(queue_wait) < 1ms and share(fallback) <= 10%", of) == HOLDS
    assert verdict("p99(queue_wait) < 390us", of) == BREACHED
    assert verdict("p99(queue_wait) < 390us or count = 400", of) == HOLDS
    assert verdict("not p99(queue_wait) < 390us", of) == HOLDS
    assert verdict("max(queue_wait) < 399us where stream = a", of) == HOLDS
    assert verdict("max(queue_wait) < 399us where stream = b", of) == BREACHED


@pytest.mark.parametrize(
    "text",
    [
        "p99.9(queue_wait) < 1s",
        "p99(queue_wait) < 1s where stream = a",
        "padding < 2",
        "imbalance < 9",
        "p50(latency) < 1s where stream = nowhere",
        "count < 5 where stream = nowhere",
        "mean(launch) < 1s",
        "not p99.9(queue_wait) < 1s",
        "share(fallback) < 0.1% where request = 1",
        "changes = 0 where stream = b",
    ],
)
def test_not_enough_data_is_no_pass(text: str) -> None:
    assert verdict(text, rows()) == SHORT
    assert verdict(f"({text}) and count > 0", rows()) == SHORT
    assert verdict(f"({text}) and count < 0", rows()) == BREACHED


def test_few_items_resolve_no_small_share() -> None:
    few = rows(20)
    assert verdict("share(fallback) < 40%", few) == HOLDS
    assert verdict("share(fallback) < 14%", few) == SHORT
    assert verdict("share(fallback) < 1%", few) == BREACHED


def test_min_n() -> None:
    assert verdict("p50(latency) < 1s", rows(), min_n=401) == SHORT
    assert verdict("p50(latency) < 1s", rows(), min_n=400) == HOLDS


def test_open_work_is_a_lower_bound() -> None:
    """40 of 440 still wait, 3.99 s old: p95 is at least that, whatever ended."""
    of = rows(open_n=40)
    assert verdict("p95(queue_wait) < 1ms", of) == BREACHED
    assert verdict("p95(queue_wait) < 10s", of) == SHORT
    assert verdict("p50(queue_wait) < 1ms", of) == HOLDS
    assert verdict("max(queue_wait) < 10s", of) == SHORT


def test_quantile_intervals_hold_the_value() -> None:
    seen = observe(Measure("p99", "queue_wait", 0.99), rows().scope())
    assert seen.low is not None
    assert seen.high is not None
    assert 380_000 <= seen.low < 395_000 < seen.high <= 399_000


@pytest.mark.parametrize(
    ("low", "high", "op", "wanted"),
    [(-0.2, 0.05, "<", HOLDS), (0.12, 0.4, "<", BREACHED), (-0.1, 0.4, "<", SHORT), (0.05, 0.4, ">", SHORT),
     (0.12, 0.4, ">=", HOLDS)],
)  # fmt: skip
def test_changes_are_judged_by_their_interval(low: float, high: float, op: str, wanted: str) -> None:
    rule = parse_rule(f"change(p99(latency)) {op} 10%")
    assert judge(rule, lambda c: Observed((low + high) / 2, 1000, low, high)).verdict == wanted


def test_the_worst_verdict() -> None:
    assert worst([HOLDS, SHORT, BREACHED]) == BREACHED
    assert worst([HOLDS, SHORT]) == SHORT
    assert worst([]) == HOLDS
