"""The command line: parse, pick the command, turn bad input into one line and an exit code.

Exit codes: 0 done, 1 breached, 2 usage, 3 unreadable input, 4 not enough data, 5 source lost.
Nothing heavy is imported until a command runs: `--version` and `--help` stay quick.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import TypeAlias

from fusetui import __version__
from fusetui.telemetry.times import parse_bytes, parse_duration_ns

EXIT_USAGE = 2
EXIT_UNREADABLE = 3

_EPILOG = """\
examples:
  fusetui                                    watch the simulated accelerator
  fusetui simulate --list                    other things to watch happen, from the model
  fusetui replay sample:torch-serving        a capture that ships with fusetui
  fusetui replay trace.json.gz --speed 0.5   a profiler trace, played at half speed
  fusetui doctor                             what there is to watch here, and how
  fusetui live host                          this machine: CPUs, run-queue waits, pressure
  fusetui live unix:/tmp/fusetui.sock        any program that streams Arrow telemetry
  fusetui snapshot trace.json.gz --json      every measure once, for scripts
  fusetui compare old.arrows new.arrows --max-p99-regress 10%
  fusetui report new.arrows --baseline old.arrows -o incident.md
  fusetui check new.arrows --rule 'p99(latency) < 50ms and share(fallback) < 5%'
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    args = build_parser().parse_args(argv)
    module: str = args.module
    run: Callable[[argparse.Namespace], int] = importlib.import_module(f"fusetui.commands.{module}").run
    from fusetui.accelerator.errors import AcceleratorError
    from fusetui.telemetry.errors import TelemetryError

    try:
        return run(args)
    except (TelemetryError, AcceleratorError) as error:
        print(f"fusetui: {error}", file=sys.stderr)
        return EXIT_UNREADABLE
    except BrokenPipeError:
        # The reader of our output went away (`| head`): not an error, but Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(
        prog="fusetui",
        description="Accelerator telemetry in the terminal: queue waits, core imbalance, p95/p99.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"fusetui {__version__}")
    _screen_options(parser)
    _source_options(parser)
    parser.set_defaults(module="live", source="sim", record=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _replay(commands)
    _live(commands)
    _snapshot(commands)
    _record(commands)
    _export(commands)
    _slice(commands)
    _plan(commands)
    _calibrate(commands)
    _simulate(commands)
    _retune(commands)
    _report(commands)
    _bundle(commands)
    _compare(commands)
    _check(commands)
    _doctor(commands)
    commands.add_parser("themes", help="list the themes and what is wrong with broken ones").set_defaults(
        module="themes"
    )
    return parser


Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def _replay(commands: Commands) -> None:
    command = commands.add_parser("replay", help="open captures: the contract's own files, PyTorch profiler JSON(.gz)")
    command.add_argument("trace", nargs="+", help="file, or sample:NAME; several files are ranks of one run")
    command.add_argument("--speed", type=_speed, metavar="X", help="play from the start at this speed, 0.1 to 1000")
    command.add_argument("--from", dest="from_", metavar="T", help="begin at 03:10:41.2, 37%% or 12.5s")
    command.add_argument("--to", metavar="T", help="end there")
    command.add_argument("--loop", action="store_true", help="begin again at the end")
    command.add_argument("--follow", action="store_true", help="stay at the end of a capture that is still written")
    _input_options(command)
    _source_options(command)
    _screen_options(command)
    command.set_defaults(module="replay")


def _doctor(commands: Commands) -> None:
    command = commands.add_parser("doctor", help="what there is to watch on this machine, and what is in the way")
    command.add_argument("--json", action="store_true", help="JSON on stdout; absent values are null")
    command.set_defaults(module="doctor")


def _live(commands: Commands) -> None:
    command = commands.add_parser("live", help="watch telemetry as it comes")
    command.add_argument(
        "source",
        nargs="?",
        default="host",
        help="host (default), sim, sim:scenario=NAME, - (stdin), unix:PATH, tcp:HOST:PORT, a pipe, or"
        " devices: nvml, amdsmi, neuron, tt-smi, xpu-smi, hl-smi; `fusetui doctor` tells what is here",
    )
    command.add_argument("--record", metavar="FILE", help="record what comes, as `fusetui record` does")
    command.add_argument("--force", action="store_true", help="overwrite FILE")
    _socket_options(command)
    _source_options(command)
    _screen_options(command)
    command.set_defaults(module="live")


def _snapshot(commands: Commands) -> None:
    command = commands.add_parser("snapshot", help="print every measure of a source or capture once")
    command.add_argument("source", help="a live source, a capture, or sample:NAME")
    command.add_argument("--json", action="store_true", help="JSON on stdout; absent values are null")
    command.add_argument(
        "--coverage", action="store_true", help="instead: what a capture tells of how many rows, and what it cannot"
    )
    command.add_argument(
        "--causes", action="store_true", help="also what caused the tail, by simulating its arrivals (seconds)"
    )
    _input_options(command)
    _socket_options(command)
    _source_options(command)
    command.set_defaults(module="snapshot")


def _record(commands: Commands) -> None:
    command = commands.add_parser("record", help="record a live source as Arrow stream segments")
    command.add_argument("source", help="host, sim, -, unix:PATH, tcp:HOST:PORT, or a pipe")
    command.add_argument("-o", "--output", required=True, metavar="FILE", help="first segment, e.g. night.arrows")
    command.add_argument("--for", dest="for_ns", type=_duration, metavar="D", help="stop after this long")
    command.add_argument(
        "--segment-bytes", type=_bytes, default=256 << 20, metavar="SIZE", help="rotate after this much"
    )
    command.add_argument(
        "--segment-time", type=_duration, default=3600 * 10**9, metavar="D", help="rotate after this long"
    )
    command.add_argument("--force", action="store_true", help="overwrite existing files")
    _socket_options(command)
    _source_options(command)
    command.set_defaults(module="record")


def _export(commands: Commands) -> None:
    command = commands.add_parser("export", help="convert a capture to other formats, also of trace viewers")
    command.add_argument("trace", nargs="+", help="file, or sample:NAME")
    command.add_argument("-o", "--output", metavar="FILE", help="default: standard output (csv and json)")
    command.add_argument(
        "--format",
        choices=("arrows", "parquet", "csv", "json", "chrome", "perfetto"),
        help="default: by the ending of FILE; chrome and perfetto open in ui.perfetto.dev",
    )
    command.add_argument("--force", action="store_true", help="overwrite FILE")
    _input_options(command)
    command.add_argument(
        "--memory", type=_bytes, default=512 << 20, metavar="SIZE", help="memory limit (default 512MiB)"
    )
    command.set_defaults(module="export")


def _slice(commands: Commands) -> None:
    command = commands.add_parser("slice", help="part of a capture as a small file; prints the hash of what is in it")
    command.add_argument("trace", nargs="+", help="file, or sample:NAME; several files are ranks of one run")
    command.add_argument("--from", dest="from_", metavar="T", help="first event time: 03:10:41.2, 37%% or 12.5s")
    command.add_argument("--to", metavar="T", help="last event time, included")
    command.add_argument("--filter", default="", metavar="EXPR", help="only rows that pass, e.g. 'core = 3'")
    command.add_argument("-o", "--output", required=True, metavar="FILE", help="e.g. evidence.arrows")
    command.add_argument("--force", action="store_true", help="overwrite FILE")
    _input_options(command)
    command.add_argument(
        "--memory", type=_bytes, default=512 << 20, metavar="SIZE", help="memory limit (default 512MiB)"
    )
    command.set_defaults(module="slice")


def _plan(commands: Commands) -> None:
    command = commands.add_parser("plan", help="fusion and tile plan of a model on a described accelerator")
    command.add_argument(
        "block",
        nargs="?",
        metavar="BLOCK|FILE",
        help="a built-in block, e.g. transformer-prefill; an ONNX file; or a capture, whose operators are planned and"
        " compared with what they took. Without it, what there is",
    )
    command.add_argument("--hardware", default="H100", metavar="H", help="a preset or a TOML file (default H100)")
    command.add_argument("--dtype", metavar="T", help="element type (default that of the file; bf16 for a block)")
    policies = ("none", "conservative", "balanced", "aggressive")
    command.add_argument("--policy", choices=policies, default="balanced", help="how far to fuse (default balanced)")
    command.add_argument(
        "--shapes", default="", metavar="N=V,…", help="e.g. model=llama-7b,batch=4; sizes of symbolic dimensions"
    )
    command.add_argument("--launch", choices=("eager", "graph"), default="eager", help="how kernels are launched")
    command.add_argument(
        "--constants",
        metavar="FILE",
        help="what `fusetui calibrate -o` wrote (default: *.json for this device and type in the folder constants of"
        " the configuration)",
    )
    command.add_argument("--pareto", action="store_true", help="of each group, the tiles to choose between")
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="JSON on standard output; absent values are null")
    form.add_argument("--markdown", action="store_true", help="Markdown tables")
    command.set_defaults(module="plan")


def _calibrate(commands: Commands) -> None:
    command = commands.add_parser("calibrate", help="fit the accelerator model to measured kernels")
    command.add_argument(
        "rows",
        metavar="ROWS.csv",
        help="columns op,dtype,latency_us and batch,m,n,k (matmul); batch,q_heads,kv_heads,q_len,kv_len,head_dim,causal"
        " (attention); bytes_in,bytes_out,rows (add, norm, softmax, ...). `host` measures this CPU instead",
    )
    command.add_argument("--hardware", required=True, metavar="H", help="a preset, host, or a .toml file")
    command.add_argument(
        "--train", type=int, metavar="N", help="rows to fit on, per dtype and family (default 20, at most half)"
    )
    command.add_argument("--seed", type=int, default=0, metavar="S", help="which rows (default 0)")
    command.add_argument("-o", "--output", metavar="FILE", help="write the constants here")
    command.add_argument("--json", action="store_true", help="JSON on stdout")
    command.set_defaults(module="calibrate")


def _simulate(commands: Commands) -> None:
    command = commands.add_parser("simulate", help="telemetry of a scenario from the accelerator model")
    command.add_argument("scenario", nargs="?", help="a scenario that ships (see --list), or a TOML file")
    command.add_argument("--list", action="store_true", help="the scenarios that ship and what to see in them")
    command.add_argument("-o", "--output", metavar="FILE", help="write the trace here, e.g. burst.arrows")
    command.add_argument("--force", action="store_true", help="overwrite FILE")
    command.add_argument("--live", action="store_true", help="watch it, round after round")
    command.add_argument("--speed", type=_speed, default=1.0, metavar="X", help="with --live: 0.1 to 1000")
    command.add_argument("--seed", type=_seed, metavar="N", help="other draws (default: the scenario's)")
    command.add_argument("--policy", metavar="P[,P…]", help="plan under another policy; several are compared")
    command.add_argument("--json", action="store_true", help="JSON on stdout; absent values are null")
    _source_options(command)
    _screen_options(command)
    command.set_defaults(module="simulate")


def _retune(commands: Commands) -> None:
    command = commands.add_parser("retune", help="compare plan and telemetry, and try bounded changes on what came")
    command.add_argument("trace", help="a capture, or sample:NAME")
    command.add_argument("--hardware", metavar="H", help="a preset or a TOML file, to plan what a profile shows")
    command.add_argument("--max", type=_number, default=5, metavar="N", help="most proposals (default 5)")
    command.add_argument("--measured", metavar="TRACE", help="a capture of the same work after the change")
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="JSON on stdout; absent values are null")
    form.add_argument("--markdown", action="store_true", help="Markdown, for an issue")
    command.add_argument("--window", type=_duration, metavar="D", help="only the last part of the trace, e.g. 10s")
    command.add_argument(
        "--memory", type=_bytes, default=512 << 20, metavar="SIZE", help="memory limit (default 512MiB)"
    )
    _input_options(command)
    command.set_defaults(module="retune")


def _compare(commands: Commands) -> None:
    command = commands.add_parser("compare", help="captures before and after a change, and against guardrails")
    command.add_argument("before", help="the baseline: a capture, or sample:NAME")
    command.add_argument("after", nargs="+", help="captures, each against the baseline")
    for level in ("p50", "p95", "p99"):
        command.add_argument(
            f"--max-{level}-regress",
            type=_share,
            metavar="SHARE",
            help=f"breached when {level} of the latency rose more, e.g. 10%%",
        )
    command.add_argument("--seed", type=_seed, default=0, metavar="N", help="of the bootstrap (default 0)")
    _guard_options(command)
    command.set_defaults(module="compare")


def _check(commands: Commands) -> None:
    command = commands.add_parser("check", help="judge a capture or source by rules; the exit code is the answer")
    command.add_argument("trace", metavar="TRACE", help="a capture, sample:NAME, or a live source for one --window")
    _guard_options(command, markdown=False)
    _socket_options(command)
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
    command.add_argument("--min-n", type=_number, metavar="N", help="with fewer items: not enough data (exit 4)")
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="JSON on stdout; absent values are null")
    if markdown:
        form.add_argument("--markdown", action="store_true", help="Markdown, for an issue")
    form.add_argument("--junit", action="store_true", help="JUnit XML")
    form.add_argument("--github", action="store_true", help="annotations for GitHub workflows")
    _input_options(command)
    _source_options(command)


def _report(commands: Commands) -> None:
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


def _bundle(commands: Commands) -> None:
    command = commands.add_parser("bundle", help="rows, report and findings of a capture as one zip for a ticket")
    command.add_argument("-o", "--output", required=True, metavar="FILE", help="e.g. incident.zip")
    _report_options(command)
    command.set_defaults(module="bundle")


def _report_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("trace", metavar="TRACE", help="a capture, or sample:NAME")
    command.add_argument("--baseline", metavar="TRACE", help="a capture from before, to compare with")
    command.add_argument("--redact", action="store_true", help="pseudonyms for hosts, paths and users")
    command.add_argument("--owners", metavar="FILE", help="who owns what (default owners.toml of the configuration)")
    command.add_argument("--hardware", metavar="H", help="a preset or a TOML file, to plan what a profile shows")
    command.add_argument("--force", action="store_true", help="overwrite FILE")
    _input_options(command)
    _source_options(command)


def _input_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--isolate", action="store_true", help="parse in a child process, for files you do not trust")


def _socket_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--token", help="what producers must send first (needed beyond loopback)")
    command.add_argument("--allow-remote", action="store_true", help="listen beyond loopback; needs --token")
    command.add_argument(
        "--overflow",
        choices=("block", "drop"),
        default="block",
        help="when behind: hold producers back, or drop and count",
    )


def _source_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--window", type=_duration, metavar="D", help="how much the measures look back, e.g. 10s")
    command.add_argument("--filter", default="", metavar="EXPR", help="e.g. 'stream ~ \"prefill\" and wait > 5ms'")
    command.add_argument(
        "--memory", type=_bytes, default=512 << 20, metavar="SIZE", help="memory limit (default 512MiB)"
    )


def _screen_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--theme", help="dark, light, high-contrast, colour-blind, ansi16, or one of yours")
    command.add_argument("--glyphs", choices=("braille", "block", "ascii"), help="what charts are drawn with")
    command.add_argument("--hz", type=_hertz, default=2.0, metavar="N", help="screen refreshes per second, 0.2 to 10")
    command.add_argument("--slo", type=_duration, metavar="D", help="latency objective, e.g. 50ms")
    command.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal")


def _argument(parse: Callable[[str], int]) -> Callable[[str], int]:
    def checked(text: str) -> int:
        try:
            value = parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        if value <= 0:
            raise argparse.ArgumentTypeError(f"{text!r} must be more than 0")
        return value

    return checked


_duration = _argument(parse_duration_ns)
_bytes = _argument(parse_bytes)
_number = _argument(int)


def _within(text: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{text!r} is not between {low:g} and {high:g}")
    return value


def _speed(text: str) -> float:
    return _within(text, 0.1, 1000)


def _seed(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if not 0 <= value < 1 << 62:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0 and 2^62")
    return value


def _share(text: str) -> str:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no share, like 10%") from None
    if not 0 <= value <= 10_000 or not text.isascii() or "e" in text.lower() or "_" in text:
        raise argparse.ArgumentTypeError(f"{text!r} is no share, like 10%")
    return text.strip()


def _hertz(text: str) -> float:
    return _within(text, 0.2, 10)


if __name__ == "__main__":
    sys.exit(main())
