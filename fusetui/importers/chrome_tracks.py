"""The tracks of a Chrome trace: a thread of a process, which may stand for a queue of a device."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.telemetry.text import safe_text
from fusetui.telemetry.tracknames import is_work

_DEVICE = re.compile(r"(?<![A-Za-z])(?:GPU|TPU|NPU|HPU|XPU|[Dd]evice)[ :#_]*(\d{1,6})(?!\d)")
_MOST_TRACKS: Final = 1 << 16
_MOST_CHARS: Final = 200


class Tracks(dict[Any, int]):
    """Codes of (pid, tid) pairs, in order of first appearance, and the names that metadata events give them.

    Beyond 65,536 tracks all further ones share one code, and `full` is set.
    """

    def __init__(self) -> None:
        super().__init__()
        self.full = False
        self._processes: dict[Any, str] = {}
        self._threads: dict[Any, str] = {}

    def __missing__(self, key: Any) -> int:
        if len(self) >= _MOST_TRACKS:
            self.full = True
            return _MOST_TRACKS
        self[key] = code = len(self)
        return code

    def codes(self, events: list[Any]) -> npt.NDArray[np.int32]:
        """The track of each event, shape (len(events),)."""
        keys = [(event.pid, event.tid) for event in events]
        try:
            return np.fromiter(map(self.__getitem__, keys), np.int32, len(keys))
        except TypeError:  # a list or an object where a number should be
            return np.fromiter((self[(_plain(p), _plain(t))] for p, t in keys), np.int32, len(keys))

    def name(self, event: Any) -> None:
        """Take in a metadata event."""
        self.rename(event.name, event.pid, event.tid, event.args.get("name") if isinstance(event.args, dict) else None)

    def rename(self, what: str, pid: Any, tid: Any, given: Any) -> None:
        """Take in the name of a process or a thread, as `what` says; anything else is ignored."""
        if not isinstance(given, (str, int)) or given == "":
            return
        if what == "process_name" and len(self._processes) < _MOST_TRACKS:
            self._processes[_plain(pid)] = safe_text(str(given), _MOST_CHARS)
        elif what == "thread_name" and len(self._threads) < _MOST_TRACKS:
            self._threads[(_plain(pid), _plain(tid))] = safe_text(str(given), _MOST_CHARS)

    def process_name(self, pid: Any) -> str:
        """What metadata called a process so far, "" for nothing."""
        return self._processes.get(pid, "")

    def labels(self) -> list[str]:
        """Name of each track, in code order; with its process where there are several."""
        several = len({pid for pid, _ in self}) > 1
        found = []
        for pid, tid in self:
            process = self._processes.get(pid, _text(pid))
            thread = self._threads.get((pid, tid), _text(tid))
            found.append(safe_text(f"{process} / {thread}" if several and process else thread or process, _MOST_CHARS))
        return [*found, "…"] if self.full else found

    def processes(self) -> list[str]:
        """Name of the process of each track, "" where it has none."""
        found = [self._processes.get(pid, "") for pid, _ in self]
        return [*found, ""] if self.full else found

    def threads(self) -> list[str]:
        """Name of the thread of each track, its number where it has none."""
        found = [self._threads.get(key, safe_text(_text(key[1]), _MOST_CHARS)) for key in self]
        return [*found, "…"] if self.full else found

    def devices(self) -> npt.NDArray[np.int64]:
        """Device number of each track as its process's or thread's name has it, -1 for none. Shape (tracks,)."""
        found = []
        for pid, tid in self:
            names = f"{self._processes.get(pid, '')} / {self._threads.get((pid, tid), '')}"
            match = _DEVICE.search(names)
            found.append(int(match[1]) if match else -1)
        return np.array([*found, -1] if self.full else found, np.int64)

    def work(self) -> npt.NDArray[np.bool_]:
        """Tracks of a process that an export gave executions of no known device. Shape (tracks,)."""
        return np.array([is_work(process) for process in self.processes()], np.bool_)


def _plain(value: Any) -> str | int | float | None:
    return value if isinstance(value, (str, int, float)) or value is None else ""


def _text(value: Any) -> str:
    return "" if value is None else str(value)
