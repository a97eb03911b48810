"""How fast the runtime simulation is, policy by policy.

    python tests/bench/bench_simulator.py [--jobs 100000] [--repeat 3]

An execution is one kernel of a job; jobs are of eight kernels, as a fused transformer block is. Prints the best of the
repeats in processor time: jobs simulated a second, executions a second with the kernels unrolled, and the time of a
job over that of a bare loop that only keeps a heap of free cores, measured in the same run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from heapq import heapreplace

import numpy as np

from fusetui.accelerator.runtime.arrivals import generator, poisson
from fusetui.accelerator.runtime.config import Batching, Config, Lookup, Placement, Slow
from fusetui.accelerator.runtime.counterfactual import Driver, counterfactuals
from fusetui.accelerator.runtime.executions import executions
from fusetui.accelerator.runtime.load import Load, Stream
from fusetui.accelerator.runtime.paths import Path, PlanTable
from fusetui.accelerator.runtime.simulate import simulate

CORES, KERNELS, SIZES = 8, 8, (64, 256, 1024)


def path(demand: float, stretch: float = 1.0) -> Path:
    """Eight kernels of 125 us at each size."""
    k = KERNELS * len(SIZES)
    ones = np.ones(k)
    names = tuple(f"kernel{i % KERNELS}" for i in range(k))
    first = np.arange(len(SIZES) + 1) * KERNELS
    return Path(
        np.array(SIZES), first, names, ones * 125e3 * stretch, ones * 1e3, ones * 1e6, ones * 1e9, ones * demand
    )


def runtime(demand: float = 0.1, **more: object) -> Config:
    table = PlanTable("block", path(demand), path(demand, 2.0))
    return replace(Config((table,), CORES, lookup=Lookup(SIZES)), **more)  # type: ignore[arg-type]


def cases(jobs: int) -> dict[str, tuple[Load, Config]]:
    arrival, rng = poisson(0.75 * CORES * 1e3, jobs, 1), generator(1, 9)
    tokens = rng.choice([64, 256, 900, 1024], jobs)
    load = Load.of(arrival, tokens, work=rng.exponential(size=jobs))
    stream = rng.integers(0, 2, jobs)
    ranked = replace(load, stream=stream, streams=(Stream("urgent", 0), Stream("bulk", 1)))
    placed: dict[str, tuple[Load, Config]] = {
        kind: (load, runtime(placement=Placement(kind)))  # type: ignore[arg-type]
        for kind in ("hashed", "round_robin", "random", "least_loaded", "shortest", "shared", "stealing", "unlimited")
    }
    decode = PlanTable("decode", path(0.1), path(0.1, 4.0))
    tokens_out = Load.of(poisson(400, jobs // 20, 1), 64, rng.integers(1, 100, jobs // 20))
    return placed | {
        "shared, 2 priorities": (ranked, runtime()),
        "hashed, 2 priorities": (ranked, runtime(placement=Placement("hashed"))),
        "hashed, slow window": (load, runtime(placement=Placement("hashed"), slow=(Slow(1, 1.5, 0, 10**9),))),
        "deadline batches": (load, runtime(batching=Batching("deadline", 8, 1_000_000))),
        "bandwidth enough": (load, runtime(0.1, contention=True)),
        "bandwidth short": (load, runtime(0.2, contention=True)),
        "continuous": (
            tokens_out,
            runtime(batching=Batching("continuous", 1024), decode=decode, placement=Placement("round_robin")),
        ),
    }


def best(run: Callable[[], object], repeat: int) -> float:
    took = []
    for _ in range(repeat):
        began = time.process_time()
        run()
        took.append(time.process_time() - began)
    return min(took)


def bare(ready: list[int], took: list[int]) -> int:
    free = list(range(CORES))
    for now, service in zip(ready, took, strict=True):
        done, core = divmod(free[0], CORES)
        heapreplace(free, (max(done, now) + service) * CORES + core)
    return max(free)


def counterfactual(jobs: int) -> tuple[Load, Config, list[Driver]]:
    load = Load.of(poisson(3000, jobs, 1), generator(1).choice([64, 900, 2000], jobs))
    config = runtime(batching=Batching("deadline", 8, 1_000_000, merge=False), placement=Placement("hashed"),
                     slow=(Slow(0, 1.2),))  # fmt: skip
    return load, config, [
        Driver("queue", lambda c: replace(c, placement=Placement("unlimited"))),
        Driver("placement", lambda c: replace(c, placement=Placement("shared"))),
        Driver("batching", lambda c: replace(c, batching=Batching())),
        Driver("fallback", lambda c: replace(c, lookup=Lookup())),
        Driver("slow core", lambda c: replace(c, slow=())),
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    ready, took = poisson(6000, args.jobs, 1).tolist(), [1_000_000] * args.jobs
    floor = best(lambda: bare(ready, took), args.repeat) / args.jobs
    print(f"bare heap loop: {1 / floor:,.0f} jobs/s")
    print(f"{'policy':22} {'jobs/s':>11} {'executions/s':>13} {'x bare':>7} {'utilisation':>12}")
    for name, (load, config) in cases(args.jobs).items():
        run = simulate(load, config)
        jobs, rows = len(run.jobs), len(executions(run))
        alone = best(lambda load=load, config=config: simulate(load, config), args.repeat)  # type: ignore[misc]
        whole = best(lambda load=load, config=config: executions(simulate(load, config)), args.repeat)  # type: ignore[misc]
        busy = (run.jobs.end_ns - run.jobs.start_ns).sum() / (run.end_ns.max() * CORES)
        print(f"{name:22} {jobs / alone:11,.0f} {rows / whole:13,.0f} {alone / jobs / floor:7.1f} {busy:12.2f}")
    load, config, drivers = counterfactual(12_000)
    seconds = best(lambda: counterfactuals(load, config, drivers), args.repeat)
    print(f"32 counterfactuals of 12,000 requests: {seconds:.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
