"""`fusetui compare`: captures against a baseline, and against guardrails. The exit code is the answer."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from fusetui.commands.check import EXIT_USAGE, rows_of_capture
from fusetui.commands.guard import Guard, GuardError, guard_of
from fusetui.commands.inputs import is_live, say

if TYPE_CHECKING:
    from fusetui.analysis.compare import Comparison
    from fusetui.analysis.expression.judge import Outcome
    from fusetui.analysis.expression.rows import Rows

Compared = tuple[str, "Comparison", "list[Outcome]", "tuple[str, ...]"]
"""The capture, what it shows against the baseline, the rules judged, and what to know of its reading."""


def run(args: argparse.Namespace) -> int:
    """0 guardrails hold (or there are none), 1 one is breached, 2 usage, 4 not enough data."""
    from fusetui.analysis.filter import FilterError, parse_filter

    try:
        guard = guard_of(args)
        only = parse_filter(args.filter)
    except (GuardError, FilterError) as error:
        say(f"fusetui: {'' if isinstance(error, GuardError) else '--filter' + chr(10)}{error}")
        return EXIT_USAGE
    live = next((spec for spec in (args.before, *args.after) if is_live(spec)), None)
    if live is not None:
        say(f"fusetui: {live}: compare takes captures; record the source first")
        return EXIT_USAGE
    if (args.junit or args.github) and not guard.rules:
        say("fusetui: --junit and --github tell of guardrails: give --max-p99-regress, --rule or --guard")
        return EXIT_USAGE
    before = rows_of_capture(args.before, args, only)
    compared = [_compared(spec, before, rows_of_capture(spec, args, only), guard, args.seed) for spec in args.after]
    _show(args, compared)
    return _exit(compared, guard)


def _compared(spec: str, before: Rows, after: Rows, guard: Guard, seed: int) -> Compared:
    from fusetui.analysis.compare import compare, observe_change
    from fusetui.analysis.expression.judge import judge
    from fusetui.analysis.expression.observe import Observed, observe
    from fusetui.analysis.expression.rule import Comparison as Asked

    def observed(asked: Asked) -> Observed:
        new = after.scope(asked.where)
        if asked.measure.change:
            return observe_change(asked.measure, before.scope(asked.where), new, asked.limit)
        return observe(asked.measure, new)

    made = compare(before.scope(), after.scope(), seed=seed)
    outcomes = [judge(rule, observed, guard.min_n) for rule in guard.rules]
    return spec, made, outcomes, (*(f"before: {note}" for note in before.notes), *after.notes)


def _exit(compared: list[Compared], guard: Guard) -> int:
    from fusetui.commands.verdicts import EXIT, exit_code

    if guard.rules:
        return exit_code([(spec, outcome) for spec, _, outcomes, _ in compared for outcome in outcomes])
    if all(made.verdict in ("not enough data", "not comparable") for _, made, _, _ in compared):
        return EXIT["not enough data"]
    return 0


def _show(args: argparse.Namespace, compared: list[Compared]) -> None:
    from fusetui.commands.compare_text import markdown, text
    from fusetui.commands.verdicts import github, junit

    judged = [(spec, outcome) for spec, _, outcomes, _ in compared for outcome in outcomes]
    if args.json:
        print(json.dumps(_plain(args, compared), indent=2, allow_nan=False, ensure_ascii=False))
    elif args.junit:
        print(junit(judged))
    elif args.github:
        print("\n".join(github(judged)))
    else:
        lines = markdown if args.markdown else text
        print("\n".join(line for each in compared for line in lines(args.before, *each)))


def _plain(args: argparse.Namespace, compared: list[Compared]) -> dict[str, Any]:
    from fusetui.analysis.compare.plain import comparison_plain, outcome_plain

    return {
        "before": args.before,
        "seed": args.seed,
        "compared": [
            {
                "after": spec,
                **comparison_plain(made),
                "reading": list(reading),
                "rules": [outcome_plain(outcome) for outcome in outcomes],
            }
            for spec, made, outcomes, reading in compared
        ],
    }
