"""What is asked of the accelerator: arrivals with their shapes, from a random process or from a real request log.

A real log may be played faster or slower; its arrivals are never resampled apart from their shapes, because rate and
shape move together and drawing them independently changes the tail by an order of magnitude.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.runtime.types import Floats, Ints

_LIMIT_NS: Final = 1 << 53  # 104 days: float64 still tells one ns from the next


@dataclass(frozen=True, slots=True)
class Stream:
    """A queue that work is put in. A lower `priority` is served first."""

    name: str
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Load:
    """Requests in arrival order; every array has shape (n,).

    arrival_ns  since the start of the load, never falling
    tokens      rows each brings: the size looked up in the plan
    output      tokens each generates, 0 of none
    stream      index in `streams`
    work        how much longer it takes than its shape says (data dependent work), 1 as planned
    """

    arrival_ns: Ints
    tokens: Ints
    output: Ints
    stream: Ints
    work: Floats
    streams: tuple[Stream, ...]

    def __post_init__(self) -> None:
        n = len(self.arrival_ns)
        for name in ("tokens", "output", "stream", "work"):
            if len(getattr(self, name)) != n:
                raise AcceleratorError("load", f"{len(getattr(self, name))} of {name} for {n} arrivals", "one of each")
        if n == 0:
            return
        if self.arrival_ns[0] < 0 or self.arrival_ns[-1] > _LIMIT_NS or np.any(np.diff(self.arrival_ns) < 0):
            raise AcceleratorError("load", "arrivals are not in order from 0 to 104 days", "sort them")
        if self.tokens.min() < 0 or self.output.min() < 0 or not (np.isfinite(self.work) & (self.work >= 0)).all():
            raise AcceleratorError("load", "a size, output or work is negative or not a number", "use 0 or more")
        if self.stream.min() < 0 or self.stream.max() >= len(self.streams):
            raise AcceleratorError("load", f"a stream is not one of the {len(self.streams)} named", "name it")

    def __len__(self) -> int:
        return len(self.arrival_ns)

    @classmethod
    def of(
        cls,
        arrival_ns: ArrayLike,
        tokens: ArrayLike = 1,
        output: ArrayLike = 0,
        *,
        stream: ArrayLike = 0,
        work: ArrayLike = 1.0,
        streams: Sequence[Stream] = (Stream("requests"),),
    ) -> Self:
        """From plain arrays, or one value for all requests."""
        arrival = np.asarray(arrival_ns, dtype=np.int64)

        def column(value: ArrayLike, dtype: type) -> np.ndarray[Any, Any]:
            given: np.ndarray[Any, Any] = np.asarray(value, dtype=dtype)
            return np.full(len(arrival), given) if given.ndim == 0 else given

        return cls(
            arrival, column(tokens, np.int64), column(output, np.int64), column(stream, np.int64),
            column(work, np.float64), tuple(streams),
        )  # fmt: skip

    def scaled(self, speed: float) -> Load:
        """The same requests `speed` times faster."""
        if not speed > 0:
            raise AcceleratorError("load", f"speed {speed}", "use a number above 0")
        return replace(self, arrival_ns=np.rint(self.arrival_ns / speed).astype(np.int64))

    def merged(self, other: Load) -> Load:
        """Both loads at once; streams of the same name and priority are one."""
        streams = self.streams + tuple(s for s in other.streams if s not in self.streams)
        renamed = np.array([streams.index(s) for s in other.streams], np.int64)[other.stream]
        arrival = np.concatenate([self.arrival_ns, other.arrival_ns])
        order = np.argsort(arrival, kind="stable")
        both = [
            np.concatenate([getattr(self, name), getattr(other, name)])[order] for name in ("tokens", "output", "work")
        ]
        stream = np.concatenate([self.stream, renamed])[order]
        return Load(arrival[order], both[0], both[1], stream, both[2], streams)
