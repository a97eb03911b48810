"""What triage names first: scenarios that ship and reported problems, against what is known to be wrong in them.

    python tests/bench/bench_triage.py [--twin] [--seeds 3] [--window 10]

A row per trace: the class that is right (several: any of them), the class named first and how sure, with --twin also
after asking the twin. `confident wrong` is a wrong class at likely or sure.

False alarms: windows of --window seconds of what is quiet of the scenarios, at several seeds that no rule was made
with. named: a bottleneck comes first; surely: at likely or sure; any: any warning at all.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent.parent / "triage"))

from cases import CASES
from triage_rows import snapshot as case_snapshot

from fusetui.accelerator.scenario.build import Run
from fusetui.accelerator.scenario.parse import load_scenario, scenario_names
from fusetui.analysis.attribution.causes import Causes, causes_of
from fusetui.analysis.frame import Context, snapshot_of
from fusetui.analysis.slots import Grid
from fusetui.analysis.snapshot import Snapshot
from fusetui.analysis.twin import twin_of
from fusetui.analysis.window import Window
from fusetui.sources.simulated_header import header_of
from fusetui.sources.simulated_steps import one_round
from fusetui.telemetry.header import Header
from fusetui.telemetry.source import SourceHealth
from fusetui.triage.finding import Triage
from fusetui.triage.judge import triage

S = 1_000_000_000
QUIET = {
    "steady": 60.0, "straggler": 20.0, "shape-drift": 19.0, "bucket-worse-than-eager": 20.0,
    "head-of-line-prefill": 20.0, "serving": 12.0, "metastable-fallback": 15.0,
}  # fmt: skip
"""Seconds from the beginning in which nothing is wrong."""
RIGHT = {
    "bucket-worse-than-eager": ("fallback",),
    "burst": ("queueing",),
    "case-study": ("memory burst",),
    "head-of-line-prefill": ("queueing",),
    "metastable-fallback": ("fallback",),
    "serving": ("queueing", "imbalance", "fallback"),
    "shape-drift": ("fallback",),
    "steady": ("",),
    "straggler": ("imbalance",),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--twin", action="store_true", help="ask the twin as well: seconds per scenario")
    parser.add_argument("--shift", type=int, default=0, help="added to the scenarios' seeds")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--window", type=float, default=10.0, help="seconds of a quiet window")
    args = parser.parse_args()
    seen: list[tuple[str, tuple[str, ...], Triage]] = []
    print(f"{'trace':36}{'right':28}{'first':18}{'sure':10}{'ms':>7}")
    for name, right, found, took in _traces(args.twin, args.shift):
        seen.append((name, right, found))
        first = found.first
        mark = "" if _class(found) in right else "  WRONG"
        print(f"{name:36}{' | '.join(one or 'none' for one in right):28}{_class(found) or 'none':18}"
              f"{first.confidence if first else '':10}{took * 1e3:>7.1f}{mark}", flush=True)  # fmt: skip
    _confusion(seen)
    _quiet(args.seeds, args.window)
    return 0


def _class(found: Triage) -> str:
    return "" if found.first is None else str(found.first.bottleneck)


def _traces(twin: bool, shift: int) -> Iterator[tuple[str, tuple[str, ...], Triage, float]]:
    for name in scenario_names():
        scenario = load_scenario(name)
        run = Run(replace(scenario, seed=scenario.seed + shift))
        batches, header = list(one_round(run)), header_of(run, "trace")
        taken = _snapshot(batches, header)
        causes = _causes(batches, header) if twin else None
        yield (name + (" (twin)" if causes is not None else ""), RIGHT[name], *_timed(taken, causes, None))
    for make in CASES.values():
        case = make()
        baseline = None if case.baseline is None else case_snapshot(case.baseline)
        taken = case_snapshot(case.batches, case.header, **case.health)
        yield (f"{case.number} {make.__name__}", case.right, *_timed(taken, None, baseline))


def _timed(taken: Snapshot, causes: Causes | None, baseline: Snapshot | None) -> tuple[Triage, float]:
    began = time.perf_counter()
    found = triage(taken, causes, baseline=baseline)
    return found, time.perf_counter() - began


def _causes(batches: list[pa.RecordBatch], header: Header) -> Causes | None:
    twin = twin_of(batches, header)
    causes = twin if isinstance(twin, str) else causes_of(twin)
    return None if isinstance(causes, str) else causes


def _snapshot(batches: list[pa.RecordBatch], header: Header, from_ns: int = 0, to_ns: int | None = None) -> Snapshot:
    last = to_ns if to_ns is not None else max(int(np.nanmax(_ends(batch))) for batch in batches)
    window = Window(Grid.of_span(from_ns, last), exact_rows=2_000_000)
    for batch in batches:
        ends = _ends(batch)
        if np.nanmin(ends) <= last and np.nanmax(ends) >= from_ns:
            window.add(batch.filter(pa.array(~(ends > last))), last)
    health = SourceHealth(name="trace", state="ended")
    taken = snapshot_of(window, last, Context(1, 0.0, header, health, None, 0, "", 0.0))
    return replace(taken, late_rows=0)  # cut here, not late


def _ends(batch: pa.RecordBatch) -> np.ndarray:
    return batch["end_ns"].to_numpy(zero_copy_only=False).astype(np.float64)


def _confusion(seen: list[tuple[str, tuple[str, ...], Triage]]) -> None:
    table = Counter((" | ".join(one or "none" for one in right), _class(found) or "none") for _, right, found in seen)
    rows, columns = (sorted({pair[side] for pair in table}) for side in (0, 1))
    print(f"\n{'right (rows) × first (columns)':34}" + "".join(f"{column[:14]:>15}" for column in columns))
    for row in rows:
        print(f"{row:34}" + "".join(f"{table[row, column] or '·':>15}" for column in columns))
    right = sum(_class(found) in wanted for _, wanted, found in seen)
    sure = [
        (name, wanted, found) for name, wanted, found in seen if found.first and found.first.confidence != "possible"
    ]
    wrong = [name for name, wanted, found in sure if _class(found) not in wanted]
    print(f"\nright class first: {right} of {len(seen)} ({right / len(seen):.0%}); confident wrong: {wrong or 'none'}")


def _quiet(seeds: int, seconds: float) -> None:
    print(f"\nquiet windows of {seconds:g} s, half overlapping; alarms per 1,000")
    print(f"{'scenario, its quiet seconds':36}{'windows':>9}{'named':>8}{'surely':>8}{'any':>8}")
    total = np.zeros(4, np.int64)
    for name, until in QUIET.items():
        which: Counter[str] = Counter()
        counts = np.zeros(4, np.int64)
        for seed in range(seeds):
            for found in _windows(name, 2000 + seed, until, seconds):
                first = found.first
                sure = first is not None and first.confidence != "possible"
                counts += np.array([1, first is not None, sure, not found.quiet])
                which.update(finding.id for finding in found.findings if finding.severity != "info")
        total += counts
        print(_quiet_line(f"{name}, {until:g} s", counts) + f"  {dict(which) or ''}", flush=True)
    print(_quiet_line("all", total))


def _quiet_line(label: str, counts: np.ndarray) -> str:
    windows, *alarms = counts.tolist()
    return f"{label:36}{windows:>9}" + "".join(f"{alarm * 1000 / max(windows, 1):>8.1f}" for alarm in alarms)


def _windows(name: str, seed: int, until_s: float, seconds: float) -> Iterator[Triage]:
    scenario = replace(load_scenario(name), seed=seed)
    run = Run(replace(scenario, seconds=until_s, slow=(), marks=()))
    batches, header = list(one_round(run)), header_of(run, "trace")
    for from_s in np.arange(0.0, until_s - seconds + 1e-9, seconds / 2).tolist():
        yield triage(_snapshot(batches, header, round(from_s * S), round((from_s + seconds) * S)))


if __name__ == "__main__":
    sys.exit(main())
