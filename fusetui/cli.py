"""The command line: parse, pick the command, turn bad input into one line and an exit code.

Exit codes: 0 done, 1 breached, 2 usage, 3 unreadable input, 4 not enough data, 5 source lost.
Nothing heavy is imported until a command runs: `--version` and `--help` stay quick.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence

from fusetui import __version__
from fusetui.commands import parsers_capture, parsers_model, parsers_triage
from fusetui.commands.options import screen_options, source_options
from fusetui.commands.parser import Parser

EXIT_USAGE = 2
EXIT_UNREADABLE = 3
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

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
    _tolerate_narrow_encodings()
    args = build_parser().parse_args(argv)
    module: str = args.module
    run: Callable[[argparse.Namespace], int] = importlib.import_module(f"fusetui.commands.{module}").run
    from fusetui.accelerator.errors import AcceleratorError
    from fusetui.telemetry.errors import TelemetryError

    try:
        code = run(args)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except (TelemetryError, AcceleratorError) as error:
        print(f"fusetui: {error}", file=sys.stderr)
        return EXIT_UNREADABLE
    except BrokenPipeError:
        # The reader of our output went away (`| head`): not an error.
        _forget_output()
        return 0
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        _forget_output()
        print(f"fusetui: standard output: cannot be written ({error.strerror})", file=sys.stderr)
        return EXIT_UNREADABLE
    except KeyboardInterrupt:
        return 130


def _tolerate_narrow_encodings() -> None:
    """A λ that a Latin-1 or ASCII locale does not have becomes a question mark; the output goes on."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def _forget_output() -> None:
    """What is still buffered cannot be written; Python would complain at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser: argparse.ArgumentParser = Parser(
        prog="fusetui",
        description="Accelerator telemetry in the terminal: queue waits, core imbalance, p95/p99.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"fusetui {__version__}")
    screen_options(parser)
    source_options(parser)
    parser.set_defaults(module="start", source="sim", record=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    parsers_capture.replay(commands)
    parsers_capture.live(commands)
    parsers_capture.snapshot(commands)
    parsers_capture.record(commands)
    parsers_capture.stream(commands)
    parsers_capture.export(commands)
    parsers_capture.slice(commands)
    parsers_model.plan(commands)
    parsers_model.calibrate(commands)
    parsers_model.simulate(commands)
    parsers_model.retune(commands)
    parsers_triage.report(commands)
    parsers_triage.bundle(commands)
    parsers_triage.compare(commands)
    parsers_triage.check(commands)
    parsers_capture.doctor(commands)
    commands.add_parser("themes", help="list the themes and what is wrong with broken ones").set_defaults(
        module="themes"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
