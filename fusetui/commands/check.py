"""`fusetui check`: one capture or source against rules. The exit code is the answer."""

from __future__ import annotations

import argparse
import json
import time
from typing import TYPE_CHECKING, Final

from fusetui.commands.guard import GuardError, guard_of
from fusetui.commands.inputs import is_live, open_live, open_trace, say, why_lost
from fusetui.commands.progress import finish_reading

if TYPE_CHECKING:
    import pyarrow as pa

    from fusetui.analysis.expression.rows import Rows
    from fusetui.analysis.expression.rule import Rule
    from fusetui.analysis.filter import Filter
    from fusetui.triage.owners import Owners

EXIT_USAGE: Final = 2
EXIT_LOST: Final = 5
_LIVE_WINDOW_NS: Final = 10 * 10**9
_PATIENCE_S: Final = 10.0
"""How much longer than a window the first rows of a live source may take."""


def run(args: argparse.Namespace) -> int:
    """0 every rule holds, 1 one is breached, 2 usage, 4 not enough data for one, 5 the source was lost."""
    from fusetui.analysis.filter import FilterError, parse_filter

    try:
        guard = guard_of(args)
        only = parse_filter(args.filter)
    except (GuardError, FilterError) as error:
        say(f"fusetui: {'' if isinstance(error, GuardError) else '--filter' + chr(10)}{error}")
        return EXIT_USAGE
    if not guard.rules:
        say("fusetui: nothing to check: give --rule or --guard")
        return EXIT_USAGE
    asking = next((rule for rule in guard.rules if rule.needs_baseline), None)
    if asking is not None:
        say(f"fusetui: {asking.text}: a change needs a baseline; use `fusetui compare BEFORE AFTER`")
        return EXIT_USAGE
    from fusetui.triage.owners import load_owners

    owners, lost = load_owners(args.owners), ""
    if is_live(args.trace):
        rows, lost = _live(args, only)
    else:
        rows = rows_of_capture(args.trace, args, only)
    code = _judged(args, rows, guard.rules, guard.min_n, owners)
    if lost:
        say(f"fusetui: {why_lost(args.trace, lost)}")
        return EXIT_LOST
    return code


def rows_of_capture(spec: str, args: argparse.Namespace, only: Filter | None) -> Rows:
    """The rows of a capture. Raises TelemetryError."""
    from fusetui.analysis.expression.rows import rows_of

    trace = open_trace([spec], args)
    try:
        finish_reading(trace)
        return rows_of(trace, window_ns=args.window, only=only)
    finally:
        trace.close()


def _judged(args: argparse.Namespace, rows: Rows, rules: tuple[Rule, ...], min_n: int, owners: Owners) -> int:
    from fusetui.analysis.compare.plain import outcome_plain
    from fusetui.analysis.expression.judge import judge
    from fusetui.analysis.expression.observe import observe
    from fusetui.commands.verdicts import exit_code, github, junit, verdict_lines
    from fusetui.triage.rule_owners import owner_of

    outcomes = [judge(rule, lambda c: observe(c.measure, rows.scope(c.where)), min_n) for rule in rules]
    judged = [(args.trace, outcome) for outcome in outcomes]
    owned = [owner_of(outcome, owners, tuple(rows.header.plans)) for outcome in outcomes]
    code = exit_code(judged)
    if args.json:
        shown = {
            "trace": args.trace, "exit": code, "min_n": min_n, "notes": list(rows.notes),
            "rules": [{**outcome_plain(o), "owner": owner} for o, owner in zip(outcomes, owned, strict=True)],
        }  # fmt: skip
        print(json.dumps(shown, indent=2, allow_nan=False, ensure_ascii=False))
    elif args.junit:
        print(junit(judged, owned))
    elif args.github:
        print("\n".join(github(judged, owned)))
    else:
        lines = verdict_lines([("", outcome) for outcome in outcomes], owned)
        print("\n".join([*lines, *(f"note {n}" for n in rows.notes)]))
    return code


def _live(args: argparse.Namespace, only: Filter | None) -> tuple[Rows, str]:
    """What came within one window from the first rows on; and why the source was lost, "" when it was not."""
    from fusetui.analysis.expression.rows import MAX_ROWS, Rows

    source = open_live(args.trace, args)
    kept: list[pa.RecordBatch] = []
    held = 0
    notes: tuple[str, ...] = ()
    try:
        window_s = (args.window or _LIVE_WINDOW_NS) / 1e9
        until = time.monotonic() + window_s + _PATIENCE_S
        while (left := until - time.monotonic()) > 0 and source.health().state not in ("ended", "failed", "lost"):
            batches = source.poll(min(left, 0.1))
            if batches and not kept:
                until = time.monotonic() + window_s
            for batch in batches:
                batch = batch if only is None else only.apply(batch)
                held += len(batch)
                if held <= MAX_ROWS:
                    kept.append(batch)
                else:
                    notes = (f"only the first {MAX_ROWS:,} rows are looked at; a shorter --window takes fewer",)
        health = source.health()
    finally:
        source.close()
    lost = health.state in ("failed", "lost") or (not kept and health.state == "reconnecting")
    return Rows(kept, source.header, notes), (health.last_error or "the source was lost") if lost else ""
