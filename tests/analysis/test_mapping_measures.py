"""Mapping measures of hand-made windows, with answers worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tracerows import MS, ListTrace, S, batch_of

from fusetui.analysis.frame import Context, snapshot_of
from fusetui.analysis.mapping import MAX_BUCKETS, MappingDetail
from fusetui.analysis.slots import Grid
from fusetui.analysis.summary import summarise_trace
from fusetui.analysis.window import Window
from fusetui.telemetry.header import Header
from fusetui.telemetry.source import SourceHealth

Row = dict[str, Any]


def detail_of(rows: list[Row], now_ns: int = S - 1, plans: dict[str, str] | None = None) -> MappingDetail:
    window = Window(Grid.of_window(S))
    window.add(batch_of(rows), None)
    header = Header(plans=plans or {})
    return snapshot_of(
        window, now_ns, Context(1, 0.0, header, SourceHealth("t", "live"), None, 0, "", 0.0)
    ).mapping_detail


def run(end_ms: float, lasts_ms: float, mapping: str | None, **other: Any) -> Row:
    end = round(end_ms * MS)
    return {"start_ns": end - round(lasts_ms * MS), "end_ns": end, "mapping": mapping, **other}


def runs(count: int, lasts_ms: float, mapping: str, **other: Any) -> list[Row]:
    return [run(100 + i, lasts_ms, mapping, **other) for i in range(count)]


def test_counts_and_time_by_plan_shape_and_slot() -> None:
    rows = [
        run(10, 2, "planned", plan="p", shape="m=8"),
        run(20, 3, "planned", plan="p", shape="m=8"),
        run(900, 4, "fallback", plan="p", shape="m=8"),
        run(30, 20, "adapted", plan="q", shape="m=16"),
        run(40, 1, None),
    ]
    found = detail_of(rows)
    assert list(zip(found.plans, found.shapes, strict=True)) == [("q", "m=16"), ("p", "m=8"), ("", "")]
    assert found.counts.tolist() == [[0, 1, 0, 0], [2, 0, 1, 0], [0, 0, 0, 1]]
    assert found.time_ns.tolist() == [[0, 20 * MS, 0, 0], [5 * MS, 0, 4 * MS, 0], [0, 0, 0, MS]]
    assert found.hit_share.tolist()[:2] == [0.0, 2 / 3]
    assert np.isnan(found.hit_share[2])
    assert found.counts_by_slot.shape == (3, 100, 4)
    assert [found.counts_by_slot[1, s, 0] for s in (0, 1, 2)] == [0, 1, 1]
    assert found.time_by_slot[1, 90].tolist() == [0, 0, 4 * MS, 0]


def test_nothing_told_makes_nothing() -> None:
    found = detail_of([run(10, 2, None)])
    assert (found.shapes, found.notes, found.totals.compiles) == ((), (), 0)


def test_buckets_are_bounded_and_make_room() -> None:
    window = Window(Grid.of_window(S))
    context = Context(1, 0.0, Header(), SourceHealth("t", "live"), None, 0, "", 0.0)

    def add(first: int, at_ms: int) -> MappingDetail:
        often = [run(at_ms, 1, "planned", shape=f"m={first}") for _ in range(5)]
        rest = [run(at_ms, 1, "planned", shape=f"m={first + i}") for i in range(100)]
        window.add(batch_of([*often, *rest]), None)
        return snapshot_of(window, at_ms * MS, context).mapping_detail

    found = add(1000, 10)
    assert len(found.shapes) == MAX_BUCKETS
    assert (found.shapes[0], found.shapes[-1]) == ("m=1000", "(others)")
    assert found.counts.sum(axis=1).tolist() == [6] + [1] * 62 + [37]
    later = add(5000, 5000)
    assert later.shapes[0] == "m=5000"
    assert later.counts.sum(axis=1).tolist() == [6] + [1] * 62 + [37]
    assert any("more than 63" in note for note in later.notes)


def test_padding_is_what_ran_over_what_was_asked() -> None:
    rows = [
        run(10, 1, "planned", shape="m=8192 n=64 k=64 bf16", request=1),
        run(11, 1, "planned", shape="m=3000 n=64 k=64 bf16", request=2),
        run(12, 1, "planned", shape="m=4096 n=64 k=64 bf16", request=3, batch=4),
        run(13, 1, "planned", shape="m=64 bf16", request=9),
        {"kind": "request", "start_ns": 0, "end_ns": 14 * MS, "shape": "m=3208 n=64 k=64 bf16", "request": 1},
        {"kind": "request", "start_ns": 0, "end_ns": 15 * MS, "shape": "m=3000 n=64 k=64 bf16", "request": 2},
        {"kind": "request", "start_ns": 0, "end_ns": 16 * MS, "shape": "m=1024 n=64 k=64 bf16", "request": 3},
    ]
    found = detail_of(rows)
    assert (found.totals.padding_n, found.totals.padded, found.totals.padded_ns) == (2, 1, MS)
    assert found.totals.padding == pytest.approx((8192 + 3000) / (3208 + 3000))
    at = found.shapes.index("m=8192 n=64 k=64 bf16")
    assert found.padding[at] == pytest.approx(8192 / 3208)
    assert np.isnan(found.padding[found.shapes.index("m=4096 n=64 k=64 bf16")])
    assert found.padding_by_slot[1] == pytest.approx((8192 + 3000) / (3208 + 3000))


def test_a_plan_that_tells_its_sizes_runs_at_them_unless_it_falls_back() -> None:
    plans = {"d32": "decoder, batch=32: 10 kernels, made for n=7"}
    rows = [
        run(10, 1, "adapted", plan="d32", shape="batch=16"),
        run(11, 1, "planned", plan="d32", shape="batch=32"),
        run(12, 1, "fallback", plan="d32", shape="batch=8"),
        run(13, 1, "planned", plan="d32", shape="batch=64"),
        run(14, 1, "planned", plan="d32", shape="sequence=1"),
        run(15, 1, "planned", plan="other", shape="batch=1"),
    ]
    found = detail_of(rows, plans=plans)
    assert (found.totals.padding_n, found.totals.padded) == (2, 1)
    assert found.totals.padding == pytest.approx(64 / 48)


def test_accuracy_gain_and_fallback_cost_of_work_that_ran_in_several_ways() -> None:
    one = {"plan": "p", "group": 1, "shape": "m=64"}
    rows = [
        *runs(10, 4, "planned", name="gemm_128", **one),
        *runs(6, 3, "adapted", name="gemm_64", **one),
        *runs(5, 10, "fallback", name="generic", **one),
        *runs(10, 8, "planned", name="only", plan="p", group=2, shape="m=64"),
        {"kind": "mark", "name": "recompile", "end_ns": 90 * MS, "start_ns": 90 * MS, "value": 1.8, "unit": "ms"}
        | {"plan": "p", "shape": "m=64"},
    ]
    totals = detail_of(rows).totals
    assert (totals.accuracy_n, totals.gain_n, totals.fallback_n) == (10, 6, 5)
    assert totals.accuracy == pytest.approx(3 / 4)
    assert totals.switching_ns == 1.8 * MS
    assert totals.gain == pytest.approx(4 / 3 - 1 - 1.8 / 18)
    assert totals.fallback_ns == 5 * (10 - 3) * MS


def test_one_way_or_too_few_runs_are_not_compared() -> None:
    shape = {"shape": "m=64", "name": "k"}
    alone = detail_of(runs(10, 4, "planned", plan="p", **shape))
    assert (alone.totals.accuracy, alone.totals.gain, alone.totals.fallback_ns) == (None, None, None)
    assert any("two ways" in note for note in alone.notes)
    few = detail_of([*runs(10, 4, "planned", plan="p", **shape), *runs(4, 2, "planned", plan="q", **shape)])
    assert few.totals.accuracy is None
    enough = detail_of([*runs(10, 4, "planned", plan="p", **shape), *runs(5, 2, "planned", plan="q", **shape)])
    assert enough.totals.accuracy == pytest.approx((10 * 2 + 5 * 2) / (10 * 4 + 5 * 2))


def test_a_group_that_runs_as_several_kernels_is_not_compared_with_one_that_runs_as_one() -> None:
    one = {"plan": "p", "group": 1, "shape": "m=64"}
    parts = [row for part in ("a", "b", "c") for row in runs(5, 2, "fallback", name=part, **one)]
    totals = detail_of([*runs(10, 4, "planned", name="fused", **one), *parts]).totals
    assert (totals.accuracy, totals.fallback_ns) == (None, None)


def test_adapting_to_a_smaller_shape_is_compared_with_the_padded_plan_for_the_same_request() -> None:
    rows: list[Row] = []
    for i in range(12):
        planned = i % 2 == 0
        ran = {"shape": "m=8192", "mapping": "planned"} if planned else {"shape": "m=3208", "mapping": "adapted"}
        rows.append(run(10 + i, 5 if planned else 2, None, name="k", plan="p", request=i) | ran)
        rows.append({"kind": "request", "start_ns": 0, "end_ns": 100 * MS, "shape": "m=3208", "request": i})
    totals = detail_of(rows).totals
    assert totals.gain == pytest.approx(5 / 2 - 1)
    assert totals.accuracy == pytest.approx(2 / 5)


def test_recompiles_are_marks_with_a_stall_or_else_executions_named_so() -> None:
    mark = {"kind": "mark", "start_ns": 50 * MS, "end_ns": 50 * MS, "shape": "m=8"}
    rows = [
        mark | {"name": "recompile m=8", "value": 3.0, "unit": "ms"},
        mark | {"name": "compile", "shape": "m=16"},
        mark | {"name": "compiled by hand", "value": 9.0, "unit": "ms"},
        run(60, 20, None, name="entire_frame_compile"),
    ]
    found = detail_of(rows)
    assert (found.totals.compiles, found.totals.stall_ns) == (2, 3 * MS)
    assert found.compiles[found.shapes.index("m=8")] == 1
    assert found.stall_by_slot[5] == 3 * MS
    assert any("without a duration: 1 of 2" in note for note in found.notes)
    alone = detail_of([rows[3], run(70, 1, "planned", name="Torch-Compiled Region: 0")])
    assert (alone.totals.compiles, alone.totals.stall_ns) == (1, 20 * MS)


def test_the_summary_carries_it_and_slots_agree_with_the_totals() -> None:
    rows = [run(1 + i, 1, ("planned", "adapted", "fallback")[i % 3], plan="p", shape=f"m={i % 5}") for i in range(90)]
    mapping = summarise_trace(ListTrace([batch_of(rows)]))["mapping"]
    assert (mapping["known"], mapping["planned"]) == (90, 1 / 3)
    assert sum(bucket["executions"]["adapted"] for bucket in mapping["buckets"]) == 30
    assert [bucket["plan"] for bucket in mapping["buckets"]] == ["p"] * 5
