"""The planner makes the plans of the fusion and what-if screens, the latest request first."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.policy import POLICIES
from fusetui.accelerator.presets import load_hardware
from fusetui.accelerator.saved_constants import saved_constants
from fusetui.analysis.planned import Captured, Knobs, Planned, make_planned
from fusetui.app.knobs import Changes, changed
from fusetui.app.worker import Worker
from fusetui.telemetry.text import safe_text

if TYPE_CHECKING:
    import polars as pl

Recover = Callable[[], "Captured | str"]
MAX_LINE: Final = 400
NOT_LOOKED: Final = "the capture has not been looked at"


@dataclass(frozen=True, slots=True)
class Request:
    """What is wanted.

    start    today's knobs; its block stands only when `block_chosen`, else the capture's operators are tried first
    changes  what the what-if screen changes about them
    recover  reads the operators of the capture again, None: those known stay
    """

    start: Knobs
    changes: Changes
    block_chosen: bool = False
    recover: Recover | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Plans of one request.

    number    of the request; start: today's knobs as they came out
    today, predicted  None where the model could make no plan; `problem` says why, in one line
    capture   the operators of the capture, or why there are none
    took_ms   how long it took
    """

    number: int
    start: Knobs
    knobs: Knobs
    today: Planned | None
    predicted: Planned | None
    problem: str
    capture: Captured | str
    took_ms: float


class Planner(Worker[Request, Answer]):
    """Makes plans off the event loop."""

    NAME = "fusetui-planner"

    def __init__(self) -> None:
        super().__init__()
        self._capture: Captured | str = NOT_LOOKED
        self._saved: dict[tuple[str, str], Path | None] = {}
        self._today: tuple[Knobs, Captured | str, Planned | None, str] | None = None

    def merged(self, waiting: Request, request: Request) -> Request:
        """A request that gives way leaves its wish to read the capture."""
        return request if request.recover is not None else replace(request, recover=waiting.recover)

    def answered_by(self, request: Request, number: int) -> Answer:
        return self._plans(request, number)

    def _plans(self, request: Request, number: int) -> Answer:
        began_s = time.perf_counter()
        if request.recover is not None:
            self._capture = request.recover()
            self._saved.clear()
        known = self._capture if isinstance(self._capture, Captured) else None
        start = request.start
        if known is not None and not request.block_chosen:
            start = replace(start, block="", shapes={}, dtype=known.dtype)
        if known is not None and known.hardware is not None:
            start = replace(start, hardware=known.hardware)
        knobs = changed(start, request.changes)
        today, problem = self._today_plan(start, known)
        predicted = today
        if knobs != start:
            predicted, why = self._plan(knobs, known, ())
            problem = problem or why
        took_ms = (time.perf_counter() - began_s) * 1e3
        return Answer(number, start, knobs, today, predicted, problem, self._capture, took_ms)

    def _today_plan(self, start: Knobs, known: Captured | None) -> tuple[Planned | None, str]:
        """Today's plan, kept while a person turns knobs."""
        kept = self._today
        if kept is None or kept[0] != start or kept[1] is not self._capture:
            kept = self._today = (start, self._capture, *self._plan(start, known, tuple(POLICIES)))
        return kept[2], kept[3]

    def _plan(self, knobs: Knobs, known: Captured | None, beside: Sequence[str]) -> tuple[Planned | None, str]:
        try:
            return make_planned(replace(knobs, constants=self._calibration(knobs)), known, policies=beside), ""
        except AcceleratorError as error:
            return None, str(error)
        except (ArithmeticError, AssertionError, LookupError, MemoryError, ValueError) as error:
            return None, safe_text(f"the model failed: {type(error).__name__}: {error}", MAX_LINE)

    def _calibration(self, knobs: Knobs) -> Path | None:
        """The calibration that a person saved for this device and type; looked for once, and when rows are read."""
        key = (knobs.hardware.lower(), knobs.dtype)
        if knobs.constants is None and key not in self._saved:
            saved = saved_constants(load_hardware(knobs.hardware), knobs.dtype)
            self._saved[key] = saved[1] if saved else None
        return knobs.constants or self._saved[key]


def recovery(fetch: Callable[[], pl.DataFrame], build: Callable[[pl.DataFrame], Captured | str]) -> Recover:
    """Reads rows with `fetch` and finds their operators with `build`; what goes wrong becomes the reason."""

    def recover() -> Captured | str:
        import polars as pl  # the first frame must not wait for it

        try:
            return build(fetch())
        except (
            AcceleratorError,
            ValueError,
            OSError,
            pl.exceptions.PolarsError,
            pl.exceptions.PanicException,
        ) as error:
            return safe_text(f"the operators could not be read: {error}", MAX_LINE)

    return recover
