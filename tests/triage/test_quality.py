"""Quality before and after: from files, from counters, judged by value; and what blocks a rollout."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reportmaterial import EPOCH_NS, MS, requests
from triage_rows import counter

from fusetui.analysis.compare import Comparison, compare
from fusetui.analysis.expression.rows import Rows, Scope
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.triage.quality import Series, better_of, is_quality, readings_of, series_of
from fusetui.triage.quality_file import series_from
from fusetui.triage.rollout import rollout_of, rollout_plain

S = 1_000_000_000
DAY_NS = 86_400 * S


def side(seed: int = 1, factor: float = 1.0, n: int = 4000, late_ns: int = 0, **counters: object) -> Scope:
    """Requests of about 2 ms, `late_ns` after the epoch of the tests, and counters read beside them."""
    latency = (np.random.default_rng(seed).integers(1_900_000, 2_000_001, n) * factor).astype(np.int64)
    batches = requests(latency, Header()).scope().batches
    at = EPOCH_NS + np.arange(10) * S
    more = [counter(name.replace("_", " "), at, value) for name, value in counters.items()]
    rows = Rows([*batches, *more], Header()).scope()
    return _later(rows, late_ns) if late_ns else rows


def _later(scope: Scope, by_ns: int) -> Scope:
    moved = []
    for batch in scope.batches:
        for name in ("enqueue_ns", "start_ns", "end_ns"):
            at = batch.schema.get_field_index(name)
            if at >= 0 and batch.column(at).null_count == 0:
                batch = batch.set_column(at, batch.schema.field(at), [v + by_ns for v in batch.column(at).to_pylist()])
        moved.append(batch)
    return Rows(moved, scope.header).scope()


def series(before: list[float], after: list[float], better: str = "higher") -> dict[str, Series]:
    return {"x": Series(np.array(before), np.array(after), better, "file")}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "quality", "better"),
    [("Top-1 accuracy", True, "higher"), ("eval_loss", True, "lower"), ("error rate", True, "lower"),
     ("requests failed", True, "lower"), ("rejected requests", True, "lower"), ("rejections queue_full", True, "lower"),
     ("perplexity", True, "lower"), ("ROUGE1", True, "higher"), ("ECC error rate", False, "lower"),
     ("PCIe link errors", False, "lower"), ("SM active", False, "higher"), ("requests waiting", False, "higher")],
)  # fmt: skip
def test_what_tells_of_quality_and_which_way(name: str, quality: bool, better: str) -> None:
    assert (is_quality(name), better_of(name)) == (quality, better)


@pytest.mark.parametrize(
    ("before", "after", "better", "verdict", "worse_by"),
    [
        ([0.80], [0.796], "higher", "holds", 0.005),
        ([0.80], [0.780], "higher", "worse", 0.025),
        ([0.80], [0.900], "higher", "holds", -0.125),
        ([0.02], [0.03], "lower", "worse", 0.5),
        ([0.0], [0.0], "lower", "holds", None),
        ([0.0], [0.001], "lower", "worse", None),
        ([-1.0], [-1.2], "higher", "worse", 0.2),
        ([], [0.9], "higher", "missing", None),
        ([0.9], [], "higher", "missing", None),
        ([0.8] * 6, [0.8] * 6, "higher", "holds", 0.0),
        ([0.70, 0.90] * 5, [0.70, 0.90] * 5, "higher", "unclear", 0.0),
        ([0.70, 0.90] * 5, [0.30, 0.40] * 5, "higher", "worse", 0.5625),
    ],
)
def test_judged(before: list[float], after: list[float], better: str, verdict: str, worse_by: float | None) -> None:
    (one,) = readings_of(series(before, after, better))
    assert one.verdict == verdict
    assert one.worse_by == (None if worse_by is None else pytest.approx(worse_by))
    assert (one.low is None) == (min(len(before), len(after)) < 5)


def test_the_guardrail_is_a_share_of_what_was_before() -> None:
    assert readings_of(series([0.8], [0.79]), limit=0.02)[0].verdict == "holds"
    assert readings_of(series([0.8], [0.79]), limit=0.01)[0].verdict == "worse"


def test_counters_of_the_captures_are_read() -> None:
    found = series_of(side(accuracy=0.8, SM_active=50.0), side(accuracy=0.7, error_rate=np.arange(10.0)))
    assert set(found) == {"accuracy", "error rate"}
    assert found["accuracy"].after.tolist() == [0.7] * 10
    assert found["error rate"].after.tolist() == list(range(10))
    assert [one.verdict for one in readings_of(found)] == ["worse", "missing"]


def _file(folder: Path, text: str | bytes) -> Path:
    path = folder / "quality.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_a_pair_a_line(tmp_path: Path) -> None:
    text = "\ufeffName;BEFORE;after;note;better\naccuracy;76.4%;0.761;x;\n\nbleu;;30;y;higher\nheat;5;4;;lower\n"
    found, notes = series_from(_file(tmp_path, text), side(), side())
    assert notes == ()
    assert (found["accuracy"].before.tolist(), found["accuracy"].after.tolist()) == ([pytest.approx(0.764)], [0.761])
    assert (found["bleu"].before.size, found["bleu"].after.tolist()) == (0, [30.0])
    assert found["heat"].better == "lower"


def test_readings_over_time_belong_to_the_capture_they_are_in(tmp_path: Path) -> None:
    before, after = side(), side(late_ns=DAY_NS)
    text = (
        "time,name,value\n2026-03-01T03:10:45Z,accuracy,0.9\n2026-03-02T03:10:46,accuracy,0.8\n"
        f"{(EPOCH_NS + 2 * S) / 1e9},accuracy,0.7\n{EPOCH_NS + 3 * S},accuracy,nan\n2020-01-01,accuracy,0.1\n"
    )
    found, notes = series_from(_file(tmp_path, text), before, after)
    assert found["accuracy"].before.tolist() == [0.7, 0.9]
    assert found["accuracy"].after.tolist() == [0.8]
    assert notes == ("quality: 1 readings are outside of both captures, left out",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: the header is nothing; write a header line name,before,after or time,name,value"),
        ("a,b\n1,2\n", "line 1: the header is a,b"),
        ("name,before,after\n", "no readings"),
        ("name,before,after\nx,1,two\n", "line 2: after: 'two' is not a number"),
        ("name,before,after\n,1,2\n", "line 2: no name"),
        ("name,before,after,better\nx,1,2,more\n", "line 2: better is 'more'; write higher or lower"),
        ("time,name,value\n2026-03-01T03:10:00Z,x,1\n", "the captures are of the same time"),
        ("name,before,after\n" + "".join(f"n{i},1,1\n" for i in range(201)), "201 names; at most 200"),
        (b"\xff\xfe\x00", "not UTF-8"),
        ('name,before,after\n"x\x00,1,2\n', ""),
    ],
)
def test_mistakes_in_the_file_name_their_line(tmp_path: Path, text: str | bytes, said: str) -> None:
    with pytest.raises(TelemetryError, match=r"quality\.csv") as caught:
        series_from(_file(tmp_path, text), side(), side())
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_times_need_a_wall_clock_and_a_time(tmp_path: Path) -> None:
    plain = Rows(side().batches, Header(clock="trace")).scope()
    with pytest.raises(TelemetryError, match="no wall-clock time"):
        series_from(_file(tmp_path, "time,name,value\n1,x,1\n"), plain, plain)
    with pytest.raises(TelemetryError, match=r"line 2: time: 'noon' is no time"):
        series_from(_file(tmp_path, "time,name,value\nnoon,x,1\n"), side(), side(late_ns=DAY_NS))
    with pytest.raises(TelemetryError, match="no reading is within the time of either capture"):
        series_from(_file(tmp_path, "time,name,value\n1,x,1\n"), side(), side(late_ns=DAY_NS))
    with pytest.raises(TelemetryError, match="cannot be read"):
        series_from(tmp_path / "none.csv", side(), side())


def made(**after: Any) -> Comparison:
    return compare(side(1), side(2, **after))


GOOD = readings_of(series([0.8], [0.8]))


def test_go_needs_throughput_latency_and_quality() -> None:
    assert rollout_of(made(), GOOD).verdict == "go"
    assert rollout_of(made()).missing == (
        "quality: no counter of accuracy, errors or failed requests; give --quality FILE.csv",
    )
    assert rollout_of(made()).verdict == "blocked"
    assert rollout_of(None, GOOD).missing == ("before and after: no baseline was given",)
    assert rollout_plain(rollout_of(made(), GOOD))["go"] is True


def test_what_got_worse_is_no_go_and_is_named() -> None:
    slower = rollout_of(made(factor=1.5), GOOD)
    assert slower.verdict == "no go"
    assert slower.against[0].startswith("latency p50 +49.9% (+49.8% … ")
    worse = rollout_of(made(), readings_of(series([0.8], [0.7])))
    assert (worse.verdict, worse.against) == ("no go", ("quality x 0.8 → 0.7, 12.50% worse",))
    assert rollout_of(made(), GOOD, ("tail/objective",)).against == ("breached: tail/objective",)


def test_a_tail_that_cannot_be_judged_blocks() -> None:
    few = rollout_of(compare(side(1, n=100), side(2, n=100)), GOOD)
    assert (few.verdict, few.missing) == ("blocked", ("latency p99: needs n ≥ 300, have 100 and 100",))
    assert few.sentence == "blocked: missing latency p99: needs n ≥ 300, have 100 and 100"


def test_a_tail_that_may_be_much_slower_blocks_with_the_n_that_tells() -> None:
    rng = np.random.default_rng(3)
    wide = [requests((MS * rng.lognormal(1, 1, 400)).astype(np.int64) + MS, Header()).scope() for _ in range(2)]
    found = rollout_of(compare(*wide), GOOD)
    assert found.verdict == "blocked"
    assert any("is not ruled out, about n ≥ " in text for text in found.missing)


def test_fewer_requests_a_second_is_no_go() -> None:
    comparison = made()
    rate = comparison.totals["rate"]
    halved = replace(rate, after=replace(rate.after, value=(rate.before.value or 0) / 2))
    found = rollout_of(replace(comparison, totals={**comparison.totals, "rate": halved}), GOOD)
    assert found.verdict == "no go"
    assert found.against[0].startswith("throughput: 100 → 50")


def test_one_reading_missing_or_unclear_blocks() -> None:
    one_sided = rollout_of(made(), readings_of(series([0.8], [])))
    assert one_sided.missing == ("quality x: no reading after",)
    unclear = rollout_of(made(), readings_of(series([0.70, 0.90] * 5, [0.70, 0.90] * 5)))
    assert unclear.verdict == "blocked"
    assert "is not ruled out: more readings" in unclear.missing[0]


def test_a_go_on_failures_alone_says_so() -> None:
    found = rollout_of(made(), readings_of(series_of(side(failed_requests=0.0), side(failed_requests=0.0))))
    assert found.verdict == "go"
    assert "nothing here judges the answers" in found.sentence
