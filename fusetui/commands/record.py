"""`fusetui record`: a live source to Arrow stream segments, headless."""

from __future__ import annotations

import argparse
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import pyarrow as pa

from fusetui.analysis.filter import Filter, FilterError, parse_filter
from fusetui.commands.inputs import open_live, say
from fusetui.commands.limits import keep_limits, segment_limits
from fusetui.telemetry.reel import Reel
from fusetui.telemetry.source import Finishing, Source
from fusetui.telemetry.tape import Tape

EXIT_USAGE = 2
EXIT_FAILED = 3
EXIT_LOST = 5
_ENDED = ("ended", "failed", "lost")
_POLL_S = 0.2
_QUIET_S = 0.5
"""Nothing for so long: producers have noticed that this side ends."""
_LAST_WORDS_S = 3.0
"""A producer that does not notice is cut off after this."""


class _Until:
    """When to stop: the time is up, or SIGINT or SIGTERM came."""

    def __init__(self, for_ns: int | None) -> None:
        self._end_s = time.monotonic() + for_ns / 1e9 if for_ns else float("inf")
        self._asked = threading.Event()
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, self._ask)

    def _ask(self, _signal: int, _frame: FrameType | None) -> None:
        self._asked.set()

    def __bool__(self) -> bool:
        """True once it is time to stop."""
        return self._asked.is_set() or time.monotonic() >= self._end_s


def run(args: argparse.Namespace) -> int:
    """Record until the time is up, the source ends, or a signal asks; the last batch is always written."""
    try:
        keep = parse_filter(args.filter)
    except FilterError as error:
        say(f"fusetui: --filter\n{error}")
        return EXIT_USAGE
    if args.keep and not _is_folder(args.output):
        say("fusetui: --keep is for a recording in a folder: -o FOLDER/")
        return EXIT_USAGE
    stop = _Until(args.for_ns)
    source = open_live(args.source, args)
    try:
        tape = _open_tape(source, args)
        _pump(source, tape, keep, stop)
        tape.close()
        _tell(tape)
    finally:
        source.close()
    return _outcome(source, tape, args)


def _is_folder(output: str) -> bool:
    """A folder that is there, or a name that is not a file's."""
    return output.endswith("/") or not Path(output).suffix or Path(output).is_dir()


def _open_tape(source: Source, args: argparse.Namespace) -> Tape | Reel:
    max_bytes, max_seconds = segment_limits(args.rotate)
    path = Path(args.output)
    if _is_folder(args.output):
        return Reel(path, source, max_bytes=max_bytes, max_seconds=max_seconds, keep=keep_limits(args.keep))
    return Tape(path, source, max_bytes=max_bytes, max_seconds=max_seconds, overwrite=args.force)


def _pump(source: Source, tape: Tape | Reel, keep: Filter | None, stop: _Until) -> None:
    """Write until `stop`, then what is still on its way."""
    while not tape.failed and not stop:
        batches = source.poll(_POLL_S)
        if not batches and source.health().state in _ENDED:
            break
        _write(batches, tape, keep)
    if not isinstance(source, Finishing):
        _write(source.poll(0.0), tape, keep)
        return
    source.finish()
    latest_s = time.monotonic() + _LAST_WORDS_S
    while time.monotonic() < latest_s and (batches := source.poll(_QUIET_S)):
        _write(batches, tape, keep)


def _write(batches: Sequence[pa.RecordBatch], tape: Tape | Reel, keep: Filter | None) -> None:
    for batch in batches:
        tape.write(batch if keep is None else keep.apply(batch))
    _tell(tape)


def _tell(tape: Tape | Reel) -> None:
    """Say what happened to a recording that goes on all the same."""
    if isinstance(tape, Reel):
        tape.tick()
        for line in tape.take_lines():
            say(f"fusetui: {line}")


def _outcome(source: Source, tape: Tape | Reel, args: argparse.Namespace) -> int:
    health = source.health()
    losses = f"dropped {health.dropped_rows:,}, rejected {health.rejected_batches:,} batches"
    if isinstance(tape, Reel):
        losses += f", not written {tape.lost:,}"
    say(f"recorded {tape.rows:,} events to {args.output}, {losses}")
    if tape.failed:
        say(f"fusetui: {tape.failed}")
        return EXIT_FAILED
    if health.state in ("failed", "lost"):
        say(f"fusetui: {args.source}: {health.last_error or 'the source was lost'}")
        return EXIT_LOST
    return 0
