"""How far the shapes that come have moved from those the plan was made for: the population stability index.

PSI = Σ over shapes of (a - e) ln(a / e), e and a the shares expected and seen, each count raised by ½ so that a shape
that is new (or gone) counts and does not make it infinite. By the usual reading below 0.1 is stable, below 0.25
moderate, above a major change. Samples differ by chance too: then PSI is about (1/n_e + 1/n_a) χ² with K - 1 degrees
of freedom for K shapes, and what lies under its 95 % point is called stable whatever the reading.

Expected is the envelope of the header's plans when one is written there, as `envelope: <shape> @ <share>; …` at the
end of a plan's description; then n_e is taken as infinite. Otherwise it is the first quarter of the window, seen the
rest: such a drift is one within the window, and a mix that was wrong all along does not show.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from fusetui.analysis.arrays import Floats, Ints
from fusetui.analysis.mapping import Drift

MODERATE: Final = 0.1
MAJOR: Final = 0.25
MIN_SAMPLES: Final = 100
_ENVELOPE = re.compile(r"envelope:\s*(.*)\Z", re.IGNORECASE | re.DOTALL)
_Z95: Final = 1.6448536269514722


def envelope_of(plans: Mapping[str, str]) -> dict[str, float]:
    """Shape -> share over all plans that tell their envelope, adding up to 1; empty when none does."""
    shares: dict[str, float] = {}
    for text in plans.values():
        found = _ENVELOPE.search(text)
        for part in found.group(1).split(";") if found else ():
            shape, _, share = part.rpartition("@")
            try:
                value = float(share)
            except ValueError:
                continue
            if shape.strip() and math.isfinite(value) and value > 0:
                shares[shape.strip()] = shares.get(shape.strip(), 0.0) + value
    total = sum(shares.values())
    return {shape: share / total for shape, share in shares.items()} if total else {}


def drift_in_window(by_slot: Ints, shapes: Sequence[str], of: str, envelope: Mapping[str, float]) -> Drift | None:
    """Drift of the shapes counted by_slot [K, S] in time order.

    None with fewer than 100 on either side, or fewer than two shapes.
    """
    if envelope:
        every = tuple(dict.fromkeys([*shapes, *envelope]))
        seen = np.zeros(len(every), np.int64)
        seen[: len(shapes)] = by_slot.sum(axis=1)
        expected = np.array([envelope.get(shape, 0.0) for shape in every])
        return drift_of(expected, seen, every, "envelope", of)
    total = np.cumsum(by_slot.sum(axis=0))
    if not len(total) or total[-1] == 0:
        return None
    busy = np.flatnonzero(by_slot.sum(axis=0))
    cut = int(busy[0]) + max(1, (int(busy[-1]) + 1 - int(busy[0])) // 4)
    first, rest = by_slot[:, :cut].sum(axis=1), by_slot[:, cut:].sum(axis=1)
    return drift_of(first, rest, tuple(shapes), "first quarter", of)


def drift_of(expected: Ints | Floats, seen: Ints, shapes: Sequence[str], against: str, of: str) -> Drift | None:
    """PSI of counts seen [K] against counts expected [K], or shares of an envelope (float) [K]."""
    exact = expected.dtype.kind == "f"
    n_seen, n_expected = int(seen.sum()), 0 if exact else int(expected.sum())
    kinds = int(((expected > 0) | (seen > 0)).sum())
    if n_seen < MIN_SAMPLES or (not exact and n_expected < MIN_SAMPLES) or kinds < 2:
        return None
    a = _shares(seen)
    # An envelope has no count of its own: it is weighed as if it were as many as were seen.
    e = _shares(expected * n_seen if exact else expected)
    index = float(((a - e) * np.log(a / e)).sum())
    spread = 1 / n_seen + (0.0 if exact else 1 / n_expected)
    by_chance = spread * _chi2_95(kinds - 1)
    calm = index < MODERATE or index <= by_chance
    verdict = "stable" if calm else "moderate" if index < MAJOR else "major"
    return Drift(against, of, index, by_chance, verdict, n_expected, n_seen, tuple(shapes), e, a)


def _shares(counts: Ints | Floats) -> Floats:
    raised = counts + 0.5
    return np.asarray(raised / raised.sum())


def _chi2_95(degrees: int) -> float:
    """95 % point of χ², by Wilson and Hilferty's cube: within 1 % from two degrees on, 3 % at one."""
    part = 2 / (9 * degrees)
    return float(degrees * (1 - part + _Z95 * math.sqrt(part)) ** 3)
