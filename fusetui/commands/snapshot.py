"""`fusetui snapshot`: every measure once, for people and for scripts. Never imports the application."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from fusetui.commands.coverage_table import coverage_lines
from fusetui.commands.inputs import is_live, open_live, open_trace, rows_bytes, say, why_lost
from fusetui.commands.progress import finish_reading
from fusetui.commands.table import summary_lines
from fusetui.telemetry.source import Source

EXIT_USAGE = 2
EXIT_NOT_ENOUGH = 4
EXIT_LOST = 5
_LIVE_WINDOW_NS = 10 * 10**9


def run(args: argparse.Namespace) -> int:
    """Measure, print, and say by the exit code whether there was anything to measure."""
    from fusetui.analysis.filter import FilterError

    for word in ("causes", "coverage"):
        if getattr(args, word) and is_live(args.source):
            say(f"fusetui: --{word} needs a capture: record one first, or leave it out")
            return EXIT_USAGE
    try:
        summary = _live(args) if is_live(args.source) else _captured(args)
    except FilterError as error:
        say(f"fusetui: --filter\n{error}")
        return EXIT_USAGE
    if args.json:
        print(json.dumps(summary, indent=2, allow_nan=False, ensure_ascii=False))
    else:
        print("\n".join(coverage_lines(summary) if args.coverage else summary_lines(summary)))
    health, empty = summary["source_health"], is_live(args.source) and not _events(summary)
    if health["state"] in ("lost", "failed") or (empty and health["state"] == "reconnecting" and health["last_error"]):
        say(f"fusetui: {why_lost(args.source, health['last_error'])}")
        return EXIT_LOST
    if empty:
        say(f"fusetui: {args.source}: nothing came within the window; is anything sending?")
        return EXIT_NOT_ENOUGH
    return 0


def _events(summary: dict[str, Any]) -> int:
    return sum(summary[kind] or 0 for kind in ("executions", "requests", "counters", "marks"))


def _captured(args: argparse.Namespace) -> dict[str, Any]:
    from fusetui.analysis.summary import summarise_trace

    trace = open_trace([args.source], args)
    try:
        finish_reading(trace)
        return summarise_trace(trace, window_ns=args.window, filter=args.filter or None, causes=args.causes)
    finally:
        trace.close()


def _live(args: argparse.Namespace) -> dict[str, Any]:
    """Listen for one window, then measure it."""
    from fusetui.analysis.ingest import Ingest
    from fusetui.analysis.summary import summarise_snapshot

    window_ns = args.window or _LIVE_WINDOW_NS
    source: Source = open_live(args.source, args)
    ingest = Ingest(source, window_ns=window_ns, memory_bytes=rows_bytes(args.memory), exact=True)
    try:
        ingest.set_filter(args.filter)
        ingest.start()
        until = time.monotonic() + window_ns / 1e9
        while (left := until - time.monotonic()) > 0 and source.health().state not in ("ended", "failed", "lost"):
            time.sleep(min(left, 0.1))
        seen = ingest.snapshot
        newest = ingest.wait_for((seen.version if seen else 0) + 1, timeout_s=2.0) or ingest.snapshot
    finally:
        ingest.stop()
        source.close()
    if newest is None:
        raise RuntimeError(ingest.failed or "the ingest thread made no snapshot")
    return summarise_snapshot(newest)
