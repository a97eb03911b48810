"""A twin out of the rows of a window."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.runtime.config import Config
from fusetui.accelerator.runtime.load import Load
from fusetui.accelerator.runtime.simulate import simulate
from fusetui.analysis.twin.exact import exact_of, scenario_of
from fusetui.analysis.twin.fitted import fitted_of
from fusetui.analysis.twin.model import Twin, fit_of
from fusetui.analysis.twin.requests import Requests, frame_of, requests_of
from fusetui.telemetry.header import Header

if TYPE_CHECKING:
    import polars as pl

MAX_ROWS: Final = 1_000_000
"""Rows from which a window is refused: choose a shorter one."""
MIN_REQUESTS: Final = 20
_NONE: Final = (
    "no requests that came and ended in these rows: record rows of kind request with enqueue_ns, start_ns and end_ns"
)


def twin_of(rows: pl.DataFrame | Iterable[pa.RecordBatch], header: Header) -> Twin | str:
    """The twin of the requests in contract rows; or why there is none and what to do, in one line.

    rows  those of a window, of any kind; work that is still open is part of the load but not of the fit
    Same rows, same twin.
    """
    frame = frame_of(rows)
    if len(frame) > MAX_ROWS:
        return f"{len(frame):,} rows are more than the {MAX_ROWS:,} a twin is made of: choose a shorter window"
    came = requests_of(frame)
    possible = ~came.ended | (came.end >= came.enqueue)
    came = came.take(possible)
    ended = int(came.ended.sum())
    if not len(came):
        return _NONE
    if ended < MIN_REQUESTS:
        return f"{ended} requests ended in the window, {MIN_REQUESTS} are needed: choose a longer window"
    if int(came.enqueue[-1]) - int(came.enqueue[0]) > 1 << 53:
        return "arrivals are over 104 days apart: check the clock of the trace"
    try:
        twin = _twin(frame, came, header)
    except AcceleratorError as error:
        return str(error)
    if isinstance(twin, Twin) and not possible.all():
        wrong = int((~possible).sum())
        return replace(twin, notes=(*twin.notes, f"{wrong:,} requests that end before they came are left out"))
    return twin


def _twin(frame: pl.DataFrame, came: Requests, header: Header) -> Twin | str:
    scenario = scenario_of(header)
    exact = None if scenario is None else exact_of(scenario, came)
    if exact is not None:
        twin = _run(came, exact.load, exact.config, exact.notes)
        return replace(twin, exact=True, scenario=scenario, hardware=exact.scenario.hardware)
    fitted = fitted_of(frame, came, header.plans)
    if isinstance(fitted, str):
        return fitted
    return _run(came, fitted.load, fitted.config, fitted.notes)


def _run(came: Requests, load: Load, config: Config, notes: tuple[str, ...]) -> Twin:
    outcome = simulate(load, config)
    measured = np.where(came.ended, came.end - came.enqueue, -1)
    return Twin(
        load, config, outcome, fit_of(measured, outcome), int(came.enqueue[0]), came.number, measured, came, notes=notes
    )
