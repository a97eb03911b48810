"""What a model of a capture adds to its report: causes of the tail, and changes tried on the requests that came."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

from fusetui.commands.inputs import capture_path

if TYPE_CHECKING:
    import polars as pl

    from fusetui.analysis.expression.rows import Rows
    from fusetui.analysis.planned import Captured
    from fusetui.analysis.twin import Twin
    from fusetui.telemetry.header import Header
    from fusetui.telemetry.source import Trace


class Read(NamedTuple):
    """One capture, read once; rows and first_ns are of all of it, whatever the window; frame: of the kept rows."""

    header: Header
    rows: int
    first_ns: int
    kept: Rows
    frame: pl.DataFrame | None
    twin: Twin | str


def skips(args: argparse.Namespace, what: str) -> bool:
    """Whether "causes" or "retune" is not asked for."""
    return bool(args.quick or getattr(args, f"no_{what}"))


def twin_of_rows(trace: Trace, frame: pl.DataFrame | None, args: argparse.Namespace) -> Twin | str:
    """Of the same batches as `fusetui snapshot --causes` makes it, so that the figures are the same."""
    from fusetui.analysis.filter import parse_filter
    from fusetui.analysis.twin import MAX_ROWS, twin_of
    from fusetui.telemetry.errors import TelemetryError

    if frame is None:
        return "not asked for: --quick"
    index = trace.index()
    if not len(index.rows):
        return "no rows in this trace"
    begin = int(index.first_ns.min()) if args.window is None else int(index.last_ns.max()) - args.window + 1
    wanted = [number for number, last in enumerate(index.last_ns.tolist()) if last >= begin]
    if int(index.rows[wanted].sum()) > MAX_ROWS:
        return f"more rows than the {MAX_ROWS:,} a model is made of: choose a shorter --window"
    if args.window is None:
        return twin_of(frame, trace.header)
    only = parse_filter(args.filter or "")
    try:
        return twin_of((trace.read(i) if only is None else only.apply(trace.read(i)) for i in wanted), trace.header)
    except TelemetryError as error:
        return str(error)


def causes_of_twin(twin: Twin | str) -> Any:
    """What caused the tail, or why there is no twin to ask."""
    if isinstance(twin, str):
        return twin
    from fusetui.analysis.attribution.causes import causes_of

    return causes_of(twin)


def _captured(args: argparse.Namespace, twin: Twin | str) -> tuple[Captured | None, list[str]]:
    """The operators of a capture without requests, where they can be recovered and its device is described."""
    from fusetui.commands.plan_trace import captured_of
    from fusetui.telemetry.errors import TelemetryError

    if not isinstance(twin, str):
        return None, []
    try:
        captured = captured_of(capture_path(args.trace))
    except TelemetryError as error:
        return None, [f"no offline plan: {error.what}{'; ' + error.remedy if error.remedy else ''}"]
    if captured.hardware is None and args.hardware is None:
        return None, ["no offline plan: the capture names no device that is described; give --hardware"]
    return captured, []


def mapping_of(args: argparse.Namespace, read: Read) -> tuple[dict[str, Any] | None, list[str]]:
    """The closed loop and notes on it; None where there is no twin, no plan and no mapping to tell of."""
    from fusetui.analysis.retune import retune
    from fusetui.analysis.retune.compiles import compiles_of, fewer_compiles
    from fusetui.analysis.retune.offline import offline_of
    from fusetui.analysis.retune.report import report_of
    from fusetui.analysis.retune.silent import silent_fallback
    from fusetui.analysis.summary import summarise_snapshot

    if args.filter:
        return None, []
    scope, twin = read.kept.scope(), read.twin
    captured, notes = _captured(args, twin)
    if isinstance(twin, str) and captured is None and not scope.snapshot.mapping.known:
        return None, notes
    summary = summarise_snapshot(scope.snapshot)
    seen = compiles_of(summary)
    retuned = None if isinstance(twin, str) else retune(twin, stall_ns=seen.each_ns)
    dynamic = fewer_compiles(seen, summary["span_ns"], None)
    offline = offline_of(read.header, None if isinstance(twin, str) else twin, captured, args.hardware)
    # Few captures have any, and without any there is nothing to look for in all of their rows.
    silent = silent_fallback(read.frame) if read.frame is not None and summary["mapping"]["fallback"] else None
    more = [] if dynamic is None else [dynamic]
    command = f"fusetui replay {shlex.quote(args.trace)}"
    return report_of(read.header, summary, twin, retuned, more, offline, silent, (), command), notes
