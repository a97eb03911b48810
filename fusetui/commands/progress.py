"""Long reads tell how far they are, on a terminal's standard error only."""

from __future__ import annotations

import sys
import time

from fusetui.telemetry.source import Trace


def finish_reading(trace: Trace) -> None:
    """Block until an import that runs beside us is complete. Raises what stopped it before any row came."""
    wait = getattr(trace, "wait", None)
    if wait is None:
        return
    shows = sys.stderr.isatty()
    begun = time.monotonic()
    while not trace.complete:
        wait(0.2)
        trace.refresh()
        if shows and time.monotonic() - begun > 0.5:
            print(f"\rreading … {int(trace.index().rows.sum()):,} events", end="", file=sys.stderr, flush=True)
    wait(0.0)
    trace.refresh()
    if shows and time.monotonic() - begun > 0.5:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
