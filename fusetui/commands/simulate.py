"""`fusetui simulate`: telemetry of a scenario from the model, as a trace, live, or as numbers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from textwrap import wrap
from typing import Any

import pyarrow as pa

from fusetui.accelerator.policy import POLICIES
from fusetui.accelerator.scenario.build import Run
from fusetui.accelerator.scenario.parse import load_scenario, scenario_names
from fusetui.accelerator.scenario.spec import Scenario
from fusetui.commands.inputs import rows_bytes, say
from fusetui.commands.request_log import read_logs
from fusetui.telemetry.errors import TelemetryError

EXIT_USAGE = 2


def run(args: argparse.Namespace) -> int:
    """List the scenarios, or run one."""
    if args.list:
        return _list()
    problem = _problem(args)
    if problem:
        say(f"fusetui: {problem}")
        return EXIT_USAGE
    scenario = load_scenario(args.scenario)
    if args.seed is not None:
        scenario = replace(scenario, seed=args.seed)
    policies = args.policy.split(",") if args.policy else []
    logs = read_logs(scenario, rows_bytes(args.memory) // 2)
    runs = [Run(scenario.with_policy(policy), logs) for policy in policies] or [Run(scenario, logs)]
    if args.live:
        return _live(runs[0], args)
    if args.output:
        return _write(runs[0], Path(args.output), args.force)
    if len(runs) > 1:
        return _compare(runs, policies, args)
    return _summary(runs[0], args)


def _problem(args: argparse.Namespace) -> str:
    if args.scenario is None:
        return "name a scenario or a TOML file; `fusetui simulate --list` tells what there is"
    if args.live and (args.output or args.json):
        return "--live watches; leave out -o and --json"
    policies = args.policy.split(",") if args.policy else []
    for policy in policies:
        if policy not in POLICIES:
            return f"--policy: {policy!r} is not known; one or more of {', '.join(POLICIES)}"
    if len(policies) > 1 and (args.live or args.output):
        return "--policy: several are compared as numbers; choose one for --live and -o"
    return ""


def _list() -> int:
    for name in scenario_names():
        scenario = load_scenario(name)
        print(f"{name:24}{scenario.title}")
        print("\n".join(wrap(scenario.see, 100, initial_indent=" " * 24, subsequent_indent=" " * 24)))
    return 0


def _live(run: Run, args: argparse.Namespace) -> int:
    from fusetui.commands.watch import watch
    from fusetui.sources.simulated import SimulatedSource

    source = SimulatedSource(run, speed=args.speed, history_s=min(60.0, run.scenario.seconds))
    args.record = None
    name = Path(run.scenario.where).stem
    return watch(source, args, title=f"simulated: {name}", bookmarks_key=f"simulate-{name}")


def _write(run: Run, target: Path, force: bool) -> int:
    from fusetui.sources.simulated_header import header_of
    from fusetui.telemetry.export import WRITERS

    if target.exists() and not force:
        say(f"fusetui: {target} exists; use --force to overwrite it")
        return EXIT_USAGE
    partial = target.with_name(target.name + ".part")
    try:
        with partial.open("wb") as sink:
            rows = WRITERS["arrows"](sink, header_of(run, "trace"), _batches(run))
        partial.replace(target)
    except OSError as error:
        raise TelemetryError(str(target), f"cannot be written ({error.strerror})") from None
    finally:
        partial.unlink(missing_ok=True)
    say(f"wrote {rows:,} events of {_told(run.scenario)} to {target}")
    return 0


def _batches(run: Run) -> Iterator[pa.RecordBatch]:
    from fusetui.sources.simulated_steps import one_round

    return one_round(run)


def _told(scenario: Scenario) -> str:
    return f"{scenario.seconds:g} simulated seconds"


def _summary(run: Run, args: argparse.Namespace) -> int:
    """As `fusetui snapshot` of the trace that `-o` would write."""
    from fusetui.analysis.filter import FilterError
    from fusetui.analysis.summary import summarise_trace
    from fusetui.commands.table import summary_lines
    from fusetui.sources.simulated_header import header_of
    from fusetui.telemetry.spool import SpooledTrace

    trace = SpooledTrace(
        _batches(run), header_of(run, "trace"), memory_bytes=rows_bytes(args.memory) // 2, where=run.scenario.where
    )
    try:
        while not trace.wait_complete(1.0):
            pass
        summary = summarise_trace(trace, window_ns=args.window, filter=args.filter or None)
    except FilterError as error:
        say(f"fusetui: --filter\n{error}")
        return EXIT_USAGE
    finally:
        trace.close()
    if args.json:
        print(json.dumps(summary, indent=2, allow_nan=False, ensure_ascii=False))
    else:
        print(f"scenario     {run.scenario.title}\nlook for     {run.scenario.see}")
        print("\n".join(summary_lines(summary)))
    return 0


def _compare(runs: list[Run], policies: list[str], args: argparse.Namespace) -> int:
    from fusetui.commands.simulate_table import figures, table_lines

    rows: list[dict[str, Any]] = [
        {"policy": policy, **figures(run)} for policy, run in zip(policies, runs, strict=True)
    ]
    if args.json:
        document = {"scenario": runs[0].scenario.title, "seed": runs[0].scenario.seed, "simulated": True, "runs": rows}
        print(json.dumps(document, indent=2, allow_nan=False))
    else:
        print("\n".join(table_lines(runs[0], rows)))
    return 0
