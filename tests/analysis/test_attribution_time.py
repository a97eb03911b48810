"""Latency in parts: on rows known by hand, on any rows (the sum is exact), and against the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tracerows import MS, batch_of

from fusetui.accelerator.runtime.outcome import COMPONENTS, Outcome
from fusetui.accelerator.scenario.build import Run
from fusetui.accelerator.scenario.parse import load_scenario
from fusetui.analysis.attribution.parts import PARTS, STAGES
from fusetui.analysis.attribution.split import Split, known_items, split
from fusetui.analysis.attribution.tailtime import tail_time
from fusetui.analysis.columns import Columns, Reader, concat
from fusetui.analysis.work import executions, requests
from fusetui.sources.simulated_steps import one_round

Rows = list[dict[str, Any]]


def asked(request: int, enqueue: float, start: float | None, end: float, **more: Any) -> dict[str, Any]:
    began = None if start is None else round(start * MS)
    return {"kind": "request", "name": "r", "request": request, "enqueue_ns": round(enqueue * MS), "start_ns": began,
            "end_ns": round(end * MS), "stream": "s", "device": 0, "core": 0, **more}  # fmt: skip


def ran(request: int | None, enqueue: float, start: float, end: float, **more: Any) -> dict[str, Any]:
    return {"request": request, "enqueue_ns": round(enqueue * MS), "start_ns": round(start * MS),
            "end_ns": round(end * MS), "stream": "s", "device": 0, "core": 0, "mapping": "planned", **more}  # fmt: skip


def split_of(rows: Rows | list[pa.RecordBatch]) -> Split:
    reader = Reader()
    columns = reader.read(batch_of(rows)) if isinstance(rows[0], dict) else concat([reader.read(b) for b in rows])
    items, work = known_items(requests(columns)), executions(columns)
    return split(items, work, reader, False)


def parts_ms(rows: Rows, item: int = -1) -> dict[str, float]:
    found = split_of(rows)
    assert (found.parts.sum(axis=1) == found.latency).all()
    return {name: ns / MS for name, ns in zip(PARTS, found.parts[item].tolist(), strict=True) if ns}


def test_gate_queue_launch_and_rest_of_one_request() -> None:
    rows = [
        # Handed over at 2 ms by a call of 1 ms, run at 5; then a gap to 9 of which the call until 8.5 is launch.
        ran(1, 3.0, 5.0, 8.0, launch_ns=MS), ran(1, 8.5, 9.0, 10.0), asked(1, 0.0, 5.0, 12.0)]  # fmt: skip
    assert parts_ms(rows) == {"gate": 2.0, "queue": 3.0, "launch": 0.5, "planned": 4.0, "rest": 2.5}


def test_what_fell_back_is_held_against_the_sizes_that_were_planned() -> None:
    """Two phases of a request share its shape, of which one dimension of several varies."""
    rows: Rows = []
    for i, (tokens, mapping, took) in enumerate(
        [(32, "planned", 2.0)] * 6
        + [(64, "planned", 4.0)] * 6
        + [(128, "planned", 8.0)] * 6
        + [(200, "fallback", 50.0)]
    ):
        at, shape = i * 100.0, f"b=1 t={tokens} d=192 f32"
        rows += [ran(i, at, at, at + took, stream="prefill", mapping=mapping, shape=shape),
                 ran(i, at + took, at + took, at + took + 1, stream="decode", shape=shape),
                 asked(i, at, at, at + took + 1, shape=shape)]  # fmt: skip
    # A plan for 200 is on the line from 64 to 128: 12.5 ms. The decode step of the same shape takes 1.
    assert parts_ms(rows) == pytest.approx({"planned": 13.5, "fallback": 37.5})


def test_gaps_between_the_nodes_of_a_graph_are_launch() -> None:
    rows = [ran(1, 1, 2, 4, node=0), ran(1, 1, 5, 6, node=1), asked(1, 1, 2, 6)]
    assert parts_ms(rows) == {"queue": 1.0, "launch": 1.0, "planned": 3.0}


def test_a_gap_in_which_others_ran_on_the_core_is_queue() -> None:
    rows = [ran(1, 0, 0, 2), ran(2, 0, 2, 5), ran(1, 2, 6, 7), asked(2, 0, 2, 5), asked(1, 0, 0, 7)]
    assert parts_ms(rows) == {"planned": 3.0, "queue": 3.0, "rest": 1.0}


def test_waiting_while_another_core_of_the_stream_is_idle_is_imbalance() -> None:
    rows = [ran(1, 0, 0, 10), ran(2, 0, 0, 4, core=1), ran(3, 1, 10, 12),
            asked(1, 0, 0, 10), asked(2, 0, 0, 4, core=1), asked(3, 1, 10, 12)]  # fmt: skip
    assert parts_ms(rows) == {"queue": 3.0, "imbalance": 6.0, "planned": 2.0}


def test_a_parallel_step_takes_what_its_slowest_core_takes() -> None:
    rows = [ran(1, 0, 0, 2, group=1), ran(1, 0, 0, 6, group=1, core=1), asked(1, 0, 0, 6)]
    assert parts_ms(rows) == {"planned": 4.0, "imbalance": 2.0}


def test_those_batched_together_share_what_is_told_of_one() -> None:
    rows = [ran(1, 4, 5, 9, batch=2), asked(1, 0, 5, 9, batch=2), asked(2, 3, 5, 9, batch=2)]
    assert parts_ms(rows, 0) == {"gate": 4.0, "queue": 1.0, "planned": 4.0}
    assert parts_ms(rows, 1) == {"gate": 1.0, "queue": 1.0, "planned": 4.0}


def test_steps_of_a_running_batch_serve_all_that_are_in_it() -> None:
    steps = [ran(None, at, at, at + 2, batch=3, shape="batch=3") for at in (2, 4, 8)]
    rows = [*steps, ran(9, 6, 6, 8), asked(9, 6, 6, 8), asked(1, 0, 2, 10, batch=3)]
    assert parts_ms(rows) == {"queue": 4.0, "planned": 6.0}


def test_fallback_and_padding_are_what_is_above_the_line_through_planned_sizes() -> None:
    rows: Rows = []
    for i in range(12):
        at, size = 100.0 * i, 100 if i % 2 else 200
        took = size / 100
        rows += [ran(i, at, at, at + took, shape=f"m={size}"), asked(i, at, at, at + took)]
    rows += [ran(90, 2000, 2000, 2007, shape="m=150", mapping="adapted"), asked(90, 2000, 2000, 2007),
             ran(91, 3000, 3000, 3010, shape="m=400", mapping="fallback"), asked(91, 3000, 3000, 3010)]  # fmt: skip
    assert parts_ms(rows, -2) == {"planned": 1.5, "padding": 5.5}
    assert parts_ms(rows, -1) == {"planned": 4.0, "fallback": 6.0}
    only = [ran(1, 0, 0, 3, mapping="fallback", shape="m=1"), asked(1, 0, 0, 3)]
    assert parts_ms(only) == {"rest": 3.0}
    assert "no planned time" in split_of(only).notes[0]


def test_launches_that_are_items_are_held_against_their_own_name() -> None:
    """A long kernel between short ones of the same shape and step is planned work; only what is slower than itself is
    rest."""
    rows: Rows = [
        ran(i // 40, i * 10, i * 10, i * 10 + (6 if i % 8 == 7 else 1), name="gemm" if i % 8 == 7 else "add",
            shape="m=1", mapping=None)
        for i in range(199)
    ]  # fmt: skip
    rows.append(ran(4, 2000, 2000, 2009, name="gemm", shape="m=1", mapping=None))
    reader = Reader()
    columns = reader.read(batch_of(rows))
    items, work = known_items(executions(columns)), executions(columns)
    found = split(items, work, reader, True)
    rest, planned = found.parts[:, PARTS.index("rest")], found.parts[:, PARTS.index("planned")]
    assert np.flatnonzero(rest).tolist() == [199]
    assert (rest[199], planned[199], planned[7], planned[0]) == (3 * MS, 6 * MS, 6 * MS, MS)


def test_what_fell_back_under_another_name_is_held_against_what_was_planned() -> None:
    rows: Rows = [ran(None, i * 10, i * 10, i * 10 + 2, name="fused", shape="m=1") for i in range(40)]
    rows += [ran(None, 400 + i * 10, 400 + i * 10, 405 + i * 10, name="eager", shape="m=1", mapping="fallback")
             for i in range(3)]  # fmt: skip
    reader = Reader()
    columns = reader.read(batch_of(rows))
    work = executions(columns)
    found = split(known_items(work), work, reader, True)
    assert found.parts[-1, PARTS.index("fallback")] == 3 * MS


def test_parts_without_rows_join_to_none() -> None:
    """The first batch of a window may have lost its last row."""
    rows = Reader().read(batch_of([ran(1, 0, 1, 2)]))
    assert len(concat([rows.take(slice(0, 0)), rows.take(slice(0, 0))])) == 0
    assert len(concat([rows.take(slice(0, 0)), rows])) == 1


def test_a_core_slower_than_its_like_is_imbalance_and_company_is_contention() -> None:
    rows: Rows = []
    for i in range(1200):
        core, at = i % 3, 10.0 * (i // 3)
        slow = 2.0 if core == 2 and i >= 600 else 1.0
        rows += [ran(i, at, at, at + 2 * slow, shape="m=1", core=core, device=core),
                 asked(i, at, at, at + 2 * slow, core=core, device=core)]  # fmt: skip
    assert parts_ms(rows) == {"planned": 2.0, "imbalance": 2.0}
    rows = []
    for i in range(40):
        at, took = 100.0 * i, 3.0 if i % 2 else 2.0
        rows += [ran(2 * i, at, at, at + took, shape="m=1"), asked(2 * i, at, at, at + took)]
        if i % 2:
            rows += [ran(2 * i + 1, at, at, at + took, shape="m=1", core=1), asked(2 * i + 1, at, at, at + 3, core=1)]
    assert parts_ms(rows) == {"planned": 2.0, "contention": 1.0}


def test_what_no_column_tells_is_rest_and_is_said() -> None:
    rows = [asked(i, i, i + 1, i + 4) for i in range(3)]
    found = split_of(rows)
    assert found.parts.sum(axis=0)[[PARTS.index("queue"), PARTS.index("rest")]].tolist() == [3 * MS, 9 * MS]
    assert found.notes == ("no executions in the window: service is not told apart",)
    foreign = split_of([ran(None, 0, 0, 1, mapping=None), *rows])
    assert "no execution names a request (column request)" in foreign.notes
    assert "no mapping of executions: fallback and padding are not told apart" in foreign.notes
    without = [{**row, "enqueue_ns": None} for row in rows]
    late = split_of([ran(0, 1, 1, 4), *without])
    assert late.latency.tolist() == [3 * MS] * 3
    assert any("no enqueue_ns of requests" in note for note in late.notes)


times = st.integers(0, 60)
row = st.fixed_dictionaries(
    {"kind": st.sampled_from(["execution", "request"]), "start_ns": times, "end_ns": times},
    optional={
        "enqueue_ns": times, "launch_ns": st.integers(0, 9), "node": st.integers(0, 2), "device": st.integers(0, 1),
        "core": st.integers(0, 2), "stream": st.sampled_from("ab"), "request": st.integers(0, 5),
        "group": st.integers(0, 2), "mapping": st.sampled_from(["planned", "adapted", "fallback"]),
        "shape": st.sampled_from(["m=1", "m=2", "m=4", "odd"]), "batch": st.integers(1, 3), "host": st.just("h"),
    },
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(row, min_size=1, max_size=40), st.integers(0, 1 << 60))
def test_the_parts_of_every_item_sum_to_its_latency(rows: Rows, shift: int) -> None:
    for each in rows:
        for name in ("start_ns", "end_ns", "enqueue_ns"):
            if name in each:
                each[name] += shift
    reader = Reader()
    columns = reader.read(batch_of(rows))
    work = executions(columns)
    for same, items in ((False, known_items(requests(columns))), (True, known_items(work))):
        if len(items):
            found = split(items, work, reader, same)
            assert (found.parts >= 0).all()
            assert found.parts.sum(axis=1).tolist() == items.latency.tolist() == found.latency.tolist()


def test_latencies_alone_name_no_stage() -> None:
    reader = Reader()
    rows = [asked(i, i, None, i + (4 if i < 500 else 90)) for i in range(1000)]
    found = tail_time(reader.read(batch_of(rows)), reader, None)
    assert found is not None
    assert (found.first, found.stages) == (None, ())
    assert found.notes[-1] == "nothing but the whole latency is told: no stage is named"


def test_too_few_items_have_no_tail() -> None:
    reader = Reader()
    columns = reader.read(batch_of([asked(i, i, i + 1, i + 4) for i in range(19)]))
    assert tail_time(columns, reader, None) is None


def simulated(name: str) -> tuple[Outcome, Columns, Reader]:
    run = Run(load_scenario(name))
    reader = Reader()
    return next(run.rounds()).outcome, concat([reader.read(batch) for batch in one_round(run)]), reader


TRUTH = {"queue": ("queue",), "gate": ("gate",), "launch": ("launch",), "padding": ("padding",),
         "imbalance": ("misplaced", "slow_core"), "fallback": ("fallback",)}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "tolerance", "first", "from_s"),
    [("straggler", 0.06, "core placement", 20.0), ("head-of-line-prefill", 0.01, "runtime queue", 20.0),
     ("bucket-worse-than-eager", 0.01, "compile plan", 20.0), ("steady", 0.02, None, 0.0)],
)  # fmt: skip
def test_telemetry_tells_what_the_simulator_knows(
    name: str, tolerance: float, first: str | None, from_s: float
) -> None:
    """Of the slowest 1 %: mean time in each part, off by at most a share of the latency."""
    outcome, columns, reader = simulated(name)
    found = tail_time(columns, reader, None)
    assert found is not None
    assert found.extreme is not None
    latency = outcome.latency_ns
    slowest = latency >= found.extreme.from_ns
    assert found.items == len(latency)
    assert found.extreme.n == slowest.sum()
    mean = dict(zip(COMPONENTS, outcome.parts[slowest].mean(axis=0).tolist(), strict=True))
    ours = dict(zip(PARTS, found.extreme.mean_ns, strict=True))
    for part, truth in TRUTH.items():
        want = sum(mean[component] for component in truth)
        assert ours[part] == pytest.approx(want, abs=tolerance * found.extreme.latency_ns), part
    assert found.extreme.latency_ns == pytest.approx(float(np.mean(latency[slowest])))
    assert (None if found.first is None else STAGES[found.first]) == first
    if found.first is not None:
        left = found.stages[found.first].left_ns
        assert left is not None
        assert abs(left / 1e9 - from_s) < 1.5
