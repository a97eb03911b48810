"""`fusetui stream`: a live source to a viewer over a socket, headless."""

from __future__ import annotations

import argparse
import signal
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from types import FrameType

import pyarrow as pa

from fusetui.analysis.filter import Filter, FilterError, parse_filter
from fusetui.commands.inputs import open_live, say, why_lost
from fusetui.commands.way_out import Way, way_out
from fusetui.sources.arrow_merge import with_host
from fusetui.telemetry.sender import BEAT_S, Sender
from fusetui.telemetry.source import Source
from fusetui.telemetry.text import safe_text

EXIT_USAGE = 2
EXIT_LOST = 5
_ENDED = ("ended", "failed", "lost")
_TICK_S = 0.1
_LAST_WORDS_S = 3.0
_LAST_TRY_S = 10.0
_SAY_S = 5.0
_REPEAT_S = 60.0


class _Until:
    """When to stop: the time is up, or SIGINT or SIGTERM came. A send that waits then has 3 s left."""

    def __init__(self, for_ns: int | None) -> None:
        self._end_s = time.monotonic() + for_ns / 1e9 if for_ns else float("inf")
        self._asked = threading.Event()
        self.sender: Sender | None = None
        self.source: Source | None = None
        self.way: Way | None = None
        self._said = ""
        self._said_s = time.monotonic()
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, self._ask)

    @property
    def asked(self) -> bool:
        return self._asked.is_set() or time.monotonic() >= self._end_s

    def __call__(self) -> bool:
        """For the sender, which asks while the viewer is away: says so, and whether to give up."""
        if self.way is not None and self.sender is not None:
            text = self.way.wrong(self.sender) or "waiting for the viewer"
            if time.monotonic() > self._said_s + (_SAY_S if text != self._said else _REPEAT_S):
                self._said, self._said_s = text, time.monotonic()
                say(f"fusetui: {text}")
        if self.source is not None and self.source.health().state in _ENDED:
            self.soon(_LAST_TRY_S)
        return self.asked

    def soon(self, seconds: float) -> None:
        """The source has ended: what is left has so long to get out, if the viewer is away."""
        self._end_s = min(self._end_s, time.monotonic() + seconds)

    def _ask(self, _signal: int, _frame: FrameType | None) -> None:
        self._asked.set()
        if self.sender is not None:
            timer = threading.Timer(_LAST_WORDS_S, self.sender.abort)
            timer.daemon = True
            timer.start()


def run(args: argparse.Namespace) -> int:
    """Send until the time is up, the source ends, or a signal asks."""
    try:
        keep = parse_filter(args.filter)
    except FilterError as error:
        say(f"fusetui: --filter\n{error}")
        return EXIT_USAGE
    until = _Until(args.for_ns)
    source = open_live(args.source, args)
    try:
        batches = _first(source, until)
        header = replace(source.header, host=_host(args, source))
        with way_out(args.to, args.token, args.allow_remote) as way:
            until.source, until.way = source, way
            until.sender = sender = way.sender(header, until)
            threading.Thread(target=_beat, args=(sender, until), name="fusetui-beat", daemon=True).start()
            _pump(source, sender, keep, until, batches)
            sender.close(_LAST_WORDS_S)
            return _outcome(source, sender, way, args)
    finally:
        source.close()


def _beat(sender: Sender, until: _Until) -> None:
    """A source that takes its time does not make its host look hung."""
    while not until.asked:
        sender.beat()
        time.sleep(BEAT_S / 4)


def _host(args: argparse.Namespace, source: Source) -> str:
    return safe_text(args.host or source.header.host or socket.gethostname(), 200)


def _first(source: Source, until: _Until) -> Sequence[pa.RecordBatch]:
    """The first batches: only with them is the header of a socket's first producer known."""
    while not until.asked:
        batches = source.poll(_TICK_S)
        if batches or source.health().state in _ENDED:
            return batches
    return ()


def _pump(
    source: Source, sender: Sender, keep: Filter | None, until: _Until, batches: Sequence[pa.RecordBatch]
) -> None:
    host = sender.header.host or ""
    while True:
        kept = [with_host(batch if keep is None else keep.apply(batch), host) for batch in batches]
        if not sender.send(kept) or until.asked or (not batches and source.health().state in _ENDED):
            return
        batches = source.poll(_TICK_S)


def _outcome(source: Source, sender: Sender, way: Way, args: argparse.Namespace) -> int:
    health = source.health()
    confirmed = f"{sender.confirmed:,} confirmed" if sender.answered else "the viewer confirms nothing"
    breaks = f", {sender.breaks} broken connections" if sender.breaks else ""
    lost = f", {sender.unconfirmed:,} lost on the way" if sender.unconfirmed else ""
    say(f"took {sender.taken:,} events, sent {sender.sent:,} to {args.to}, {confirmed}{lost}{breaks}")
    if health.dropped_rows or health.rejected_batches:
        say(f"dropped {health.dropped_rows:,}, rejected {health.rejected_batches:,} batches")
    if sender.sent < sender.taken or (sender.answered and sender.confirmed < sender.sent):
        say(f"fusetui: {way.wrong(sender) or args.to + ': the viewer did not confirm the last rows'}")
        return EXIT_LOST
    if health.state in ("failed", "lost"):
        say(f"fusetui: {why_lost(args.source, health.last_error)}")
        return EXIT_LOST
    return 0
