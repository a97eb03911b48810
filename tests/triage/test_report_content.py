"""What a report says, as plain data."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from reportmaterial import EPOCH_NS, MS, even, material, requests, stepped, told

from fusetui.analysis.expression.rows import Rows
from fusetui.analysis.expression.rule import parse_rule
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import build_batch
from fusetui.triage.finding import Slice
from fusetui.triage.report.blocks import Table, Text
from fusetui.triage.report.moments import position, utc
from fusetui.triage.report.reproduce import Commands
from fusetui.triage.report.sections_baseline import baseline_section
from fusetui.triage.report.trend import first_bad, no_tail
from fusetui.triage.report.words import change, of_kind

STEP_NS = EPOCH_NS + 500 * 10 * MS + 40 * MS
"""The end of the first slow item of `stepped`."""


def test_times_are_utc_with_seconds() -> None:
    assert utc(EPOCH_NS, "epoch") == "2026-03-01 03:10:41.250Z"
    assert utc(12_345_678_901, "trace") == "+12.3 s"
    assert utc(None, "epoch") == "—"
    assert utc(1 << 62, "epoch") == "2116-02-20 23:53:38.427Z"
    assert utc(-5, "epoch") == "-5.0 ns"


def test_positions_hold_what_they_name() -> None:
    assert position(1_500_000_999, 500_000_000) == "1s"
    assert position(1_500_000_999, 500_000_000, up=True) == "1.000001s"
    assert position(7, 10) == "0s"


def test_the_first_bad_moment_with_an_objective_is_the_first_of_two_slots_over_it() -> None:
    made = material(requests(stepped(), Header(slo_ns=10 * MS)))
    at_ns, how = first_bad(made)
    assert at_ns is not None
    assert 0 <= STEP_NS - at_ns < made.snapshot.slot_ns
    assert how == "p99 over the objective in 2 slots in a row"


def test_one_slot_over_the_objective_is_no_bad_moment() -> None:
    latency = np.full(1000, 2 * MS)
    latency[500] = 40 * MS
    made = material(requests(latency, Header(slo_ns=10 * MS)))
    assert first_bad(made) == (None, "p99 was over the objective in 1 slots, never in 2 in a row")


def test_a_window_that_begins_bad_says_so() -> None:
    made = material(requests(np.full(1000, 40 * MS), Header(slo_ns=10 * MS)))
    at_ns, how = first_bad(made)
    assert at_ns == made.snapshot.window_start_ns
    assert "began earlier" in how


def test_the_first_bad_moment_without_an_objective_is_a_stage_or_a_change_point() -> None:
    at_ns, how = first_bad(material(requests(stepped(), Header())))
    assert at_ns is not None
    assert abs(at_ns - STEP_NS) <= 500 * MS
    assert "budget" in how or "change point" in how


def test_nothing_bad_is_no_moment() -> None:
    report = told(requests(even(), Header()))
    assert report["trend"]["first_bad_ns"] is None
    assert report["verdict"]["state"] == "quiet"
    assert "p99 of request latency 2.00 ms" in report["verdict"]["sentence"]


def test_a_tail_close_to_the_median_is_flat() -> None:
    """1.59 ms and from the middle on 1.61 ms: a change point, and nothing to act on."""
    latency = np.random.default_rng(3).integers(1_590_000, 1_592_000, 1000)
    latency[500:] += 20_000
    made = material(requests(latency, Header()))
    assert made.changes
    assert first_bad(made)[0] is None
    verdict = told(requests(latency, Header()))["verdict"]
    assert verdict["state"] == "quiet"
    assert "the tail is flat" in verdict["sentence"]


def test_all_slow_from_early_on_is_not_flat() -> None:
    assert no_tail(material(requests(stepped(200, 60), Header()))) == ""


def test_phases_of_a_profiled_program_are_no_tail() -> None:
    """Short copies while it loads, then longer kernels: p95 of all executions rises, none is slower than its like."""
    n = 2000
    start = EPOCH_NS + np.arange(n) * 30_000
    took = np.where(np.arange(n) < 1000, 3_000, 20_000) + np.arange(n) % 7
    rows = {"kind": "execution", "name": pa.array(np.where(np.arange(n) < 1000, "fill", "gemm")), "start_ns": start,
            "end_ns": start + took, "device": np.zeros(n, np.int32), "stream": "0"}  # fmt: skip
    made = material(Rows([build_batch(rows)], Header()))
    assert any(change.after_ns > 2 * change.before_ns for change in made.changes)
    assert first_bad(made)[0] is None
    assert "phase" in first_bad(made)[1]


def test_a_tail_that_grew_is_never_quiet() -> None:
    rows = requests(stepped(), Header())
    report = told(rows, triage=material(requests(even(), Header())).triage)
    assert report["verdict"]["state"] == "warn"
    assert "no rule says why" in report["verdict"]["sentence"]


def test_too_few_items_are_not_judged() -> None:
    report = told(requests(np.full(3, 2 * MS), Header()))
    assert report["verdict"]["state"] == "not enough data"
    assert report["verdict"]["sentence"].endswith("needs n ≥ 60, have 3")


def test_the_measures_are_those_of_the_rows() -> None:
    report = told(requests(stepped(), Header()))
    assert report["measures"]["latency_ns"]["n"] == 1000
    assert report["measures"]["latency_ns"]["p50"] == 2 * MS
    assert report["measures"]["latency_ns"]["p99"] == 40 * MS
    assert sum(report["trend"]["n"]) == 1000
    assert max(v for v in report["trend"]["p99_ns"] if v is not None) == 40 * MS
    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_figures_stand_where_they_say() -> None:
    report = told(requests(stepped(), Header(slo_ns=10 * MS)))
    own = [figure for figure in report["figures"] if figure["command"] == "fusetui report trace.arrows --json"]
    assert {figure["at"].partition(".")[0] for figure in own} == {"trend", "findings"}
    for figure in own:
        value = report
        for key in figure["at"].split("."):
            value = value[int(key)] if isinstance(value, list) else value[key]
        assert value == figure["value"], figure["at"]


def test_the_same_change_is_one_decision_with_a_guardrail_that_can_be_judged() -> None:
    report = told(requests(stepped(), Header(slo_ns=10 * MS)))
    changes = [one["change"] for one in report["decisions"]]
    assert changes
    assert len(changes) == len(set(changes))
    for one in report["decisions"]:
        assert one["owner"]
        assert one["rollback"]
        assert parse_rule(one["guardrail"]).text == one["guardrail"]
        assert "p99(latency) < 10ms" in one["guardrail"]


def test_a_large_change_that_cannot_be_judged_never_reads_as_none() -> None:
    move = {"of": "latency", "quantile": "p99", "before": 1 * MS, "after": 24 * MS, "ratio": 24.0, "low": None,
            "high": None, "moved": 0, "why": "too few"}  # fmt: skip
    made = {"before": "old", "verdict": "no change seen", "why": "", "moves": [move], "totals": [], "notes": [],
            "judged": ["p50"], "not_judged": "", "alike": [], "counted": [], "parts": [],
            "kernels": [], "latency_of": "request", "command": "fusetui compare"}  # fmt: skip
    section = baseline_section({"comparison": made})
    assert section is not None
    table, text = section.blocks[1:3]
    assert isinstance(text, Text)
    assert text.text == "Of the latency without an interval, so not judged: p99 24.0×."
    assert isinstance(table, Table)
    assert table.rows == (("latency p99", "1.00 ms", "24.0 ms", "24.0×", "—", "not known"),)


@pytest.mark.parametrize(
    ("ratio", "text"), [(1.0, "+0.0 %"), (0.5, "-50.0 %"), (1.999, "+99.9 %"), (2.0, "2.00×"), (None, "—")]
)
def test_changes_in_words(ratio: float | None, text: str) -> None:
    assert change(ratio) == text


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [(6.63e6, "duration", "6.63 ms"), (0.88, "share", "88.0 %"), (219_910.0, "number", "219,910"), (None, "size", "—"),
     (0.31, "number", "0.31")],
)  # fmt: skip
def test_measures_in_words(value: float | None, kind: str, text: str) -> None:
    assert of_kind(value, kind) == text


def test_a_rollout_without_quality_and_baseline_is_no_go() -> None:
    rollout = told(requests(np.full(1000, 2 * MS), Header()))["rollout"]
    assert rollout["go"] is False
    assert len(rollout["missing"]) == 2


@pytest.mark.parametrize(
    ("window_ns", "only", "shown", "expected"),
    [
        (None, "", Slice(EPOCH_NS, 1 << 61), "fusetui replay trace.arrows"),
        (
            None,
            "core = 3",
            Slice(EPOCH_NS + 10**9, 1 << 61, 'stream = "a"'),
            "fusetui replay trace.arrows --from 1s --filter '(core = 3) and (stream = \"a\")'",
        ),
        (None, "", Slice(EPOCH_NS, EPOCH_NS + 10**9), "fusetui replay trace.arrows --to 1s"),
    ],
)
def test_replays_show_the_slice(window_ns: int | None, only: str, shown: Slice, expected: str) -> None:
    made = material(requests(stepped(), Header()), window_ns=window_ns, filter=only, first_ns=EPOCH_NS)
    made = material(
        requests(stepped(), Header()), window_ns=window_ns, filter=only, first_ns=EPOCH_NS, snapshot=_from(made)
    )
    assert Commands(made).replay(shown) == expected


def _from(made: object) -> object:
    """Its snapshot, as if the window had begun with the first request."""
    from dataclasses import replace

    return replace(made.snapshot, window_start_ns=EPOCH_NS)  # type: ignore[attr-defined]


def test_hostile_names_cannot_leave_their_argument() -> None:
    made = material(requests(stepped(), Header()), spec="a b;$(touch x)'.arrows", window_ns=5, filter="name = 'x'")
    assert Commands(made).snapshot() == (
        "fusetui snapshot 'a b;$(touch x)'\"'\"'.arrows' --window 5ns --filter 'name = '\"'\"'x'\"'\"'' --json"
    )
