"""What --quality and the captures themselves tell of quality before and after."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusetui.analysis.expression.rows import Scope
    from fusetui.triage.quality import Reading


def readable(path: str | None) -> None:
    """Told before seconds are spent on the captures. Raises TelemetryError."""
    from fusetui.telemetry.errors import TelemetryError

    if path:
        try:
            open(path, "rb").close()
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise TelemetryError(path, f"cannot be read ({why})") from None


def quality_of(args: argparse.Namespace, before: Scope, after: Scope) -> tuple[tuple[Reading, ...], tuple[str, ...]]:
    """(readings judged, what to know of the reading of them); a file says more of a name than a counter. Raises
    TelemetryError."""
    from fusetui.triage.quality import LIMIT, readings_of, series_of
    from fusetui.triage.quality_file import series_from

    series = series_of(before, after)
    notes: tuple[str, ...] = ()
    if args.quality:
        told, notes = series_from(args.quality, before, after)
        series |= told
    limit = LIMIT if args.max_quality_drop is None else float(args.max_quality_drop.removesuffix("%")) / (
        100.0 if args.max_quality_drop.endswith("%") else 1.0
    )  # fmt: skip
    return readings_of(series, limit), notes
