"""Rows of an XProf profile, however they were stored, before it is known which of them are work.

A profile has planes (the host, each device), a plane has lines (threads, streams), a line has events.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from fusetui.importers.rows import Rows, Words

ROW: Final = np.dtype(
    [
        ("start", "i8"),
        ("end", "i8"),
        ("correlation", "i8"),  # of a launch call and the work it enqueued; 0: none
        ("step", "i8"),  # number of a step annotation; -1: none
        ("name", "i4"),
        ("stream", "i4"),  # code of the line
        ("plan", "i4"),  # code of the compiled module; -1: none
        ("device", "i4"),  # as the event itself has it; -1: not at all
        ("op", "?"),  # an operation of a compiled module
    ]
)
HOST: Final = "/host:"
DEVICE: Final = "/device:"


@dataclass(frozen=True, slots=True)
class Line:
    """Where events are: the name of the plane, and that of the line in it."""

    plane: str
    name: str


@dataclass(slots=True)
class Profile:
    """All that was read.

    rows      of ROW, times in ns on the profile's clock
    lines     by code
    left_out  events without usable times
    memory_bytes  what all of it may take
    """

    memory_bytes: int
    rows: Rows
    names: Words
    plans: Words
    lines: list[Line] = field(default_factory=list)
    left_out: int = 0

    @classmethod
    def within(cls, memory_bytes: int) -> Profile:
        """An empty one that keeps to about half of `memory_bytes`."""
        eighth = memory_bytes // 8
        return cls(memory_bytes, Rows(ROW, 2 * eighth), Words(eighth), Words(eighth))


def plan_name(module: Any, program: Any) -> str:
    """One compiled program: the same module compiled again has another number."""
    return f"{module} #{program}" if program is not None else str(module)
