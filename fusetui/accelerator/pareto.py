"""The tiles of one matrix product worth choosing between: none of the others beats them in every respect."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusetui.accelerator.constants import Constants
from fusetui.accelerator.grid import Products, build_grid
from fusetui.accelerator.hardware import Hardware
from fusetui.accelerator.matmul import matmul_terms
from fusetui.accelerator.price import Tile


@dataclass(frozen=True, slots=True)
class TileChoice:
    """A tile with the time of its kernel, what it holds on chip and what it moves to and from device memory."""

    tile: Tile
    time_ns: float
    sram_bytes: float
    dram_bytes: float


def tile_choices(
    hw: Hardware, constants: Constants, dtype: str, product: Products, added_ns: float = 0.0
) -> tuple[TileChoice, ...]:
    """The Pareto set over (time, on-chip bytes, device memory bytes) of one product, arrays (1, 1), fastest first.

    `added_ns` is what its kernel takes beside the product. Of tiles that are equal in all three the smallest is kept.
    """
    grid = build_grid(hw, product, dtype)
    total = matmul_terms(hw, constants, grid).total[0]
    at = np.flatnonzero(np.isfinite(total))
    columns = [np.broadcast_to(a, (1, total.size))[0][at] for a in (grid.sram_bytes, grid.dram_bytes, grid.stages)]
    keys = np.stack([total[at], *columns[:2]])
    order = np.lexsort(keys[::-1])
    kept: list[int] = []
    for i in order:
        if not (keys[:, kept] <= keys[:, [i]]).all(axis=0).any():
            kept.append(int(i))
    t = grid.tiles
    return tuple(
        TileChoice(
            Tile(int(t.m[c]), int(t.n[c]), int(t.k[c]), int(t.split[c]), int(columns[2][i])),
            float(keys[0, i]) * 1e9 + added_ns,
            float(keys[1, i]),
            float(keys[2, i]),
        )
        for i in kept
        for c in (at[i],)
    )
