"""How long the closed loop takes: a twin of a window, and one change replanned and tried on it.

Run it alone: python tests/bench/bench_retune.py [ROWS]. Windows are the newest ROWS (default 100,000) of each scenario
that ships. It prints CPU seconds, no pass or fail; the first line of a scenario plans its models, later ones have them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import polars as pl
import pyarrow as pa

from fusetui.accelerator.scenario.build import Run
from fusetui.accelerator.scenario.parse import load_scenario, scenario_names
from fusetui.accelerator.scenario.plans import plan_model
from fusetui.analysis.retune.propose import actions_of
from fusetui.analysis.retune.verify import try_action
from fusetui.analysis.twin import Twin, twin_of
from fusetui.sources.simulated_header import header_of
from fusetui.sources.simulated_steps import one_round

T = TypeVar("T")


def main(rows: int) -> None:
    """One line a scenario."""
    print(f"windows of {rows:,} rows; CPU seconds")
    print(
        f"{'scenario':26}{'requests':>9}{'exact':>7}{'fitted':>7}{'p99 error':>10}"
        f"{'changes':>8}{'slowest replan + run':>21}"
    )
    for name in scenario_names():
        run = Run(load_scenario(name))
        header = header_of(run, "trace")
        frame = pl.from_arrow(pa.Table.from_batches(list(one_round(run))).unify_dictionaries())
        assert isinstance(frame, pl.DataFrame)
        frame = frame.tail(rows)
        twin, exact_s = timed(lambda: twin_of(frame, header))  # noqa: B023
        fitted, fitted_s = timed(lambda: twin_of(frame, replace(header, source="measured")))  # noqa: B023
        assert isinstance(twin, Twin)
        error = fitted.fit.error[2] if isinstance(fitted, Twin) else None
        plan_model.cache_clear()
        took = [s for _, s in tried(twin)]
        told = "" if error is None else f"{error * 100:+.1f} %"
        slowest = f"{max(took):.2f}" if took else ""
        print(f"{name:26}{len(twin.load):>9,}{exact_s:>7.2f}{fitted_s:>7.2f}{told:>10}{len(took):>8}{slowest:>21}")


def tried(twin: Twin) -> list[tuple[str, float]]:
    """(title, CPU seconds) of each change: planning it (it is planned as it is proposed) and simulating it."""
    found: list[tuple[str, float]] = []
    coming = iter(actions_of(twin, None))
    while True:
        action, plan_s = timed(lambda: next(coming, None))
        if action is None:
            return found
        _, run_s = timed(lambda: try_action(twin, action))  # noqa: B023
        found.append((action.title, plan_s + run_s))


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """Its result and the CPU seconds it took."""
    began = time.process_time()
    result = work()
    return result, time.process_time() - began


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
