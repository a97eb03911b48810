"""`fusetui export`: a capture as arrows (the contract), parquet, csv, json lines or for trace viewers, by batch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pyarrow as pa

from fusetui.commands.inputs import capture_path, open_trace, say
from fusetui.commands.output import in_the_way, write_whole
from fusetui.commands.progress import finish_reading
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.export import WRITERS
from fusetui.telemetry.source import Trace

_TO_STDOUT = ("csv", "json")
_ENDINGS = {"perfetto": "pftrace", "chrome": "json"}


def run(args: argparse.Namespace) -> int:
    """Write every readable row once; unreadable batches are named on standard error."""
    target = None if args.output in (None, "-") else Path(args.output)
    form = args.format or (_form_of(target) if target else "csv")
    if form not in WRITERS:
        say(f"fusetui: {form!r} is not a format; use --format {', '.join(WRITERS)}")
        return 2
    if target is None and form not in _TO_STDOUT:
        say(f"fusetui: {form} needs a file: -o FILE.{_ENDINGS.get(form, form)}")
        return 2
    if target and (problem := in_the_way(target, [capture_path(spec) for spec in args.trace], force=args.force)):
        say(f"fusetui: {problem}")
        return 2
    trace = open_trace(args.trace, args)
    lost: list[str] = []
    try:
        finish_reading(trace)

        def write(sink: IO[bytes]) -> int:
            return WRITERS[form](sink, trace.header, _batches(trace, lost))

        rows = write(sys.stdout.buffer) if target is None else write_whole(target, write)
        open_rows = 0 if lost else int(trace.index().rows.sum()) - rows
    finally:
        trace.close()
    for line in lost:
        say(f"fusetui: {line}")
    if target is not None:
        still_open = f"; left out, open or without a value: {open_rows:,}" if open_rows else ""
        say(f"wrote {rows:,} events to {target}{still_open}")
    return 3 if lost else 0


def _form_of(target: Path) -> str:
    """The format that a file's ending means."""
    ending = Path(target.stem).suffix if target.suffix == ".gz" else target.suffix
    word = ending.lstrip(".")
    return "perfetto" if word in ("pftrace", "perfetto-trace") else word


def _batches(trace: Trace, lost: list[str]) -> Iterator[pa.RecordBatch]:
    for number in range(len(trace.index().rows)):
        try:
            yield trace.read(number)
        except TelemetryError as error:
            lost.append(str(error))
