"""`fusetui retune`: what was planned, what ran, and which bounded changes would have helped. Needs no application."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fusetui.commands.inputs import capture_path, open_trace, say
from fusetui.commands.progress import finish_reading

if TYPE_CHECKING:
    import pyarrow as pa

    from fusetui.analysis.planned import Captured
    from fusetui.analysis.retune.compiles import Compiles
    from fusetui.telemetry.source import Trace

EXIT_NOT_ENOUGH: Final = 4


def run(args: argparse.Namespace) -> int:
    """Print the closed-loop report; 4 when nothing in the capture can be judged."""
    report = _report(args)
    if args.json:
        print(json.dumps(report, indent=2, allow_nan=False, ensure_ascii=False))
    else:
        from fusetui.commands.retune_text import as_markdown, as_text

        print((as_markdown if args.markdown else as_text)(report))
    if not report["model"]["twin"] and not report["actions"] and not report["unverified"]:
        say(f"fusetui: {args.trace}: {report['model']['why_not']}")
        return EXIT_NOT_ENOUGH
    return 0


def _report(args: argparse.Namespace) -> dict[str, Any]:
    from fusetui.analysis.retune import retune
    from fusetui.analysis.retune.compiles import compiles_of, fewer_compiles
    from fusetui.analysis.retune.offline import offline_of
    from fusetui.analysis.retune.report import report_of
    from fusetui.analysis.retune.silent import silent_fallback
    from fusetui.analysis.summary import summarise_trace
    from fusetui.analysis.twin import Twin, twin_of
    from fusetui.analysis.twin.requests import frame_of

    trace = open_trace([args.trace], args)
    try:
        finish_reading(trace)
        summary = summarise_trace(trace, window_ns=args.window)
        batches, notes = _newest(trace, int(summary["now_ns"]) - int(summary["window_ns"]))
        header = trace.header
    finally:
        trace.close()
    frame = frame_of(batches)
    twin = twin_of(frame, header)
    seen = compiles_of(summary)
    retuned = retune(twin, stall_ns=seen.each_ns, most=args.max) if isinstance(twin, Twin) else None
    dynamic = fewer_compiles(seen, summary["span_ns"], _measured(args))
    captured = None if isinstance(twin, Twin) else _captured(args, notes)
    offline = offline_of(header, twin if isinstance(twin, Twin) else None, captured, args.hardware)
    more = [] if dynamic is None else [dynamic]
    notes += [note for note in summary["notes"] if note not in notes]
    command = f"fusetui replay {shlex.quote(args.trace)}"
    return report_of(header, summary, twin, retuned, more, offline, silent_fallback(frame), notes, command)


def _newest(trace: Trace, from_ns: int) -> tuple[list[pa.RecordBatch], list[str]]:
    """The batches since from_ns, as many of the newest as a twin is made of; and a note where some are left out."""
    from fusetui.analysis.twin import MAX_ROWS

    index = trace.index()
    wanted = [n for n in range(len(index.rows)) if int(index.last_ns[n]) >= from_ns]
    kept: list[int] = []
    rows = 0
    for number in reversed(wanted):
        rows += int(index.rows[number])
        if rows > MAX_ROWS:
            break
        kept.append(number)
    notes = []
    if len(kept) < len(wanted):
        notes.append(f"the model looks at the newest rows only, at most {MAX_ROWS:,}; --window chooses others")
    return [trace.read(number) for number in reversed(kept)], notes


def _measured(args: argparse.Namespace) -> Compiles | None:
    """Compiles of the capture that was made after the change."""
    from fusetui.analysis.retune.compiles import compiles_of
    from fusetui.analysis.summary import summarise_trace

    if not args.measured:
        return None
    trace = open_trace([args.measured], args)
    try:
        finish_reading(trace)
        return compiles_of(summarise_trace(trace))
    finally:
        trace.close()


def _captured(args: argparse.Namespace, notes: list[str]) -> Captured | None:
    """The operators of a capture without requests, where they can be recovered."""
    from fusetui.commands.plan_trace import captured_of
    from fusetui.telemetry.errors import TelemetryError

    path: Path = capture_path(args.trace)
    try:
        captured = captured_of(path)
    except TelemetryError as error:
        notes.append(f"no offline plan: {error.what}{'; ' + error.remedy if error.remedy else ''}")
        return None
    if args.hardware is None and captured.hardware is None:
        notes.append("no offline plan: the capture names no device that is described; give --hardware")
    return captured
