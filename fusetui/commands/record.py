"""`fusetui record`: a live source to Arrow stream segments, headless."""

from __future__ import annotations

import argparse
import signal
import threading
import time
from pathlib import Path
from types import FrameType

from fusetui.commands.inputs import open_live, say
from fusetui.telemetry.recording import Recorder
from fusetui.telemetry.source import Source

EXIT_LOST = 5
EXIT_FAILED = 3
_ENDED = ("ended", "failed", "lost")


def run(args: argparse.Namespace) -> int:
    """Record until the time is up, the source ends, or SIGINT/SIGTERM; the last batch is always written."""
    stop = threading.Event()

    def asked(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, asked)
    signal.signal(signal.SIGINT, asked)
    source = open_live(args.source, args)
    recorder = Recorder(
        Path(args.output),
        source.header,
        max_bytes=args.segment_bytes,
        max_seconds=args.segment_time / 1e9,
        overwrite=args.force,
    )
    try:
        _pump(source, recorder, args, stop)
    finally:
        source.close()
        recorder.close()
    health = source.health()
    if recorder.failed:
        say(f"fusetui: {recorder.failed}")
        return EXIT_FAILED
    losses = f"dropped {health.dropped_rows:,}, rejected {health.rejected_batches:,} batches"
    say(f"recorded {health.rows:,} events to {args.output}, {losses}")
    if health.state in ("failed", "lost"):
        say(f"fusetui: {args.source}: {health.last_error or 'the source was lost'}")
        return EXIT_LOST
    return 0


def _pump(source: Source, recorder: Recorder, args: argparse.Namespace, stop: threading.Event) -> None:
    """Poll into the recorder. A filter keeps only its rows; without one everything is kept."""
    from fusetui.analysis.filter import parse_filter

    keep = parse_filter(args.filter) if args.filter else None
    until = time.monotonic() + args.for_ns / 1e9 if args.for_ns else None
    while not stop.is_set() and not recorder.failed:
        if until is not None and time.monotonic() >= until:
            return
        batches = source.poll(0.2)
        for batch in batches:
            recorder.write(batch if keep is None else batch.filter(keep.mask(batch)))
        if not batches and source.health().state in _ENDED:
            return
