"""The twin of a trace: a load and a runtime for the simulation, built from telemetry, to ask it what would have been.

`twin_of(rows, header)` builds one. Its arrivals are those that came, never drawn anew, and it says how well it
reproduces the latencies of the trace (`Fit`): what it says of causes is worth no more than that.
"""

from fusetui.analysis.twin.make import MAX_ROWS, twin_of
from fusetui.analysis.twin.model import Fit, Twin

__all__ = ["MAX_ROWS", "Fit", "Twin", "twin_of"]
