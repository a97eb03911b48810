"""How well the compiler's choices fitted what came: by plan and shape, and over time. Measured; nothing is modelled.

Buckets are pairs of `plan` and `shape` (what ran), at most 64: the first 63 that have work in the window, commonest
first, and "(others)". A bucket whose work has left the window makes room for another.

- **hit share** = planned / (planned + adapted + fallback), over executions that carry a mapping.
- **padding factor** = Σ tokens that ran / Σ tokens asked for. An execution says what ran, the request with its id (and
  host) what was asked; or a plan's description in the header says at which sizes it runs, and the execution what came.
  Two shapes must differ in sizes only, and no size may have shrunk (`mapping_padding`). Padded executions may be of any
  mapping. A row of a batch names one request: it is compared only with a request of the same `batch`.
- **recompiles**: marks whose name says compile or recompile, with `value` and a `unit` of time as the stall (else
  end - start, else unknown); where there is no such mark, executions named so, with their service time.
- A **way** is a plan with a mapping. The same work is: the same name, group and shape; or the same plan, group and
  shape, of ways in which the group ran under one name. The shape is the one asked for, where it is known. A way counts
  from 5 runs on, and t = its p50.
- **mapping accuracy** = Σ n·min(t, t of the best way) / Σ n·t over planned ways of work that ran in several ways, so
  weighted by time; 1 is the best. **Absent where only one way was seen.**
- **adaptation gain** = Σ n·t_planned / Σ n·t - 1 - switching / Σ n·t over adapted ways of work that also ran planned;
  n and t are the adapted way's, switching is the stall of recompiles of those shapes. Padding is in t already.
- **fallback cost** = Σ n·(t - t of the best other way) over fallback ways, ns; below 0 where the plan was the slower.
- **drift**: population stability index, see `mapping_drift`.

Ways and padding need the rows: in a window of more rows than are kept they are of the newest, and the notes say so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from fusetui.analysis.arrays import Floats, Ints

MAX_BUCKETS: Final = 64
"""Buckets that are kept apart, the last for all others."""
WAYS: Final = ("planned", "adapted", "fallback", "unmapped")
"""Columns of counts: the mappings, and executions without one."""


@dataclass(frozen=True, slots=True)
class Drift:
    """How far the mix of shapes has moved, see `mapping_drift.drift_of`.

    against    "envelope" of the header's plans, or "first quarter" of the window
    index      population stability index; by_chance: what sampling alone stays under 95 % of the time
    verdict    "stable" (< 0.1, or no more than chance), "moderate" (< 0.25), "major"
    expected, seen  [K] shares of each of `shapes`; of: what was counted
    """

    against: str
    of: str
    index: float
    by_chance: float
    verdict: str
    expected_n: int
    seen_n: int
    shapes: tuple[str, ...]
    expected: Floats
    seen: Floats


@dataclass(frozen=True, slots=True)
class Evidence:
    """Numbers that show a metastable fallback, see `mapping_metastable`; slots count from the window's first.

    of               the name of the executions that it is of
    largest_planned  largest batch that ran as planned or adapted
    before, during   medians over the slots before and in the fallback
    does_not_prove   what these numbers leave open
    """

    from_slot: int
    slots: int
    largest_planned: int
    batch_before: float
    batch_during: float
    fallback_share: float
    depth_before: float
    depth_during: float
    rate_before: float
    rate_during: float
    does_not_prove: tuple[str, ...]
    of: str = ""


@dataclass(frozen=True, slots=True)
class MappingTotals:
    """Over all buckets; None where it cannot be known, with the reason in `MappingDetail.notes`.

    padding      factor, over padding_n executions whose request tells what was asked; padded of them ran larger
    compiles     recompiles in the window; stall_ns None: none of them says how long it took
    accuracy, gain (net of switching_ns), fallback_ns  over *_n executions of work that ran in several ways
    """

    padding: float | None = None
    padding_n: int = 0
    padded: int = 0
    padded_ns: int = 0
    compiles: int = 0
    stall_ns: int | None = None
    accuracy: float | None = None
    accuracy_n: int = 0
    gain: float | None = None
    gain_n: int = 0
    switching_ns: int = 0
    fallback_ns: int | None = None
    fallback_n: int = 0


def _floats(*shape: int) -> Floats:
    return np.zeros(shape)


def _ints(*shape: int) -> Ints:
    return np.zeros(shape, np.int64)


@dataclass(frozen=True, slots=True)
class MappingDetail:
    """Empty (B = S = 0) when no row tells of plan, shape, mapping or recompile.

    Buckets [B], most time first and "(others)" last, and slots [S]; W = len(WAYS) columns.
    See the module.

    plans, shapes     [B] words, "" where null
    counts, time_ns   [B, W] executions that ended in the window, and their service time
    hit_share         [B] NaN where no execution carries a mapping
    padding           [B] factor, NaN unknown; padding_n, padded [B] executions; padded_ns [B]
    compiles          [B]; stall_ns [B]
    accuracy, gain, fallback_ns  [B] float64, NaN where only one way was seen; gain before switching cost
    counts_by_slot, time_by_slot [B, S, W]
    padding_by_slot   [S] NaN unknown; compiles_by_slot, stall_by_slot [S]
    batch_by_slot     [S] mean `batch` of executions, NaN unknown
    largest_planned   largest `batch` of planned and adapted executions, None unknown
    """

    plans: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    counts: Ints = field(default_factory=lambda: _ints(0, len(WAYS)))
    time_ns: Floats = field(default_factory=lambda: _floats(0, len(WAYS)))
    hit_share: Floats = field(default_factory=lambda: _floats(0))
    padding: Floats = field(default_factory=lambda: _floats(0))
    padding_n: Ints = field(default_factory=lambda: _ints(0))
    padded: Ints = field(default_factory=lambda: _ints(0))
    padded_ns: Ints = field(default_factory=lambda: _ints(0))
    compiles: Ints = field(default_factory=lambda: _ints(0))
    stall_ns: Floats = field(default_factory=lambda: _floats(0))
    accuracy: Floats = field(default_factory=lambda: _floats(0))
    gain: Floats = field(default_factory=lambda: _floats(0))
    fallback_ns: Floats = field(default_factory=lambda: _floats(0))
    counts_by_slot: Ints = field(default_factory=lambda: _ints(0, 0, len(WAYS)))
    time_by_slot: Floats = field(default_factory=lambda: _floats(0, 0, len(WAYS)))
    padding_by_slot: Floats = field(default_factory=lambda: _floats(0))
    compiles_by_slot: Ints = field(default_factory=lambda: _ints(0))
    stall_by_slot: Floats = field(default_factory=lambda: _floats(0))
    batch_by_slot: Floats = field(default_factory=lambda: _floats(0))
    largest_planned: int | None = None
    totals: MappingTotals = MappingTotals()
    drift: Drift | None = None
    metastable: Evidence | None = None
    notes: tuple[str, ...] = ()
