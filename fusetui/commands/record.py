"""`fusetui record`: a live source to Arrow stream segments, headless."""

from __future__ import annotations

import argparse
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import FrameType

import pyarrow as pa

from fusetui.analysis.filter import Filter, FilterError, parse_filter
from fusetui.commands.inputs import open_live, say, why_lost
from fusetui.commands.limits import keep_limits, segment_limits
from fusetui.commands.onlookers import Onlooker, Onlookers
from fusetui.commands.tapes import is_folder
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
    """When to stop: the time is up, or SIGINT, SIGTERM or (unless it is ignored, as under nohup) SIGHUP came."""

    def __init__(self, for_ns: int | None) -> None:
        self._end_s = time.monotonic() + for_ns / 1e9 if for_ns else float("inf")
        self._asked = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._ask)

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
    if args.keep and not is_folder(args.output):
        say("fusetui: --keep is for a recording in a folder: -o FOLDER/")
        return EXIT_USAGE
    stop = _Until(args.for_ns)
    source = open_live(args.source, args)
    try:
        tape = _open_tape(source, args)
        with closing(_onlookers(source, tape, args)) as onlookers:
            _Recording(source, tape, keep, onlookers).run(stop)
            tape.close()
            _tell(tape)
    finally:
        source.close()
    return _outcome(source, tape, args)


def _open_tape(source: Source, args: argparse.Namespace) -> Tape | Reel:
    max_bytes, max_seconds = segment_limits(args.rotate)
    path = Path(args.output)
    if is_folder(args.output):
        return Reel(path, source, max_bytes=max_bytes, max_seconds=max_seconds, keep=keep_limits(args.keep))
    return Tape(path, source, max_bytes=max_bytes, max_seconds=max_seconds, overwrite=args.force)


def _onlookers(source: Source, tape: Tape | Reel, args: argparse.Namespace) -> Onlookers:
    found: list[Onlooker] = []
    if args.alerts is not None:
        from fusetui.commands.record_alerts import Watch
        from fusetui.triage.alert_file import load_alerts

        path = Path(args.output)
        log = path / "alerts.jsonl" if isinstance(tape, Reel) else path.with_suffix(".alerts.jsonl")
        found.append(Watch(load_alerts(args.alerts), source, log))
    if args.metrics is not None:
        from fusetui.commands.metrics import Measures, Pages
        from fusetui.commands.metrics_server import MetricsServer

        server = MetricsServer(args.metrics, allow_remote=args.allow_remote)
        say(f"fusetui: measures at http://{server.address}/metrics")
        found.append(Pages(Measures(source, tape), server))
    return Onlookers(found, say)


class _Recording:
    """From the source to the tape, with those who look on."""

    def __init__(self, source: Source, tape: Tape | Reel, keep: Filter | None, onlookers: Onlookers) -> None:
        self._source = source
        self._tape = tape
        self._keep = keep
        self._onlookers = onlookers

    def run(self, stop: _Until) -> None:
        """Write until `stop` or the end of the source, then what is still on its way."""
        source = self._source
        while not self._tape.failed and not stop:
            batches = source.poll(_POLL_S)
            if not batches and source.health().state in _ENDED:
                break
            self._write(batches)
        if not isinstance(source, Finishing):
            self._write(source.poll(0.0))
            return
        source.finish()
        latest_s = time.monotonic() + _LAST_WORDS_S
        while time.monotonic() < latest_s and (batches := source.poll(_QUIET_S)):
            self._write(batches)

    def _write(self, batches: Sequence[pa.RecordBatch]) -> None:
        for batch in batches:
            kept = batch if self._keep is None else self._keep.apply(batch)
            self._tape.write(kept)
            self._onlookers.add(kept)
        _tell(self._tape)
        self._onlookers.tick()


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
        say(f"fusetui: {why_lost(args.source, health.last_error)}")
        return EXIT_LOST
    return 0
