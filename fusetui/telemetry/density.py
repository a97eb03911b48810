"""Where in a trace the rows are: a fine histogram over its span, refined batch by batch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fusetui.telemetry.source import BatchIndex

FINE_BINS = 2048
ENOUGH_BATCHES = 128
"""With so many batches the index alone tells where the rows are, as finely as a screen shows it."""


class DensityMap:
    """Rows per fine bin of [start_ns, end_ns]. Unread batches count as spread evenly over their own span.

    A span that grows starts the refinement over. `resample` may run on another thread than the rest.
    """

    def __init__(self) -> None:
        self._start_ns = 0
        self._end_ns = 0
        self._bins = np.zeros(FINE_BINS, np.float64)
        self._index: BatchIndex | None = None
        self._unread: list[int] = []

    def extend(self, index: BatchIndex, start_ns: int, end_ns: int) -> None:
        """New batches or a new span: estimate every batch again, refine later."""
        self._index, self._start_ns, self._end_ns = index, start_ns, end_ns
        self._bins = sum((self._spread(number) for number in range(len(index.rows))), np.zeros(FINE_BINS))
        self._unread = list(range(len(index.rows)))[::-1] if len(index.rows) < ENOUGH_BATCHES else []

    def next_unread(self) -> int | None:
        """A batch that is only estimated so far, earliest first."""
        return self._unread[-1] if self._unread else None

    def skip(self, number: int) -> None:
        """Leave `number` at its estimate."""
        self._unread.remove(number)

    def add(self, number: int, times_ns: npt.NDArray[np.int64]) -> None:
        """Replace the estimate of batch `number` by its rows."""
        self._unread.remove(number)
        width_ns = max(1, self._end_ns - self._start_ns)
        place = ((times_ns - self._start_ns).astype(np.float64) * (FINE_BINS / width_ns)).astype(np.int64)
        counts = np.bincount(np.clip(place, 0, FINE_BINS - 1), minlength=FINE_BINS)
        self._bins = self._bins - self._spread(number) + counts

    def resample(self, bins: int) -> npt.NDArray[np.int64]:
        """Rows per equal bin, shape (bins,), summing to the rows of the trace up to rounding."""
        if bins <= 0:
            return np.zeros(0, np.int64)
        edges = np.linspace(0, FINE_BINS, bins + 1)
        total = np.concatenate(([0.0], np.cumsum(np.maximum(self._bins, 0.0))))
        at_edges = np.interp(edges, np.arange(FINE_BINS + 1), total)
        return np.diff(np.rint(at_edges)).astype(np.int64)

    def _spread(self, number: int) -> npt.NDArray[np.float64]:
        assert self._index is not None
        width_ns = max(1, self._end_ns - self._start_ns)
        low = (int(self._index.first_ns[number]) - self._start_ns) * FINE_BINS / width_ns
        high = (int(self._index.last_ns[number]) - self._start_ns) * FINE_BINS / width_ns
        rows = float(self._index.rows[number])
        edges = np.arange(FINE_BINS + 1, dtype=np.float64)
        if high - low < 1.0:
            share = np.zeros(FINE_BINS)
            share[min(FINE_BINS - 1, max(0, int(low)))] = rows
            return share
        covered = np.clip((edges - low) / (high - low), 0.0, 1.0)
        return np.diff(covered) * rows
