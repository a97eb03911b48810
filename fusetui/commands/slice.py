"""`fusetui slice`: the rows of a time range that pass a filter, as a small contract file with a content hash."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from fusetui.analysis.filter import Filter, FilterError, parse_filter
from fusetui.commands.inputs import capture_path, open_trace, say
from fusetui.commands.output import in_the_way, write_whole
from fusetui.commands.progress import finish_reading
from fusetui.telemetry.contenthash import ContentHash
from fusetui.telemetry.eventtime import event_time_ns
from fusetui.telemetry.export import write_arrows
from fusetui.telemetry.filehash import hash_of_captures
from fusetui.telemetry.header import Header
from fusetui.telemetry.source import Trace
from fusetui.telemetry.times import parse_position_ns

EXIT_USAGE = 2
EXIT_NOT_ENOUGH = 4
_OTHERS = (".parquet", ".csv", ".json", ".gz", ".pftrace", ".zip")


def run(args: argparse.Namespace) -> int:
    """Choose the rows twice: once for the hash that the header carries, once for the file."""
    target, captures = Path(args.output), [capture_path(spec) for spec in args.trace]
    if target.suffix.lower() in _OTHERS:
        say(f"fusetui: {target}: a slice is an Arrow stream: name it .arrows, then `fusetui export` makes the others")
        return EXIT_USAGE
    if problem := in_the_way(target, captures, force=args.force):
        say(f"fusetui: {problem}")
        return EXIT_USAGE
    try:
        only = parse_filter(args.filter)
    except FilterError as error:
        say(f"fusetui: --filter\n{error}")
        return EXIT_USAGE
    trace = open_trace(args.trace, args)
    try:
        finish_reading(trace)
        try:
            first_ns, last_ns = _range(trace, args.from_, args.to)
        except ValueError as error:
            say(f"fusetui: {error}")
            return EXIT_USAGE
        content = ContentHash()
        for batch in chosen(trace, first_ns, last_ns, only):
            content.add(batch)
        if not content.rows:
            say(f"fusetui: {args.trace[0]}: no row in the range passes the filter; nothing was written")
            return EXIT_NOT_ENOUGH
        header = _header(trace.header, captures, (first_ns, last_ns), only, content)
        write_whole(target, lambda sink: write_arrows(sink, header, chosen(trace, first_ns, last_ns, only)))
    finally:
        trace.close()
    print(content.digest())
    say(f"wrote {content.rows:,} events to {target}")
    return 0


def _range(trace: Trace, begin: str | None, finish: str | None) -> tuple[int, int]:
    """First and last event time in ns, both included. Raises ValueError for a time that is none."""
    index = trace.index()
    if not len(index.rows):
        return 0, 0
    start_ns, end_ns = int(index.first_ns.min()), int(index.last_ns.max())

    def place(text: str | None, default: str) -> int:
        return parse_position_ns(text or default, start_ns, end_ns, start_ns, trace.header.clock)

    first_ns, last_ns = place(begin, "start"), place(finish, "end")
    if first_ns > last_ns:
        raise ValueError(f"--from {begin} is after --to {finish}")
    return first_ns, last_ns


def chosen(trace: Trace, first_ns: int, last_ns: int, only: Filter | None) -> Iterator[pa.RecordBatch]:
    """The rows whose event time lies in the range and that pass. Raises TelemetryError for an unreadable batch."""
    index = trace.index()
    for number in np.flatnonzero((index.last_ns >= first_ns) & (index.first_ns <= last_ns)).tolist():
        batch = trace.read(number)
        times = event_time_ns(batch)
        inside = (times >= first_ns) & (times <= last_ns)
        if only is not None:
            inside &= only.mask(batch)
        if inside.any():
            yield batch if inside.all() else batch.filter(pa.array(inside))


def _header(
    header: Header, captures: list[Path], between_ns: tuple[int, int], only: Filter | None, content: ContentHash
) -> Header:
    """The capture's header and what the slice is of: names without their folders, so that it is the same anywhere."""
    about = {
        "slice of": ", ".join(path.name for path in captures),
        "slice of sha256": hash_of_captures(captures),
        "slice from ns": str(between_ns[0]),
        "slice to ns": str(between_ns[1]),
        "slice filter": only.text if only else "",
        "slice content": content.digest(),
    }
    return replace(header, build={**header.build, **about})
