"""What looks on while `fusetui record` records (an endpoint for Prometheus, alerts); none of it can end a recording."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import pyarrow as pa

from fusetui.telemetry.text import safe_text

_MOST: Final = 0.05
"""Largest share of a core that looking may take: where a look is costly there are fewer."""


class Onlooker(Protocol):
    """Sees every batch, and looks at them now and then. every_s: how often; `look` returns lines to say."""

    every_s: float

    def add(self, batch: pa.RecordBatch) -> None: ...
    def look(self) -> list[str]: ...
    def close(self) -> None: ...


class Onlookers:
    """All of them, each at its own pace; one that fails is left out from then on, and said."""

    def __init__(self, all_: Sequence[Onlooker], say: Callable[[str], None]) -> None:
        self._due_s: dict[Onlooker, float] = dict.fromkeys(all_, 0.0)
        self._say = say

    def add(self, batch: pa.RecordBatch) -> None:
        for one in list(self._due_s):
            self._guarded(one, lambda one=one: one.add(batch))  # type: ignore[misc]

    def tick(self) -> None:
        """Let those look whose time has come."""
        for one, due_s in list(self._due_s.items()):
            if time.monotonic() >= due_s:
                before_s = time.thread_time()
                self._guarded(one, lambda one=one: self._told(one.look()))  # type: ignore[misc]
                spent_s = time.thread_time() - before_s
                if one in self._due_s:
                    self._due_s[one] = time.monotonic() + max(one.every_s, spent_s / _MOST)

    def close(self) -> None:
        for one in self._due_s:
            one.close()

    def _told(self, lines: list[str]) -> None:
        for line in lines:
            self._say(f"fusetui: {line}")

    def _guarded(self, one: Onlooker, act: Callable[[], None]) -> None:
        try:
            act()
        except BaseException as error:  # noqa: BLE001 - native libraries panic with BaseException; recording must go on
            del self._due_s[one]
            self._say(f"fusetui: {type(one).__name__.lower()} ended: {safe_text(repr(error), 300)}")
            one.close()
