"""Command lines of what judges and tells: comparisons, rules, reports."""

from __future__ import annotations

import argparse

from fusetui.commands.options import Commands, input_options, number, seed, share, socket_options, source_options


def compare(commands: Commands) -> None:
    command = commands.add_parser("compare", help="captures before and after a change, and against guardrails")
    command.add_argument("before", help="the baseline: a capture, or sample:NAME")
    command.add_argument("after", nargs="+", help="captures, each against the baseline")
    for level in ("p50", "p95", "p99"):
        command.add_argument(
            f"--max-{level}-regress",
            type=share,
            metavar="SHARE",
            help=f"breached when {level} of the latency rose more, e.g. 10%%",
        )
    command.add_argument("--seed", type=seed, default=0, metavar="N", help="of the bootstrap (default 0)")
    _quality_options(command)
    _guard_options(command)
    command.set_defaults(module="compare")


def check(commands: Commands) -> None:
    command = commands.add_parser("check", help="judge a capture or source by rules; the exit code is the answer")
    command.add_argument("trace", metavar="TRACE", help="a capture, sample:NAME, or a live source for one --window")
    _guard_options(command, markdown=False)
    socket_options(command)
    command.set_defaults(module="check")


def _guard_options(command: argparse.ArgumentParser, *, markdown: bool = True) -> None:
    command.add_argument(
        "--rule",
        action="append",
        default=[],
        metavar="EXPR",
        help="e.g. 'p99(queue_wait) < 5ms where stream ~ prefill'",
    )
    command.add_argument("--guard", metavar="FILE", help="TOML: rules = ['…'], min_n = 1000")
    _owners_option(command)
    command.add_argument("--min-n", type=number, metavar="N", help="with fewer items: not enough data (exit 4)")
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="JSON on stdout; absent values are null")
    if markdown:
        form.add_argument("--markdown", action="store_true", help="Markdown, for an issue")
    form.add_argument("--junit", action="store_true", help="JUnit XML")
    form.add_argument("--github", action="store_true", help="annotations for GitHub workflows")
    input_options(command)
    source_options(command)


def _quality_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--quality", metavar="FILE", help="CSV of quality before and after: name,before,after or time,name,value"
    )
    command.add_argument(
        "--max-quality-drop", type=share, metavar="SHARE", help="no go when quality got worse by more (default 1%%)"
    )


def _owners_option(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--owners",
        metavar="FILE",
        help="who owns what (default: owners.toml of the project, else of the configuration)",
    )


def report(commands: Commands) -> None:
    command = commands.add_parser("report", help="what is wrong with a capture and how that is known, for an issue")
    form = command.add_mutually_exclusive_group()
    for name, what in (
        ("markdown", "Markdown that fits an issue (default, or by the ending of FILE)"),
        ("html", "one HTML file with charts"),
        ("json", "JSON; absent values are null"),
    ):
        form.add_argument(f"--{name}", dest="form", action="store_const", const=name, help=what)
    command.add_argument("-o", "--output", metavar="FILE", help="default: standard output")
    _report_options(command)
    command.set_defaults(module="report")


def bundle(commands: Commands) -> None:
    command = commands.add_parser("bundle", help="rows, report and findings of a capture as one zip for a ticket")
    command.add_argument("-o", "--output", required=True, metavar="FILE", help="e.g. incident.zip")
    command.add_argument(
        "--screens", action="store_true", help="with pictures of the screens (SVG), as replay shows them"
    )
    _report_options(command)
    command.set_defaults(module="bundle")


def _report_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("trace", metavar="TRACE", help="a capture, or sample:NAME")
    command.add_argument("--baseline", metavar="TRACE", help="a capture from before, to compare with")
    command.add_argument("--redact", action="store_true", help="pseudonyms for hosts, paths and users")
    _quality_options(command)
    _owners_option(command)
    command.add_argument("--no-causes", action="store_true", help="ask no model what caused the tail: seconds less")
    command.add_argument("--no-retune", action="store_true", help="try no changes on the requests that came")
    command.add_argument("--quick", action="store_true", help="both: measures, findings and comparison only")
    command.add_argument("--hardware", metavar="H", help="a preset or a TOML file, to plan what a profile shows")
    command.add_argument("--force", action="store_true", help="overwrite FILE")
    input_options(command)
    source_options(command)
