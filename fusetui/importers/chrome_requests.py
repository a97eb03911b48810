"""Requests in a trace for viewers, as `fusetui export` writes them: a begin that tells its row, and an end.

Other tools' asynchronous slices may be anything and are no requests.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from fusetui.importers.kineto_batches import ABSENT
from fusetui.importers.rows import Words
from fusetui.importers.sortedrows import SortedRows

REQUEST: Final = np.dtype(
    [
        ("begin", "i8"),
        ("end", "i8"),
        ("wait", "i8"),
        ("request", "i8"),
        ("name", "i4"),
        ("track", "i4"),
        ("shape", "i4"),
    ]
)
ROW_KEY: Final = "capture_row"
_MOST_OPEN: Final = 1 << 20
_BLOCK: Final = 4096
_FARTHEST: Final = 1 << 62


class Requests:
    """Begins and ends paired by key; `rows` has wait and request ABSENT where they are not told.

    first_ns  the earliest begin of those that ended, None for no such request
    """

    def __init__(self, memory_bytes: int) -> None:
        self.rows = SortedRows(REQUEST, ("end",), memory_bytes)
        self.first_ns: int | None = None
        self.shapes = Words(memory_bytes)
        self._open: dict[Any, tuple[int, int, int, int, int, int]] = {}
        self._done: list[tuple[int, ...]] = []

    def begin(self, key: Any, at_ns: int, name: int, track: int, told: dict[str, Any]) -> bool:
        """Whether what is `told` makes it a request."""
        if ROW_KEY not in told or len(self._open) >= _MOST_OPEN:
            return False
        shape = told.get("shape")
        code = self.shapes[shape] if isinstance(shape, str) else -1
        self._open[key] = (at_ns, _whole(told.get("wait_ns")), _whole(told.get("request")), name, track, code)
        return True

    def end(self, key: Any, at_ns: int) -> bool:
        """Whether a request of that key was open."""
        found = self._open.pop(key, None)
        if found is None:
            return False
        begin, wait, request, name, track, shape = found
        if at_ns >= begin:
            self._done.append((begin, at_ns, wait, request, name, track, shape))
        if len(self._done) >= _BLOCK:
            self._flush()
        return True

    def ended(self) -> SortedRows:
        """All of them that ended, by end time."""
        self._flush()
        return self.rows

    def _flush(self) -> None:
        if self._done:
            block = np.array(self._done, REQUEST)
            first = int(block["begin"].min())
            self.first_ns = first if self.first_ns is None else min(first, self.first_ns)
            self.rows.append(block)
            self._done.clear()


def _whole(value: Any) -> int:
    return value if type(value) is int and abs(value) < _FARTHEST else int(ABSENT)
