"""`fusetui export`: a capture as arrows (the contract), parquet, csv or json lines, batch by batch."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from fusetui.commands.inputs import open_trace, say
from fusetui.commands.progress import finish_reading
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.export import WRITERS
from fusetui.telemetry.source import Trace

_TO_STDOUT = ("csv", "json")


def run(args: argparse.Namespace) -> int:
    """Write every readable row once; unreadable batches are named on standard error."""
    target = None if args.output in (None, "-") else Path(args.output)
    form = args.format or (target.suffix.lstrip(".") if target else "csv")
    if form not in WRITERS:
        say(f"fusetui: {form!r} is not a format; use --format arrows, parquet, csv or json")
        return 2
    if target is None and form not in _TO_STDOUT:
        say(f"fusetui: {form} needs a file: -o FILE.{form}")
        return 2
    if target is not None and target.exists() and not args.force:
        say(f"fusetui: {target} exists; use --force to overwrite it")
        return 2
    trace = open_trace(args.trace, args)
    lost: list[str] = []
    try:
        finish_reading(trace)
        if target is None:
            rows = WRITERS[form](sys.stdout.buffer, trace.header, _batches(trace, lost))
        else:
            rows = _to_file(form, target, trace, lost)
    finally:
        trace.close()
    for line in lost:
        say(f"fusetui: {line}")
    if target is not None:
        say(f"wrote {rows:,} events to {target}")
    return 3 if lost else 0


def _to_file(form: str, target: Path, trace: Trace, lost: list[str]) -> int:
    """Through a temporary file beside the target, so that a failed export leaves nothing half-written."""
    partial = target.with_name(target.name + ".part")
    try:
        with partial.open("wb") as sink:
            rows = WRITERS[form](sink, trace.header, _batches(trace, lost))
        partial.replace(target)
    except OSError as error:
        raise TelemetryError(str(target), f"cannot be written ({error.strerror})") from None
    finally:
        partial.unlink(missing_ok=True)
    return rows


def _batches(trace: Trace, lost: list[str]) -> Iterator[pa.RecordBatch]:
    for number in range(len(trace.index().rows)):
        try:
            yield trace.read(number)
        except TelemetryError as error:
            lost.append(str(error))
