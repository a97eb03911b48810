"""Which tasks ran and waited since the last look, within a fixed budget of time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from fusetui.sources.host_handles import Handles
from fusetui.sources.host_linux import SchedStat, parse_schedstat, parse_task_stat, parse_task_total, read_bytes

BUDGET_NS: Final = 12_000_000
"""CPU time of the longest scan. At one scan a second this is 1.2 % of a core, whatever the number of tasks."""

_FIRST_SHARE: Final = 40
"""How much longer the first scan may take: after it, quiet tasks cost a fifth."""

_HOT_SCANS: Final = 8
_FORGET_SCANS: Final = 64
_ZERO: Final = SchedStat(0, 0, 0)


class TaskDelta(NamedTuple):
    """What one task did between two scans. name: thread; process: its queue; cpu: the last one it ran on."""

    name: str
    process: str
    cpu: int
    run_ns: int
    wait_ns: int
    slices: int


@dataclass(slots=True)
class _Task:
    pid: int
    raw: bytes
    counters: SchedStat
    start_ticks: int
    name: str
    process: str
    seen: int
    ran: int


class TaskScanner:
    """Walks /proc/<pid>/task. Tasks that ran lately are read first, the others in turn until the budget is spent.

    A task's difference counts only between two consecutive scans that both read it, or from its birth when it was
    born since the last scan; anything else sets a new baseline, so no run time is shown in the wrong interval.

    root       where proc is mounted
    complete   the last scan had time for every task
    read       tasks the last scan read; total: tasks the kernel schedules (None: not known)
    supported  False when this kernel keeps no schedstat
    """

    def __init__(
        self, root: str = "/proc", *, budget_ns: int = BUDGET_NS, clock_ns: Callable[[], int] = time.thread_time_ns
    ) -> None:
        self._root = root
        self._budget_ns = budget_ns
        self._clock_ns = clock_ns
        self._tasks: dict[int, _Task] = {}
        self._handles = Handles()
        self._lock = threading.Lock()
        self._closed = False
        self._scan = 0
        self._resume_pid = 0
        self.complete = True
        self.read = 0
        self.total: int | None = None
        self.supported = read_bytes(f"{root}/self/schedstat") is not None

    def scan(self, since_ticks: int) -> list[TaskDelta]:
        """Tasks that ran since the last scan, which was `since_ticks` clock ticks after boot. The first finds none."""
        with self._lock:
            return self._walk(since_ticks) if self.supported and not self._closed else []

    def close(self) -> None:
        """Let go of the kernel's files; a scan after this finds nothing."""
        with self._lock:
            self._closed = True
            self._handles.close()

    def _walk(self, since_ticks: int) -> list[TaskDelta]:
        self._scan += 1
        budget_ns = self._budget_ns * (_FIRST_SHARE if self._scan == 1 else 1)
        deadline_ns = self._clock_ns() + budget_ns
        deltas: list[TaskDelta] = []
        read = 0
        self.complete = True
        for pid, tid in self._in_order():
            if self._clock_ns() >= deadline_ns:
                self.complete, self._resume_pid = False, pid
                break
            read += 1
            delta = self._read(pid, tid, since_ticks)
            if delta is not None:
                deltas.append(delta)
        self._finish(read)
        return deltas

    def _in_order(self) -> Iterator[tuple[int, int]]:
        hot = [(t.pid, tid) for tid, t in self._tasks.items() if t.ran and self._scan - t.ran <= _HOT_SCANS]
        yield from hot
        done = {tid for _, tid in hot}
        pids = sorted(int(name) for name in _listdir(self._root) if name.isdigit())
        later = [pid for pid in pids if pid >= self._resume_pid]
        for pid in later + [pid for pid in pids if pid < self._resume_pid]:
            for name in _listdir(f"{self._root}/{pid}/task"):
                if name.isdigit() and int(name) not in done:
                    yield pid, int(name)

    def _read(self, pid: int, tid: int, since_ticks: int) -> TaskDelta | None:
        place = f"{self._root}/{pid}/task/{tid}"
        raw = self._handles.read(tid, f"{place}/schedstat")
        old = self._tasks.get(tid)
        if old is not None and old.raw == raw:
            old.seen = self._scan
            return None
        counters = parse_schedstat(raw)
        stat = parse_task_stat(read_bytes(f"{place}/stat") or b"") if counters is not None else None
        if counters is None or stat is None:
            self._tasks.pop(tid, None)
            return None
        same = old is not None and old.start_ticks == stat.start_ticks
        if old is not None and same:
            base = old.counters if old.seen == self._scan - 1 else counters
        else:
            base = _ZERO if self._scan > 1 and stat.start_ticks >= since_ticks else counters
        process = "kernel" if stat.kernel else stat.name if tid == pid else self._process_name(pid)
        run, wait, slices = (now - before for now, before in zip(counters, base, strict=True))
        ran = self._scan if run > 0 or old is not None else 0
        self._tasks[tid] = _Task(pid, raw, counters, stat.start_ticks, stat.name, process, self._scan, ran)
        if run <= 0 or wait < 0 or slices < 0:
            return None
        return TaskDelta(stat.name, process, stat.cpu, run, wait, slices)

    def _process_name(self, pid: int) -> str:
        leader = self._tasks.get(pid)
        if leader is not None:
            return leader.name
        stat = parse_task_stat(read_bytes(f"{self._root}/{pid}/stat") or b"")
        return stat.name if stat is not None else f"pid {pid}"

    def _finish(self, read: int) -> None:
        self.read = read
        self.total = parse_task_total(read_bytes(f"{self._root}/loadavg") or b"")
        oldest = self._scan if self.complete else self._scan - _FORGET_SCANS
        self._tasks = {tid: task for tid, task in self._tasks.items() if task.seen >= oldest}
        self._handles.keep_only(self._tasks)


def _listdir(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []
