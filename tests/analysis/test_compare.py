"""Before and after: what moved by value, why, and that the same work is no change."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from fusetui.analysis.compare import compare, observe_change
from fusetui.analysis.compare.alike import alike_of
from fusetui.analysis.compare.kernels import kernels_of
from fusetui.analysis.compare.moves import Move
from fusetui.analysis.compare.notes import contradictions
from fusetui.analysis.compare.plain import comparison_plain
from fusetui.analysis.compare.totals import Total
from fusetui.analysis.expression.measures import Measure
from fusetui.analysis.expression.observe import Observed
from fusetui.analysis.expression.rows import Rows, Scope
from fusetui.analysis.filter import parse_filter
from fusetui.analysis.intervals import Ratio, quantile_ratio
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import build_batch

GAP = 50_000_000


def served(seed: int, n: int = 600, kernels: tuple[str, ...] = ("a", "b"), slow: float = 1.0, build: str = "1",
           wait_ns: float = 1e6, sizes: tuple[int, ...] = (16, 64)) -> Scope:  # fmt: skip
    """Requests GAP apart: each waits, then runs its kernels one after another; kernel k takes k/2 more, by size."""
    rng = np.random.default_rng(seed)
    columns: dict[str, list[object]] = {
        key: [] for key in ("kind", "name", "enqueue_ns", "start_ns", "end_ns", "request", "shape")
    }
    for i in range(n):
        begin = i * GAP
        at = begin + int(rng.exponential(wait_ns))
        first, size = at, sizes[i % len(sizes)]
        for number, kernel in enumerate(kernels):
            took = int(size * 20_000 * (1 + number / 2) * slow * rng.lognormal(0, 0.1))
            values = ("execution", kernel, begin, at, at + took, i, f"{size}x8 > {size}x4 f32")
            for column, value in zip(columns.values(), values, strict=True):
                column.append(value)
            at += took
        values = ("request", "r", begin, first, at, i, None)
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
    batch = build_batch({key: pa.array(values) for key, values in columns.items()}, rows=len(columns["kind"]))
    return Rows([batch], Header(clock="trace", build={"driver": build})).scope()


def test_a_trace_against_itself_is_no_change() -> None:
    side = served(1)
    made = compare(side, side)
    assert made.verdict == "no change seen"
    assert "p50 is within" in made.why
    assert {move.ratio.ratio for move in made.moves if not move.ratio.why} == {1.0}
    assert (made.contradictions, made.notes, made.changes) == ([], [], [])
    assert [row.moved for row in made.alike] == [0, 0, 0]


def test_the_same_work_drawn_anew_is_no_change() -> None:
    assert compare(served(1), served(2)).verdict == "no change seen"


def test_slower_kernels_are_seen_and_named() -> None:
    before, after = served(1), served(2, slow=1.3, build="2")
    made = compare(before, after)
    assert made.verdict == "slower"
    moves = {(move.field, move.q): move for move in made.moves}
    assert moves["service", 0.95].moved == 1
    assert moves["queue_wait", 0.5].moved == 0
    assert moves["service", 0.95].ratio.ratio == pytest.approx(1.3, rel=0.03)
    assert moves["latency", 0.999].ratio.why == "p99.9 needs n ≥ 3,000, have 600 and 600"
    total, small, _ = made.alike
    assert (total.name, small.name) == ("", "16x8")
    assert total.ratio == pytest.approx(np.exp(np.log(1.3)), rel=0.15)
    assert total.moved == 1
    assert made.notes == ["build driver: 1 → 2"]


def test_parts_add_up_to_the_mean_latency() -> None:
    before, after = served(1), served(2, wait_ns=3e6)
    made = compare(before, after)
    every = [row for row in made.parts if row.cohort == "all"]
    shift = sum((row.ratio.after or 0) - (row.ratio.before or 0) for row in every)
    assert shift == pytest.approx(after.requests.latency.mean() - before.requests.latency.mean(), abs=1)
    assert every[0].part == "queue"
    assert every[0].ratio.moved == 1
    assert every[0].ratio.ratio == pytest.approx(3.0, rel=0.2)


def test_kernels_by_request() -> None:
    before, after = served(1, kernels=("a", "b", "c", "c")), served(2, kernels=("a", "fused", "c"))
    rows = {row.name: row for row in kernels_of(before, after)}
    assert {name: (row.launches.before, row.launches.after) for name, row in rows.items()} == {
        "a": (1, 1), "b": (1, 0), "c": (2, 1), "fused": (0, 1)
    }  # fmt: skip
    assert rows["a"].per == "request"
    assert rows["a"].moved == 0
    assert rows["b"].moved == -1
    assert rows["fused"].moved == 1
    assert rows["c"].shift_ns == pytest.approx(-40 * 20_000 * 2.5, rel=0.05)
    assert rows["c"].launches.ratio == 0.5
    assert rows["c"].each.ratio == pytest.approx(2 / 2.25, rel=0.1)


def test_like_for_like_sees_what_a_mix_of_sizes_drowns() -> None:
    before, after = (served(i, n=40, slow=slow, wait_ns=1e4, sizes=(16, 640)) for i, slow in ((1, 1.0), (2, 1.1)))
    made = compare(before, after)
    assert made.verdict == "no change seen"
    assert alike_of(before, after)[0].moved == 1
    assert alike_of(before, after)[0].ratio == pytest.approx(1.1, rel=0.05)


def test_other_shapes_are_not_the_same_work() -> None:
    made = compare(served(1), served(2, sizes=(16, 128)))
    assert any("drift of shapes" in note for note in made.notes)


def move(field: str, q: float, moved: int) -> Move:
    return Move(field, q, Ratio(1000, 1000), moved)


def total(name: str, before: float, after: float) -> Total:
    return Total(Measure(name), Observed(before, 9), Observed(after, 9))


@pytest.mark.parametrize(
    ("moves", "totals", "told"),
    [
        ([move("latency", 0.95, 1)], {"count(executions)": total("x", 100, 50), "count(requests)": total("x", 10, 10)},
         "fewer launches, yet the tail"),
        ([move("latency", 0.99, 1)], {"mean(latency)": total("x", 100, 80)}, "mean latency fell, yet its tail rose"),
        ([move("latency", 0.5, -1), move("latency", 0.99, 1)], {}, "opposite ways"),
        ([], {"busy": total("x", 0.5, 0.7), "rate": total("x", 100, 101)}, "busier at the same throughput"),
        ([], {"padding": total("x", 2, 1.2), "share(fallback)": total("x", 0, 0.2)}, "more fell back"),
        ([move("service", 0.95, -1), move("queue_wait", 0.95, 1)], {}, "waits got longer"),
    ],
)  # fmt: skip
def test_contradictions(moves: list[Move], totals: dict[str, Total], told: str) -> None:
    (line,) = contradictions(moves, totals)
    assert told in line
    assert contradictions([], {name: total("x", 1, 1) for name in totals}) == []


def test_half_the_requests_with_fewer_launches_is_no_contradiction() -> None:
    totals = {"count(executions)": total("x", 100, 50), "count(requests)": total("x", 10, 5)}
    assert contradictions([move("latency", 0.95, 1)], totals) == []


def test_a_change_is_told_with_the_n_that_decides() -> None:
    before, after = served(1), served(2)
    seen = observe_change(Measure("p99", "latency", 0.99, change=True), before, after, 0.001)
    assert seen.low is not None
    assert seen.high is not None
    assert seen.low < 0.001 < seen.high
    assert "about n ≥" in seen.why
    assert observe_change(Measure("padding", change=True), before, after, 0.1).value is None
    assert observe_change(Measure("count", "executions", change=True), before, after, 0.1).value == 0.0
    mean = observe_change(Measure("mean", "service", change=True), before, served(3, slow=2.0), 0.1)
    assert mean.value == pytest.approx(1.0, rel=0.05)
    assert mean.low is not None
    assert mean.low > 0.9


def test_a_change_without_an_interval_is_no_pass() -> None:
    """20 runs of 30 alike: nothing is known of p99, though the two sides are equal."""
    waits = np.repeat(np.random.default_rng(1).exponential(1e9, 20), 30).astype(np.int64)
    start = np.arange(600) * 10**12 + waits
    batch = build_batch(
        {"kind": "execution", "name": "k", "enqueue_ns": start - waits, "start_ns": start, "end_ns": start + 9}
    )
    side = Rows([batch], Header(clock="trace")).scope()
    seen = observe_change(Measure("p99", "queue_wait", 0.99, change=True), side, side, 0.1)
    assert seen.value is None
    assert seen.why.startswith("neighbours are alike")


def test_few_requests_are_still_what_latency_is_of() -> None:
    made = compare(served(1, n=12, kernels=("a", "b")), served(2, n=12, kernels=("fused",), slow=2.0))
    assert made.latency_of == "request"
    assert made.moves[1].ratio.why == "p95 needs n ≥ 60, have 12 and 12"


def test_other_kernels_without_requests_are_not_comparable() -> None:
    before, after = (
        Rows([served(i, kernels=kernels).batches[0]], Header()).scope((parse_filter("kind = execution"),))
        for i, kernels in ((1, ("a", "b")), (2, ("fused",)))
    )
    assert compare(before, before).verdict == "no change seen"
    assert compare(before, after).verdict == "not comparable"


def test_an_empty_side_is_told() -> None:
    made = compare(served(1), Rows([], Header()).scope())
    assert made.verdict == "not enough data"
    assert comparison_plain(made)["verdict"] == "not enough data"


def test_resamplings_of_one_trace_rarely_differ() -> None:
    """Forty times two halves drawn at random from one sample: their quantiles differ by chance only."""
    whole = served(7, n=900).items.latency
    rng = np.random.default_rng(1)
    found = [
        quantile_ratio(*np.split(rng.permutation(whole), 2), 0.95, level=0.99, seed=i, independent=True).moved
        for i in range(40)
    ]
    assert sum(map(abs, found)) <= 2


def test_what_is_counted_is_told_with_both_numbers() -> None:
    made = compare(served(1, kernels=("a", "b", "c", "c")), served(2, kernels=("a", "fused")))
    assert made.counted == ["executions per request 4 → 2 (-50.0%)"]
    assert any("fewer executions per request" in note for note in made.notes)
    assert compare(served(1), served(2)).counted == []


def test_other_shapes_of_the_same_requests_are_another_fusion() -> None:
    """The first operand is of the request: it stays, while the shape as a whole is another."""
    after = served(2)
    renamed = [
        batch.set_column(at, batch.schema.field(at), _with_shape(batch, " f32", " bf16"))
        for batch in after.batches
        for at in [batch.schema.get_field_index("shape")]
    ]
    made = compare(served(1), Rows(renamed, after.header).scope())
    (note,) = [line for line in made.notes if "drift of shapes" in line]
    assert note.endswith("of executions only, the requests have the same: fused, split or padded differently")


def _with_shape(batch: pa.RecordBatch, old: str, new: str) -> pa.Array:
    words = [None if shape is None else shape.replace(old, new) for shape in batch["shape"].to_pylist()]
    return pa.array(words, pa.string()).dictionary_encode().cast(batch.schema.field("shape").type)


def test_names_without_shapes_are_strata_too() -> None:
    sides = [served(1), served(2, slow=1.3)]
    bare = []
    for side in sides:
        at = side.batches[0].schema.get_field_index("shape")
        field = side.batches[0].schema.field(at)
        dropped = [b.set_column(at, field, pa.nulls(len(b), field.type)) for b in side.batches]
        bare.append(Rows(dropped, side.header).scope((parse_filter("kind = execution"),)))
    total, *rows = alike_of(*bare)
    assert {row.name for row in rows} == {"a", "b"}
    assert total.ratio == pytest.approx(1.3, rel=0.15)


def test_neighbours_that_are_alike_widen_what_is_told_of_all_together() -> None:
    """Slow and fast spells of 30 requests: as independent items they would seem to tell more than they do."""
    flags = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        sides = []
        for _ in range(2):
            side = served(int(rng.integers(1 << 30)), n=300, wait_ns=1e3)
            spell = np.repeat(rng.lognormal(0, 0.5, 10), 30)
            batch = side.batches[0]
            request = batch["request"].to_numpy()
            start, end = batch["start_ns"].to_numpy(), batch["end_ns"].to_numpy()
            enqueue = batch["enqueue_ns"].to_numpy()
            later = enqueue + ((end - enqueue) * spell[request]).astype(np.int64)
            began = enqueue + ((start - enqueue) * spell[request]).astype(np.int64)
            for name, values in (("start_ns", began), ("end_ns", later)):
                at = batch.schema.get_field_index(name)
                batch = batch.set_column(at, batch.schema.field(at), pa.array(values))
            sides.append(Rows([batch], side.header).scope())
        flags += bool(alike_of(*sides)[0].moved)
    assert flags <= 5
