"""`fusetui compare`: captures against a baseline, and against guardrails. The exit code is the answer."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from fusetui.commands.check import EXIT_USAGE, rows_of_capture
from fusetui.commands.guard import Guard, GuardError, guard_of
from fusetui.commands.inputs import is_live, say

if TYPE_CHECKING:
    from fusetui.analysis.expression.judge import Verdict
    from fusetui.analysis.expression.rows import Rows
    from fusetui.commands.compare_tables import Compared
    from fusetui.triage.owners import Owners


def run(args: argparse.Namespace) -> int:
    """0 guardrails hold (or there are none), 1 one is breached, 2 usage, 4 not enough data.

    With --quality the rollout is a guardrail too: 1 for "no go", 4 for "blocked".
    """
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
    from fusetui.commands.quality import readable
    from fusetui.triage.owners import load_owners

    owners = load_owners(args.owners)
    readable(args.quality)
    before = rows_of_capture(args.before, args, only)
    compared = [_compared(spec, before, rows_of_capture(spec, args, only), guard, args, owners) for spec in args.after]
    _show(args, compared)
    return _exit(args, compared, guard)


def _compared(spec: str, before: Rows, after: Rows, guard: Guard, args: argparse.Namespace, owners: Owners) -> Compared:
    from fusetui.analysis.compare import compare, observe_change
    from fusetui.analysis.expression.judge import judge
    from fusetui.analysis.expression.observe import Observed, observe
    from fusetui.analysis.expression.rule import Comparison as Asked
    from fusetui.commands.compare_tables import Compared
    from fusetui.commands.quality import quality_of
    from fusetui.triage.owners import unowned
    from fusetui.triage.rollout import rollout_of
    from fusetui.triage.rule_owners import owner_of

    def observed(asked: Asked) -> Observed:
        new = after.scope(asked.where)
        if asked.measure.change:
            return observe_change(asked.measure, before.scope(asked.where), new, asked.limit)
        return observe(asked.measure, new)

    made = compare(before.scope(), after.scope(), seed=args.seed)
    plans = tuple(after.header.plans)
    outcomes = [judge(rule, observed, guard.min_n) for rule in guard.rules]
    quality, notes = quality_of(args, before.scope(), after.scope())
    return Compared(
        before=args.before,
        after=spec,
        made=made,
        outcomes=[(outcome, owner_of(outcome, owners, plans)) for outcome in outcomes],
        owner=owners.of("tail", plans=plans) or unowned("tail"),
        rollout=rollout_of(made, quality),
        reading=(*(f"before: {note}" for note in before.notes), *after.notes, *notes),
    )


def _exit(args: argparse.Namespace, compared: list[Compared], guard: Guard) -> int:
    from fusetui.analysis.expression.judge import BREACHED, HOLDS, SHORT, worst
    from fusetui.commands.verdicts import EXIT

    verdicts = [outcome.verdict for one in compared for outcome, _ in one.outcomes]
    if args.quality:
        of: dict[str, Verdict] = {"go": HOLDS, "no go": BREACHED, "blocked": SHORT}
        verdicts += [of[one.rollout.verdict] for one in compared]
    if verdicts:
        return EXIT[worst(verdicts)]
    if all(one.made.verdict in ("not enough data", "not comparable") for one in compared):
        return EXIT[SHORT]
    return 0


def _show(args: argparse.Namespace, compared: list[Compared]) -> None:
    from fusetui.commands.compare_text import markdown, text
    from fusetui.commands.verdicts import github, junit

    judged = [(one.after, outcome) for one in compared for outcome, _ in one.outcomes]
    owners = [owner for one in compared for _, owner in one.outcomes]
    if args.json:
        print(json.dumps(_plain(args, compared), indent=2, allow_nan=False, ensure_ascii=False))
    elif args.junit:
        print(junit(judged, owners))
    elif args.github:
        print("\n".join(github(judged, owners)))
    else:
        lines = markdown if args.markdown else text
        print("\n".join(line for one in compared for line in lines(one)))


def _plain(args: argparse.Namespace, compared: list[Compared]) -> dict[str, Any]:
    from fusetui.analysis.compare.plain import comparison_plain, outcome_plain, plain
    from fusetui.triage.rollout import rollout_plain

    return {
        "before": args.before,
        "seed": args.seed,
        "compared": [
            {
                "after": one.after,
                **comparison_plain(one.made),
                "owner": one.owner,
                "rollout": plain(rollout_plain(one.rollout)),
                "reading": list(one.reading),
                "rules": [{**outcome_plain(outcome), "owner": owner} for outcome, owner in one.outcomes],
            }
            for one in compared
        ],
    }
