"""How large work is by its shape key: the sizes of the named dimensions that vary among keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from fusetui.analysis.arrays import Floats

OUTPUT: Final = "output"
_NAMED: Final = re.compile(r"([A-Za-z_]\w*)=(\d{1,15})\Z")
_MOST: Final = 1 << 40


def named_sizes(key: str) -> dict[str, int]:
    """`b=1 t=128 f32` as {"b": 1, "t": 128}; the last of a name that comes twice."""
    return {found[1]: int(found[2]) for word in key.split() if (found := _NAMED.match(word))}


def product(sizes: Iterable[int]) -> int:
    """Of sizes, at most 2^40."""
    total = 1
    for size in sizes:
        total = min(total * size, _MOST)
    return total


def sizes_among(keys: Sequence[str]) -> Floats:
    """(keys,) product of the named dimensions that vary among the keys; NaN where a key lacks one, or none varies.

    Keys that tell of generated tokens (`output`) have no one size that time goes with: NaN.
    """
    parsed = [named_sizes(key) for key in keys]
    seen: dict[str, set[int]] = {}
    for sizes in parsed:
        for name, size in sizes.items():
            seen.setdefault(name, set()).add(size)
    varies = [name for name, sizes in seen.items() if len(sizes) > 1]
    found = np.full(len(keys), np.nan)
    if OUTPUT in seen or not varies:
        return found
    for at, sizes in enumerate(parsed):
        if all(name in sizes for name in varies):
            found[at] = product(sizes[name] for name in varies)
    return found
