"""Continuous batching by hand, its books, and the batch that grows past its captured graphs and stays there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.runtime.arrivals import varying
from fusetui.accelerator.runtime.config import Batching, Config, Lookup, Placement, Slow
from fusetui.accelerator.runtime.executions import executions
from fusetui.accelerator.runtime.load import Load, Stream
from fusetui.accelerator.runtime.outcome import COMPONENTS, GENERIC, HIT, PADDED, RECOMPILED
from fusetui.accelerator.runtime.paths import Path, PlanTable
from fusetui.accelerator.runtime.simulate import simulate

PREFILL = PlanTable("prefill", Path.affine(10, 1), Path.affine(10, 1))
DECODE = PlanTable("decode", Path.affine(100, 10), Path.affine(100, 10).scaled(4))


def config(**more: object) -> Config:
    return replace(Config((PREFILL,), batching=Batching("continuous", 8), decode=DECODE), **more)  # type: ignore[arg-type]


def told(parts: np.ndarray) -> dict[str, int]:
    return {name: int(value) for name, value in zip(COMPONENTS, parts, strict=True) if value}


def test_a_request_alone_is_its_prefill_and_a_step_for_each_further_token() -> None:
    run = simulate(Load.of([0], 5, 3), config())
    assert run.first_ns.tolist() == [15]
    assert run.end_ns.tolist() == [15 + 110 + 110]
    assert told(run.parts[0]) == {"planned": 235}
    assert run.jobs.rows.tolist() == [5, 1, 1]


def test_who_joins_holds_up_who_is_there() -> None:
    run = simulate(Load.of([0, 20], [5, 30], [3, 2]), config())
    # 0: prefill to 15, decode alone to 125; the second's prefill (40) goes before the next decode of the first.
    assert run.first_ns.tolist() == [15, 275]
    assert run.end_ns.tolist() == [275, 275 + 110]
    assert told(run.parts[0]) == {"gate": 40, "planned": 15 + 110 + 110}
    assert told(run.parts[1]) == {"gate": 110, "queue": 105, "planned": 40 + 110}


def test_a_full_batch_lets_nobody_in() -> None:
    run = simulate(Load.of([0, 0, 0], 0, 2), config(batching=Batching("continuous", 2)))
    assert run.start_ns.tolist() == [0, 0, 140]  # two prefills of 10, one decode of both: 120
    assert run.end_ns.tolist() == [140, 140, 260]


def test_steps_are_padded_to_captured_sizes_and_generic_above_them() -> None:
    lookup = Lookup((1, 4), pad_limit=4)
    run = simulate(Load.of([0] * 3, 0, 2), config(lookup=lookup))
    assert run.jobs.mapping.tolist() == [HIT, PADDED]
    assert told(run.parts[0]) == {"gate": 20, "planned": 10 + 130, "padding": 10}
    run = simulate(Load.of([0] * 5, 0, 2), config(lookup=lookup))
    assert run.jobs.mapping.tolist() == [HIT, GENERIC]
    assert told(run.parts[0]) == {"gate": 40, "planned": 10 + 150, "fallback": 450}


def test_a_plan_for_a_batch_size_is_made_once() -> None:
    lookup = Lookup((8,), pad_limit=1, miss="recompile", cost_ns=1000)
    run = simulate(Load.of([0], 0, 4), config(lookup=lookup))
    assert run.end_ns.tolist() == [10 + 1000 + 3 * 110]
    assert told(run.parts[0]) == {"stall": 1000, "planned": 340}
    assert run.jobs.mapping.tolist() == [HIT, RECOMPILED, HIT, HIT]


def test_urgent_requests_join_first() -> None:
    load = Load.of([0, 1, 2], 0, 2, stream=[1, 1, 0], streams=[Stream("urgent", 0), Stream("bulk", 1)])
    run = simulate(load, config(batching=Batching("continuous", 1)))
    assert np.argsort(run.start_ns).tolist() == [0, 2, 1]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 50), st.integers(0, 6)), min_size=1, max_size=40),
    st.integers(1, 5), st.integers(1, 3),
    st.sampled_from(["shared", "hashed", "round_robin", "least_loaded", "shortest", "static"]), st.booleans(),
)  # fmt: skip
def test_the_books_are_kept(rows: list[tuple[int, int, int]], limit: int, cores: int, kind: str, slow: bool) -> None:
    gaps, tokens, output = zip(*rows, strict=True)
    load = Load.of(np.cumsum(gaps), tokens, output)
    run = simulate(load, config(
        cores=cores, batching=Batching("continuous", limit), lookup=Lookup((1, 2), limit=3), placement=Placement(kind),
        slow=(Slow(0, 1.7, 100, 900),) if slow else (),
    ))  # fmt: skip
    jobs = run.jobs
    assert (run.parts >= 0).all()
    assert (run.parts.sum(axis=1) == run.latency_ns).all()
    assert (jobs.parts.sum(axis=1) == jobs.end_ns - jobs.start_ns).all()
    steps = np.maximum(load.output, 1)
    decoded = jobs.table == 1
    assert jobs.requests[~decoded].sum() == len(load)
    assert jobs.requests[decoded].sum() == (steps - 1).sum()
    assert jobs.requests.max() <= limit
    assert (run.first_ns <= run.end_ns).all()
    for core in range(cores):
        mine = jobs.core == core
        assert (jobs.start_ns[mine][1:] >= jobs.end_ns[mine][:-1]).all()
    kernels = executions(run)
    assert (kernels.end_ns[kernels.last] == jobs.end_ns).all()


def test_a_burst_past_the_largest_captured_batch_never_goes_away() -> None:
    """A graph step is 4 times as fast. At 700 requests a second of 20 tokens about 20 run at once with graphs, and
    112 without: each state keeps itself up, and a burst of half a second moves the runtime from one to the other."""
    graph = Path.affine(1e6, 1e4)
    decode = PlanTable("decode", graph, graph.scaled(4))
    fill = PlanTable("prefill", Path.affine(0), Path.affine(0))
    settings = Config((fill,), batching=Batching("continuous", 4096), lookup=Lookup(limit=32), decode=decode)

    def late_batch(rate: list[float]) -> tuple[float, float]:
        load = Load.of(varying([0, 5, 5.5], rate, 14_000, 1), 1, 20)
        run = simulate(load, settings)
        late = (run.jobs.start_ns > 12_000_000_000) & (run.jobs.table == 1)
        return float(run.jobs.requests[late].mean()), float((run.jobs.mapping[late] == GENERIC).mean())

    calm, calm_generic = late_batch([700, 700, 700])
    hit, hit_generic = late_batch([700, 4000, 700])
    assert calm < 25
    assert calm_generic < 0.05
    assert hit > 80
    assert hit_generic > 0.95


@pytest.mark.parametrize(
    "more", [{"contention": True}, {"placement": Placement("unlimited")}, {"placement": Placement("stealing")}]
)
def test_what_does_not_go_together_is_told(more: dict[str, object]) -> None:
    with pytest.raises(AcceleratorError, match="does not go with"):
        simulate(Load.of([0]), config(**more))


def test_a_running_batch_is_not_carried_over() -> None:
    first = simulate(Load.of([0]), config())
    with pytest.raises(AcceleratorError, match="cannot go on"):
        simulate(Load.of([10]), config(), after=first)
