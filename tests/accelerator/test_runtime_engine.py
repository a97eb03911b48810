"""What holds for every policy, and that the quick ways agree with the event loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.runtime import bandwidth, events, fcfs
from fusetui.accelerator.runtime.config import Batching, Config, Lookup, Placement, Slow, Split
from fusetui.accelerator.runtime.executions import executions
from fusetui.accelerator.runtime.idle import idle_between
from fusetui.accelerator.runtime.load import Load, Stream
from fusetui.accelerator.runtime.outcome import (
    CONTENTION,
    GATE,
    GENERIC,
    HIT,
    LAUNCH,
    MISPLACED,
    QUEUE,
    SLOW,
    STALL,
    Outcome,
)
from fusetui.accelerator.runtime.paths import Path, PlanTable
from fusetui.accelerator.runtime.queues import make_queues
from fusetui.accelerator.runtime.simulate import simulate
from fusetui.accelerator.runtime.work import Ran, Speed, Work, assigned

PATH = Path(
    rows=np.array([1, 64]), first=np.array([0, 2, 5]), names=("a", "b", "a", "b", "c"),
    kernel_ns=np.array([10.0, 20.0, 300.0, 100.0, 50.0]), launch_ns=np.array([5.0, 1.0, 5.0, 1.0, 1.0]),
    dram_bytes=np.full(5, 100.0), flops=np.full(5, 7.0), demand=np.array([0.9, 0.1, 0.8, 0.3, 0.0]), output_ns=3.0,
)  # fmt: skip
TABLE = PlanTable("block", PATH.scaled(1.2), PATH.scaled(2.5), best=PATH)
KINDS = ("static", "hashed", "round_robin", "random", "least_loaded", "shortest", "shared", "stealing", "unlimited")


@st.composite
def loads(draw: st.DrawFn) -> Load:
    n = draw(st.integers(1, 40))
    gaps = draw(st.lists(st.integers(0, 400), min_size=n, max_size=n))
    tokens = draw(st.lists(st.integers(0, 80), min_size=n, max_size=n))
    stream = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    work = draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=n, max_size=n))
    streams = [Stream("a", draw(st.integers(0, 1))), Stream("b", draw(st.integers(0, 1))), Stream("c", 1)]
    return Load.of(np.cumsum(gaps), tokens, 2, stream=stream, work=work, streams=streams)


@st.composite
def configs(draw: st.DrawFn) -> Config:
    cores = draw(st.integers(1, 5))
    slow = draw(st.lists(st.builds(Slow, st.integers(0, cores - 1), st.floats(1, 3), st.integers(0, 900)), max_size=2))
    lookup = Lookup((8, 32, 64), miss=draw(st.sampled_from(["fallback", "adapt", "recompile"])), cost_ns=500)
    kind = draw(st.sampled_from(["none", "size", "deadline"]))
    return Config(
        (TABLE,), cores, draw(st.integers(0, cores)),
        Batching(kind, draw(st.integers(1, 5)), draw(st.integers(0, 500)), draw(st.booleans())),  # type: ignore[arg-type]
        lookup, Placement(draw(st.sampled_from(KINDS)), choices=draw(st.integers(0, 2))), tuple(slow),
        Split(draw(st.integers(1, 3)), 0.3, 2.0), draw(st.booleans()),
    )  # fmt: skip


def in_system(arrival: np.ndarray, end: np.ndarray) -> int:
    """Integral of the number of requests present over time, by a walk over the instants something happens."""
    total, present, then = 0, 0, 0
    for now, change in sorted([(int(a), 1) for a in arrival] + [(int(e), -1) for e in end]):
        total += present * (now - then)
        present, then = present + change, now
    return total


@settings(max_examples=60, deadline=None)
@given(loads(), configs())
def test_every_policy_keeps_the_books(load: Load, config: Config) -> None:
    run = simulate(load, config)
    jobs = run.jobs
    assert (run.parts >= 0).all()
    assert (jobs.parts >= 0).all()
    assert (run.parts.sum(axis=1) == run.latency_ns).all()
    assert (jobs.parts.sum(axis=1) == jobs.end_ns - jobs.ready_ns).all()
    assert in_system(load.arrival_ns, run.end_ns) == run.latency_ns.sum()
    if config.placement.kind != "unlimited":
        for core in range(config.cores):
            mine = np.flatnonzero(jobs.core == core)
            order = mine[np.lexsort((jobs.end_ns[mine], jobs.start_ns[mine]))]
            assert (jobs.start_ns[order][1:] >= jobs.end_ns[order][:-1]).all()
    if not config.contention:
        assert (run.parts[:, CONTENTION] == 0).all()
    again = simulate(load, config)
    assert run.end_ns.tobytes() == again.end_ns.tobytes()
    assert run.parts.tobytes() == again.parts.tobytes()


@settings(max_examples=40, deadline=None)
@given(loads(), configs())
def test_kernels_fill_their_job_from_the_stall_to_the_end(load: Load, config: Config) -> None:
    run = simulate(load, config)
    rows = executions(run)
    kernels = np.where(run.jobs.bucket <= 1, 2, 3)
    assert (np.bincount(rows.job, minlength=len(run.jobs)) == kernels).all()
    first, last = rows.group == 0, rows.last
    assert (rows.start_ns[first] - rows.launch_ns[first] == run.jobs.start_ns + run.jobs.parts[:, STALL]).all()
    assert (rows.end_ns[last] == run.jobs.end_ns).all()
    assert (rows.start_ns[~first] - rows.launch_ns[~first] == rows.end_ns[~last]).all()
    assert (rows.end_ns >= rows.start_ns).all()
    assert (rows.launch_ns >= 0).all()
    assert np.bincount(rows.job, rows.launch_ns).astype(int).tolist() == run.jobs.parts[:, LAUNCH].tolist()
    some = np.array([len(run.jobs) - 1, 0])
    assert executions(run, some).end_ns[-1] == rows.end_ns[rows.job == 0][-1]


def test_kernels_carry_their_names_shares_and_bytes() -> None:
    load = Load.of([0], 64)
    rows = executions(simulate(load, Config((PlanTable("b", PATH, PATH.scaled(2)),))))
    assert [rows.names[i] for i in rows.name] == ["a", "b", "c"]
    assert rows.start_ns.tolist() == [5, 306, 407]
    assert rows.end_ns.tolist() == [305, 406, 457]
    assert rows.dram_bytes.tolist() == [100.0] * 3
    slow = executions(simulate(load, Config((PlanTable("b", PATH, PATH),), slow=(Slow(0, 2.0),))))
    assert slow.dram_bytes.tolist() == [100.0] * 3  # a slow core moves no more bytes
    assert slow.end_ns[-1] == 907


def ran(work: Work, config: Config, how: str) -> Ran:
    free, speed = np.zeros(config.cores, np.int64), Speed(config.slow, config.cores)
    queues = make_queues(work, config, free)
    if how == "events":
        return events.run(work, queues, free, speed)
    if how == "bandwidth":
        return bandwidth.run(work, config, queues, free, speed)
    core = assigned(work, config)
    return fcfs.first_free(work, free, speed) if core is None else fcfs.by_core(work, core, free, speed)


@st.composite
def works(draw: st.DrawFn, demand: float = 0.0) -> Work:
    n = draw(st.integers(1, 50))

    def ints(most: int) -> np.ndarray:
        return np.array(draw(st.lists(st.integers(0, most), min_size=n, max_size=n)), np.int64)

    return Work(np.cumsum(ints(50)), ints(20), ints(200), ints(3), np.zeros(n, np.int64), np.full(n, demand))


@settings(max_examples=60, deadline=None)
@given(works(), st.sampled_from(KINDS[:7]), st.integers(1, 4), st.booleans())
def test_the_quick_ways_agree_with_both_event_loops(work: Work, kind: str, cores: int, slow: bool) -> None:
    slowed = (Slow(0, 1.5, 100, 2000),) if slow and kind not in ("least_loaded", "shared") else ()
    config = Config((TABLE,), cores, placement=Placement(kind), slow=slowed)  # type: ignore[arg-type]
    loops = [ran(work, config, "events"), ran(work, config, "bandwidth")]
    assert loops[0].core.tolist() == loops[1].core.tolist()
    assert loops[0].start_ns.tolist() == loops[1].start_ns.tolist()
    assert loops[0].end_ns.tolist() == loops[1].end_ns.tolist()
    if kind in ("static", "hashed", "round_robin", "random"):
        quick = ran(work, config, "quick")
        assert quick.core.tolist() == loops[0].core.tolist()
        assert quick.end_ns.tolist() == loops[0].end_ns.tolist()
    elif kind in ("shared", "least_loaded"):  # cores of one speed: which of the idle ones takes a job is the same
        assert ran(work, config, "quick").start_ns.tolist() == loops[0].start_ns.tolist()


@settings(max_examples=40, deadline=None)
@given(works(), st.integers(1, 4))
def test_one_queue_is_what_a_list_of_free_times_gives(work: Work, cores: int) -> None:
    free = [0] * cores
    starts = []
    for ready, took in zip(work.ready_ns.tolist(), (work.fixed_ns + work.kernel_ns).tolist(), strict=True):
        starts.append(max(ready, min(free)))
        free[free.index(min(free))] = starts[-1] + took
    assert ran(work, Config((TABLE,), cores), "quick").start_ns.tolist() == starts


def simple(kernel_ns: float, **more: float) -> PlanTable:
    path = Path.affine(kernel_ns, **more)
    return PlanTable("simple", path, path.scaled(4))


def parts(run: Outcome, component: int) -> list[int]:
    return run.parts[:, component].tolist()


def test_a_busy_core_with_an_idle_one_beside_it_is_a_misplaced_wait() -> None:
    # Three jobs of stream a on core 0 of 2; core 1 takes b's from 50 to 150.
    load = Load.of([0, 0, 50, 60], stream=[0, 0, 1, 0], streams=[Stream("a"), Stream("b")])
    run = simulate(load, Config((simple(100),), cores=2, placement=Placement("static")))
    assert run.end_ns.tolist() == [100, 200, 150, 300]
    # The second waits 0 to 100, with core 1 idle until 50; the fourth 60 to 200, idle from 150.
    assert parts(run, MISPLACED) == [0, 50, 0, 50]
    assert parts(run, QUEUE) == [0, 50, 0, 90]


def test_idle_time_between_two_instants_is_counted_once() -> None:
    def between(a: int, b: int) -> int:
        return int(
            idle_between(np.array([a]), np.array([b]), np.array([10, 15]), np.array([20, 30]), np.array([0, 5]))[0]
        )

    assert between(0, 40) == 35  # all but 15 to 20
    assert between(16, 19) == 0
    assert between(12, 25) == 3 + 5


def test_priority_goes_first_and_interrupts_nobody() -> None:
    load = Load.of([0, 1, 2], stream=[1, 1, 0], streams=[Stream("urgent", 0), Stream("bulk", 5)])
    run = simulate(load, Config((simple(100),)))
    assert run.end_ns.tolist() == [100, 300, 200]
    fifo = simulate(replace(load, streams=(Stream("urgent"), Stream("bulk"))), Config((simple(100),)))
    assert fifo.end_ns.tolist() == [100, 200, 300]


def test_an_idle_core_steals_from_the_longest_queue() -> None:
    load = Load.of([0] * 4)
    alone = Placement("hashed", weights=(1.0, 0.0))
    config = Config((simple(100),), cores=2, placement=alone)
    assert simulate(load, config).end_ns.tolist() == [100, 200, 300, 400]
    stolen = simulate(load, replace(config, placement=replace(alone, kind="stealing")))
    assert sorted(stolen.end_ns.tolist()) == [100, 100, 200, 200]
    assert sum(parts(stolen, MISPLACED)) == 0


def test_a_slow_core_is_slow_in_its_window_only() -> None:
    load = Load.of([0, 100, 200])
    run = simulate(load, Config((simple(50),), slow=(Slow(0, 3.0, 100, 200),)))
    assert run.end_ns.tolist() == [50, 250, 300]
    assert parts(run, SLOW) == [0, 100, 0]


def test_two_that_ask_for_all_the_bandwidth_take_twice_as_long_and_one_that_asks_for_little_is_left_alone() -> None:
    config = Config((simple(100, demand=1.0),), cores=2, contention=True)
    run = simulate(Load.of([0, 0]), config)
    assert run.end_ns.tolist() == [200, 200]
    assert parts(run, CONTENTION) == [100, 100]
    # Apart on two devices they do not meet.
    assert simulate(Load.of([0, 0]), replace(config, cores_per_device=1)).end_ns.tolist() == [100, 100]
    # Half of each overlaps: 50 alone, then both at half speed until the first is done at 150, then alone again.
    assert simulate(Load.of([0, 50]), config).end_ns.tolist() == [150, 200]
    two = Load.of([0, 0], stream=[0, 1], streams=[Stream("a"), Stream("b")])
    mixed = replace(config, tables=(simple(100, demand=1.0), simple(100, demand=0.25)))
    assert simulate(two, mixed).end_ns.tolist() == [125, 100]  # 0.75 of the speed for 100 ns, then all of it


def test_bandwidth_is_shared_max_min() -> None:
    assert bandwidth.rates([0.5, 0.5]) == [1.0, 1.0]
    assert bandwidth.rates([1.0, 1.0, 0.0]) == [0.5, 0.5, 1.0]
    assert bandwidth.rates([0.1, 0.9, 2.0]) == pytest.approx([1.0, 0.5, 0.225])


def test_batches_close_when_full_or_when_their_time_is_over() -> None:
    load = Load.of([0, 10, 20, 100, 125, 200], 8)
    config = Config((simple(0),), placement=Placement("unlimited"), batching=Batching("deadline", 3, 25))
    run = simulate(load, config)
    assert run.dispatch_ns.tolist() == [20, 20, 20, 125, 125, 225]
    assert parts(run, GATE) == [20, 10, 0, 25, 0, 25]
    assert run.jobs.requests.tolist() == [3, 2, 1]
    assert run.jobs.rows.tolist() == [24, 16, 8]
    by_size = simulate(load, replace(config, batching=Batching("size", 4)))
    assert by_size.dispatch_ns.tolist() == [100, 100, 100, 100, 200, 200]


def test_streams_do_not_share_a_batch() -> None:
    load = Load.of([0, 1, 2, 3], stream=[0, 1, 0, 1], streams=[Stream("a"), Stream("b")])
    run = simulate(load, Config((simple(0),), batching=Batching("size", 2)))
    assert run.dispatch_ns.tolist() == [2, 3, 2, 3]


def test_each_stream_has_its_own_gate_and_each_table_its_own_sizes() -> None:
    load = Load.of([0, 1, 2, 3], 16, stream=[0, 1, 0, 1], streams=[Stream("a"), Stream("b")])
    config = Config(
        (simple(10), simple(10)), batching=(Batching(), Batching("deadline", 2, 50)),
        lookup=(Lookup((16,)), Lookup((16, 24))), placement=Placement("unlimited"),
    )  # fmt: skip
    run = simulate(load, config)
    assert run.dispatch_ns.tolist() == [0, 3, 2, 3]
    assert run.jobs.mapping[run.job].tolist() == [HIT, GENERIC, HIT, GENERIC]
    with pytest.raises(AcceleratorError, match="2 gates for 1 streams"):
        simulate(Load.of([0]), replace(config, tables=config.tables[:1], lookup=Lookup()))
    with pytest.raises(AcceleratorError, match="one each"):
        replace(config, lookup=(Lookup(),))


def test_a_job_that_never_ends_is_told() -> None:
    with pytest.raises(AcceleratorError, match="over 104 days"):
        simulate(Load.of([0], work=1e300), Config((simple(100),)))


def test_a_batch_larger_than_the_largest_captured_runs_generic() -> None:
    load = Load.of([0, 0, 0], 16)
    config = Config((simple(100),), batching=Batching("size", 3), lookup=Lookup((16, 32)))
    run = simulate(load, config)
    assert run.jobs.mapping.tolist() == [GENERIC]
    assert run.end_ns.tolist() == [400] * 3


def test_a_split_job_is_done_with_its_last_part() -> None:
    load = Load.of([0], 1)
    run = simulate(load, Config((simple(100),), cores=2, split=Split(4)))
    assert len(run.jobs) == 4
    assert run.end_ns.tolist() == [50]  # four parts of 25 on two cores
    slow = simulate(load, Config((simple(100),), cores=4, split=Split(4, slow_share=1.0, slow_factor=3.0)))
    assert slow.end_ns.tolist() == [75]
    assert parts(slow, SLOW) == [50]


@pytest.mark.parametrize("kind", ["static", "hashed", "shared", "random"])
def test_a_load_in_two_pieces_is_the_load_in_one(kind: str) -> None:
    arrival = np.arange(200) * 7
    table = simple(10, per_row_ns=1.0)
    tokens = np.arange(200) % 13 + 1
    config = Config((table,), cores=2, placement=Placement(kind), lookup=Lookup((1,), 20, miss="adapt", cost_ns=50))  # type: ignore[arg-type]
    if kind in ("hashed", "random"):  # who goes where follows from the number in the load
        config = replace(config, cores=1)
    whole = simulate(Load.of(arrival, tokens), config)
    first = simulate(Load.of(arrival[:90], tokens[:90]), config)
    second = simulate(Load.of(arrival[90:], tokens[90:]), config, after=first)
    assert np.concatenate([first.end_ns, second.end_ns]).tolist() == whole.end_ns.tolist()


def test_an_empty_load_gives_an_empty_outcome() -> None:
    for kind in KINDS:
        run = simulate(Load.of([]), Config((TABLE,), cores=3, placement=Placement(kind), contention=kind == "shared"))  # type: ignore[arg-type]
        assert len(run.jobs) == 0
        assert len(executions(run)) == 0


def test_tables_have_to_go_with_the_streams() -> None:
    with pytest.raises(AcceleratorError, match="2 plan tables for 1 streams"):
        simulate(Load.of([0]), Config((TABLE, TABLE)))
