"""`fusetui replay`: open captures and watch them under a clock."""

from __future__ import annotations

import argparse
from hashlib import sha256
from pathlib import Path

from fusetui.commands.inputs import capture_path, open_trace, say
from fusetui.commands.watch import watch
from fusetui.telemetry.replay import Replay
from fusetui.telemetry.source import Trace
from fusetui.telemetry.times import parse_position_ns

_FIRST_BATCHES_WAIT_S = 30.0


def run(args: argparse.Namespace) -> int:
    """Open, position, watch."""
    trace = open_trace(args.trace, args)
    wait_for_first_batch(trace)
    replay = Replay(trace, follow=args.follow or not _plays(args), name=_title(args.trace))
    try:
        position(replay, trace, args)
    except ValueError as error:
        say(f"fusetui: {error}")
        return 2
    return watch(replay, args, title=_title(args.trace), bookmarks_key=capture_key(args.trace), trace=trace)


def wait_for_first_batch(trace: Trace) -> None:
    """An import runs beside us; until it has a batch there is nothing to show. Raises what stopped it."""
    wait = getattr(trace, "wait", None)
    if wait is not None:
        wait(_FIRST_BATCHES_WAIT_S)


def position(replay: Replay, trace: Trace, args: argparse.Namespace) -> None:
    """Apply --to, --from, --speed and --loop. Raises ValueError for a time that is none."""
    state = replay.state()

    def place(text: str) -> int:
        return parse_position_ns(text, state.start_ns, state.end_ns, state.start_ns, trace.header.clock)

    if args.to is not None:
        replay.limit(place(args.to))
    if not _plays(args):
        return
    replay.seek_ns(place(args.from_) if args.from_ is not None else state.start_ns)
    replay.set_loop(args.loop)
    if args.speed is not None:
        replay.set_speed(args.speed)
    replay.play()


def _plays(args: argparse.Namespace) -> bool:
    """Without a word about playing, a capture opens at its end with all of it in view."""
    return args.speed is not None or args.from_ is not None or args.loop


def _title(specs: list[str]) -> str:
    name = capture_path(specs[0]).name
    return name if len(specs) == 1 else f"{name} and {len(specs) - 1} more"


def capture_key(specs: list[str]) -> str:
    """What bookmarks and decisions of these captures are kept under: where they lie, hashed."""
    paths = "\n".join(str(Path(capture_path(s)).resolve()) for s in specs)
    return sha256(paths.encode("utf-8", "surrogateescape")).hexdigest()[:16]
