"""What `torch.compile` leaves in a capture: compilations, and the regions in which a compiled plan ran.

- `entire_frame_compile` (before: `_compile.compile_inner`) is one compilation of one frame, and the caller stands still
  while it lasts. It becomes a mark at its end whose value is the stall in ns, named `compile`, of plan F/S.
- `Torch-Compiled Region: F/S` is one call of specialisation S of frame F: what a thread launches in it is the plan's,
  library calls in it too. So it is mapped `planned`, with plan `F/S`; the region itself is named by its frame alone, so
  that the calls of one frame under several plans have one name. Work outside of regions has no mapping: whether
  it was ever meant to be compiled is not in the capture, so that nothing here is called a fallback.
- A region has no dimensions of its own; its shape is that of the first operator with tensors that begins in it, where
  host operators were read. A compilation has the plan and shape of the region that its thread enters next.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from fusetui.importers.kineto_join import outermost

REGION: Final = np.dtype(
    [("start", np.int64), ("end", np.int64), ("thread", np.int32), ("name", np.int32), ("frame", np.int32)]
)
COMPILE: Final = np.dtype([("start", np.int64), ("end", np.int64), ("thread", np.int32)])
REGION_NAME: Final = "Torch-Compiled Region: "
UNSKIPPABLE: Final = re.compile(rb"Torch-Compiled Region|entire_frame_compile|compile_inner \(dynamo_timed\)")
"""Text that a window of operators with a compilation or a region holds."""
_COMPILES: Final = frozenset({"entire_frame_compile", "_compile.compile_inner", "_compile.<locals>.compile_inner"})

Ints = npt.NDArray[np.int64]
Table = npt.NDArray[Any]


def is_region(name: str) -> bool:
    """Whether an operator is a call of compiled code."""
    return name.startswith(REGION_NAME)


def frame_of(name: str) -> str:
    """Name of a region without the specialisation."""
    return name.rsplit("/", 1)[0]


def is_compile(name: str) -> bool:
    """Whether an operator is the compilation of a frame."""
    return name.removesuffix(" (dynamo_timed)") in _COMPILES


@dataclass(frozen=True, slots=True)
class Compiled:
    """Regions and compilations that lie in no other of their kind, in the order of (thread, start).

    shape        [regions] code of a region's shape, -1: not known
    compiles     rows of COMPILE
    entered      [compiles] row in `regions` that followed, -1: none
    """

    regions: Table
    shape: Ints
    compiles: Table
    entered: Ints

    def region_of(self, thread: npt.NDArray[np.int32], time: Ints) -> Ints:
        """Row in `regions` that each moment of a thread lies in, -1 for none. Shape (n,)."""
        found = _position(self.regions, thread, time, "right") - 1
        found[~_inside(self.regions, found, thread, time)] = -1
        return found

    def compile_shape(self) -> Ints:
        """[compiles] shape of the call that had to be compiled for, -1: not known."""
        return _picked(self.shape, self.entered)

    def compile_region_name(self) -> Ints:
        """[compiles] name code of the region that followed, -1: none."""
        return _picked(self.regions["name"].astype(np.int64), self.entered)


def compiled(regions: Table, compiles: Table, operators: Iterable[Table], shaped: npt.NDArray[np.bool_]) -> Compiled:
    """Put together what was read.

    operators  host operators with start, end, thread, shape, in portions; none where they were not read
    shaped     [shapes] whether a shape code has tensors in it
    """
    regions, compiles = _ordered(regions[outermost(regions)]), _ordered(compiles[outermost(compiles)])
    shape = _first_shapes(regions, operators, shaped)
    entered = _position(regions, compiles["thread"], compiles["end"], "left")
    if len(regions):
        at = np.minimum(entered, len(regions) - 1)
        entered[(entered == len(regions)) | (regions["thread"][at] != compiles["thread"])] = -1
    else:
        entered[:] = -1
    return Compiled(regions, shape, compiles, entered)


def _first_shapes(regions: Table, operators: Iterable[Table], shaped: npt.NDArray[np.bool_]) -> Ints:
    """Shape of the first operator with tensors after each region began, when that lies in it, else -1."""
    shape = np.full(len(regions), -1, np.int64)
    nearest = np.full(len(regions), np.iinfo(np.int64).max)
    for part in operators if len(regions) else ():
        known = _ordered(part[shaped[part["shape"]]])
        if not len(known):
            continue
        first = _position(known, regions["thread"], regions["start"], "left")
        found = known[np.minimum(first, len(known) - 1)]
        nearer = (first < len(known)) & (found["thread"] == regions["thread"]) & (found["start"] < nearest)
        nearest[nearer] = found["start"][nearer]
        shape[nearer] = np.where(found["end"] <= regions["end"], found["shape"], -1)[nearer]
    return shape


def _ordered(table: Table) -> Table:
    return table[np.lexsort((table["start"], table["thread"]))]


def _position(table: Table, thread: npt.NDArray[np.int32], time: Ints, side: Literal["left", "right"]) -> Ints:
    """Where (thread, time) belongs in a table that is in the order of (thread, start). Shape (n,)."""
    # Ranks instead of times: thread and time together then fit one integer.
    starts = np.sort(table["start"])
    stride = len(table) + 1
    own = table["thread"].astype(np.int64) * stride + np.searchsorted(starts, table["start"], "left")
    wanted = thread.astype(np.int64) * stride + np.searchsorted(starts, time, side)
    if side == "right":
        # Equal starts share the rank of the first of them, so a time just past them must lie above that rank.
        wanted -= 1
    return np.searchsorted(own, wanted, side).astype(np.int64)


def _inside(regions: Table, row: Ints, thread: npt.NDArray[np.int32], time: Ints) -> npt.NDArray[np.bool_]:
    if not len(regions):
        return np.zeros(len(row), np.bool_)
    at = regions[np.maximum(row, 0)]
    inside: npt.NDArray[np.bool_] = (row >= 0) & (at["thread"] == thread) & (time < at["end"])
    return inside


def _picked(values: Ints, rows: Ints) -> Ints:
    if not len(values):
        return np.full(len(rows), -1, np.int64)
    return np.where(rows >= 0, values[np.maximum(rows, 0)], -1)
