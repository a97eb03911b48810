"""What is named first in each scenario, by time and by cause, and what that costs.

    python tests/bench/bench_attribution.py [--scenario NAME ...] [--rows 100000]

time     the part by which the slowest 1 % exceed the median most; stage: that left its budget first, and when
cause    the driver named at p95 and at p99, with the p99 without it; -: none changes it enough
Also: CPU time of the split of so many executions, and of 32 counterfactuals of 12,000 requests.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
import pyarrow as pa

from fusetui.accelerator.runtime.arrivals import generator, poisson
from fusetui.accelerator.runtime.config import Batching, Config, Lookup, Placement
from fusetui.accelerator.runtime.counterfactual import counterfactuals
from fusetui.accelerator.runtime.load import Load
from fusetui.accelerator.runtime.paths import Path, PlanTable
from fusetui.accelerator.runtime.simulate import simulate
from fusetui.accelerator.scenario.build import Run
from fusetui.accelerator.scenario.parse import load_scenario, scenario_names
from fusetui.analysis.attribution.causes import causes_of
from fusetui.analysis.attribution.drivers import drivers_of
from fusetui.analysis.attribution.parts import PARTS, STAGES, TailTime
from fusetui.analysis.attribution.tailtime import tail_time
from fusetui.analysis.columns import Columns, Reader, concat
from fusetui.analysis.twin import twin_of
from fusetui.sources.simulated_header import header_of
from fusetui.sources.simulated_steps import one_round

RUNS = 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", nargs="+", choices=scenario_names(), default=list(scenario_names()))
    parser.add_argument("--rows", type=int, default=100_000)
    args = parser.parse_args()
    print(f"{'scenario':24}{'time':12}{'stage left first':28}{'cause p95':16}{'cause p99':16}{'p99 ≈':>10}"
          f"{'without':>10}{'CPU s':>7}{'runs':>5}")  # fmt: skip
    cost: list[str] = []
    for name in args.scenario:
        run = Run(load_scenario(name))
        batches = list(one_round(run))
        reader = Reader()
        rows = concat([reader.read(batch) for batch in batches])
        found = tail_time(rows, reader, run.scenario.slo_ns)
        print(f"{name:24}{_time(found)}{_causes(run, batches)}", flush=True)
        cost.append(f"{name:24}{_split_cost(rows, reader, args.rows)}")
    print("\nsplit of the newest rows, best of", RUNS)
    print("\n".join(cost))
    print(_counterfactual_cost())
    return 0


def _time(found: TailTime | None) -> str:
    if found is None:
        return f"{'-':40}"
    stage = "-"
    if found.first is not None:
        at = found.stages[found.first].left_ns
        stage = f"{STAGES[found.first]} {(at or 0) / 1e9:.1f} s"
    return f"{PARTS[found.grown]:12}{stage:28}"


def _causes(run: Run, batches: list[pa.RecordBatch]) -> str:
    began = time.process_time()
    twin = twin_of(batches, header_of(run, "trace"))
    causes = twin if isinstance(twin, str) else causes_of(twin)
    took = time.process_time() - began
    if isinstance(causes, str):
        return causes
    at = causes.p99
    without = next((row.without_ns for row in at.rows if row.name == at.named), at.all_ns)
    return (f"{causes.p95.named or '-':16}{at.named or '-':16}{at.all_ns / 1e6:>8.2f}ms{without / 1e6:>8.2f}ms"
            f"{took:>7.1f}{causes.runs:>5}")  # fmt: skip


def _split_cost(rows: Columns, reader: Reader, most: int) -> str:
    newest = rows.take(rows.kind <= 1).take(slice(-most, None))
    took = []
    for _ in range(RUNS):
        began = time.process_time()
        tail_time(newest, reader, None)
        took.append(time.process_time() - began)
    return f"{len(newest):>9,} rows {min(took) * 1e3:>7.0f} ms CPU"


def _counterfactual_cost() -> str:
    path = Path.affine(4e6, 6e3)
    load = Load.of(poisson(400, 12_000, 1), np.where(generator(1).random(12_000) < 0.03, 5000, 500))
    config = Config(
        (PlanTable("p", path.scaled(1.3), path.scaled(4), best=path),), cores=4, lookup=Lookup(limit=4096),
        batching=Batching("deadline", 8, 25_000_000, merge=False), placement=Placement("hashed"),
    )  # fmt: skip
    drivers, _ = drivers_of(load, config, simulate(load, config))
    chosen = drivers[:5]
    began = time.process_time()
    counterfactuals(load, config, chosen)
    took = time.process_time() - began
    return f"\n{1 << len(chosen)} counterfactuals of 12,000 requests: {took:.2f} s CPU"


if __name__ == "__main__":
    sys.exit(main())
