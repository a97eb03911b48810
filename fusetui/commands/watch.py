"""One source, one ingest thread, one application: what every watching command does."""

from __future__ import annotations

import argparse

from fusetui.commands.inputs import capture_path, open_trace, rows_bytes, say
from fusetui.commands.tapes import FolderTape, watched_tape
from fusetui.telemetry.source import Source, Trace


def watch(
    source: Source, args: argparse.Namespace, *, title: str, bookmarks_key: str, trace: Trace | None = None
) -> int:
    """Run the application over `source` until it is left; returns the exit code. trace: what a replay plays."""
    from fusetui.analysis.filter import FilterError
    from fusetui.analysis.ingest import Ingest
    from fusetui.app import terminal
    from fusetui.app.run import NO_TERMINAL, run_app

    refusal = terminal.refusal()
    if refusal is not None:  # nothing is recorded, and nobody's rows are taken, for a screen that cannot be
        say(refusal)
        source.close()
        return NO_TERMINAL

    if args.alerts:
        from fusetui.triage.alert_file import load_alerts

        load_alerts(args.alerts)  # a mistake in it is told before the screen is taken

    baseline = None
    if getattr(args, "baseline", None):
        before = open_trace([args.baseline], args)  # what cannot be opened is told before the screen is taken
        baseline = (capture_path(args.baseline).name, lambda: before)
    tape = None
    if getattr(args, "record", None):
        tape = watched_tape(args.record, source, overwrite=args.force)
    ingest = Ingest(source, window_ns=args.window, memory_bytes=rows_bytes(args.memory), tick_s=1 / args.hz)
    try:
        ingest.set_filter(args.filter)
    except FilterError as error:
        say(f"fusetui: --filter\n{error}")
        source.close()
        return 2
    ingest.tee(tape)
    ingest.start()
    try:
        return run_app(
            ingest,
            tape=tape,
            title=title,
            theme=args.theme,
            glyphs=args.glyphs,
            hz=args.hz,
            mouse=not args.no_mouse,
            slo_ns=args.slo,
            bookmarks_key=bookmarks_key,
            trace=trace,
            alerts=args.alerts,
            baseline=baseline,
        )
    finally:
        ingest.stop()
        source.close()
        if tape is not None:
            tape.close()
            for line in tape.take_lines() if isinstance(tape, FolderTape) else ():
                say(f"fusetui: {line}")
            done = f"recorded {tape.rows:,} events to {args.record}"
            say(f"fusetui: {tape.failed}" if tape.failed else done)
