"""The machine this runs on as a source: its CPUs are the cores, its run queue is the queue.

Once a second the tasks that ran become executions (stream: the process, name: the thread, enqueue to start: the
wait for a CPU), encoded as `fusetui.sources.host_layout` explains. Twice a second there are counters: busy per CPU,
tasks runnable, waiting and blocked, pressure stall, memory, disk and network.

What this does not prove: how slices differ within one second, where in the second they lay, and what tasks still
waiting for their first slice suffered (the kernel adds a wait up when it ends). A machine without schedstat, or other
than Linux, shows busy CPUs without tasks or waits, and `health().missing` says so.
"""

from __future__ import annotations

import platform
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from fusetui.sources.host_common import PSUTIL_TICK_NS, Reading, SystemCounters, psutil_busy_ns
from fusetui.sources.host_layout import OTHER, Laid, lay_out
from fusetui.sources.host_proc import ProcCounters
from fusetui.sources.host_tasks import TaskDelta
from fusetui.sources.spec import OpenOptions, no_parameters
from fusetui.sources.words import coded, coded_texts
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import KINDS, build_batch
from fusetui.telemetry.source import SourceHealth, Transport
from fusetui.telemetry.text import safe_text

NAMES: Final = ("host",)
SYNTAX: Final = "host: this machine's CPUs, run queue, pressure, memory, disk and network"

_COUNTERS_EVERY_NS: Final = 500_000_000
_TASKS_EVERY: Final = 2
_EXECUTION, _COUNTER = KINDS.index("execution"), KINDS.index("counter")


class HostSource:
    """Live telemetry of this machine. Closing it wakes a waiting poll.

    proc     reader of /proc, None where there is none
    wall_ns, monotonic_ns  clocks, replaceable in tests
    """

    def __init__(
        self,
        *,
        proc: ProcCounters | None = None,
        wall_ns: Callable[[], int] = time.time_ns,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.header = _header()
        self.generation = 0
        self.transport: Transport | None = None
        self._proc = proc
        self._system = SystemCounters()
        self._wall_ns = wall_ns
        self._monotonic_ns = monotonic_ns
        self._closed = threading.Event()
        self._rows = self._batches = self._samples = 0
        self._newest_ns: int | None = None
        self._due_ns = monotonic_ns()
        self._busy_ns: dict[int, int] = {}
        self._busy_at_ns = 0
        self._task_busy_ns: dict[int, int] = {}
        self._tasks_at_ns = 0

    def poll(self, timeout_s: float) -> Sequence[pa.RecordBatch]:
        """One batch when a sample is due within `timeout_s`, else none."""
        wait_ns = self._due_ns - self._monotonic_ns()
        self._closed.wait(min(max(wait_ns, 0), int(timeout_s * 1e9)) / 1e9)
        now_ns = self._monotonic_ns()
        if self._closed.is_set() or now_ns < self._due_ns:
            return ()
        # A late sample moves the schedule: missed ones are not made up for.
        self._due_ns = max(self._due_ns + _COUNTERS_EVERY_NS, now_ns + _COUNTERS_EVERY_NS // 2)
        batch = self._sample(now_ns, self._wall_ns())
        if batch.num_rows == 0:
            return ()
        self._rows += batch.num_rows
        self._batches += 1
        return (batch,)

    def now_ns(self) -> int | None:
        return None if self._newest_ns is None else self._wall_ns()

    def health(self) -> SourceHealth:
        newest_ns = self._newest_ns
        return SourceHealth(
            name="host",
            state="ended" if self._closed.is_set() else "waiting" if newest_ns is None else "live",
            rows=self._rows,
            batches=self._batches,
            lag_ns=None if newest_ns is None else max(0, self._wall_ns() - newest_ns),
            detail=self.header.host or "",
            missing=(*(self._proc.missing if self._proc else (_NO_PROC,)), *self._system.missing),
        )

    def close(self) -> None:
        self._closed.set()
        if self._proc:
            self._proc.close()

    def _sample(self, at_ns: int, wall_ns: int) -> pa.RecordBatch:
        busy_ns = self._proc.busy_ns() if self._proc else psutil_busy_ns()
        readings = _busy_readings(self._busy_ns, busy_ns, at_ns - self._busy_at_ns)
        readings += self._proc.read(at_ns) if self._proc else []
        readings += self._system.read(at_ns)
        self._busy_ns, self._busy_at_ns = busy_ns, at_ns
        tasks: Sequence[TaskDelta] = ()
        laid: Laid | None = None
        if self._samples % _TASKS_EVERY == 0:
            tasks = self._proc.tasks() if self._proc else ()
            span_ns = at_ns - self._tasks_at_ns
            if self._samples:
                busy = {cpu: ns - self._task_busy_ns.get(cpu, ns) for cpu, ns in busy_ns.items()}
                tick_ns = self._proc.tick_ns if self._proc else PSUTIL_TICK_NS
                laid = lay_out(tasks, busy, wall_ns - span_ns, wall_ns, tick_ns=tick_ns)
                readings += _queue_reading(tasks, span_ns) if self._proc and self._proc.supported else []
            self._task_busy_ns, self._tasks_at_ns = busy_ns, at_ns
        self._samples += 1
        self._newest_ns = wall_ns
        return _batch(laid, tasks, readings, wall_ns)


_NO_PROC: Final = f"tasks, run-queue waits and pressure: only Linux tells them, this is {platform.system()}"


def _header() -> Header:
    hardware = {"cpus": str(len(psutil_busy_ns())), "machine": platform.machine()}
    build = {"kernel": safe_text(platform.release(), 200), "python": platform.python_version()}
    return Header(source="host", host=safe_text(socket.gethostname(), 200), hardware=hardware, build=build)


def _busy_readings(before: dict[int, int], now: dict[int, int], span_ns: int) -> list[Reading]:
    shares = {
        cpu: 100.0 * min(1.0, max(0, ns - before[cpu]) / span_ns)
        for cpu, ns in now.items()
        if cpu in before and span_ns > 0
    }
    if not shares:
        return []
    whole = Reading("cpu busy", sum(shares.values()) / len(shares), "%")
    return [whole, *(Reading(f"cpu {cpu} busy", share, "%", cpu) for cpu, share in shares.items())]


def _queue_reading(tasks: Sequence[TaskDelta], span_ns: int) -> list[Reading]:
    waiting = sum(task.wait_ns for task in tasks) / span_ns if span_ns > 0 else 0.0
    return [Reading("tasks waiting, mean", waiting, "tasks")]


def _batch(laid: Laid | None, tasks: Sequence[TaskDelta], readings: Sequence[Reading], at_ns: int) -> pa.RecordBatch:
    counters = _counters(readings, at_ns)
    if laid is None or len(laid.task) == 0:
        return counters
    executions = _executions(laid, tasks)
    merged: pa.RecordBatch = pa.concat_batches([executions, counters])
    return merged


def _executions(laid: Laid, tasks: Sequence[TaskDelta]) -> pa.RecordBatch:
    rows = len(laid.task)
    names, processes = [t.name for t in tasks] + [OTHER], [*(t.process for t in tasks), None]
    name_codes, process_codes = coded_texts(names), coded_texts(processes)
    index = pa.array(laid.task % len(names))  # -1 is "other", the last
    return build_batch(
        {
            "kind": coded(np.full(rows, _EXECUTION, np.int8), KINDS),
            "name": name_codes.take(index),
            "stream": process_codes.take(index),
            "core": laid.cpu,
            "enqueue_ns": pa.array(laid.start_ns - laid.wait_ns, mask=laid.wait_ns < 0),
            "start_ns": laid.start_ns,
            "end_ns": laid.end_ns,
            "batch": pa.array(laid.slices, mask=laid.slices == 0),
        }
    )


def _counters(readings: Sequence[Reading], at_ns: int) -> pa.RecordBatch:
    rows = len(readings)
    at = np.full(rows, at_ns, np.int64)
    return build_batch(
        {
            "kind": coded(np.full(rows, _COUNTER, np.int8), KINDS),
            "name": coded_texts([r.name for r in readings]),
            "start_ns": pa.array(at),
            "end_ns": pa.array(at),
            "core": pa.array([r.core for r in readings], pa.int32()),
            "value": pa.array([r.value for r in readings], pa.float64()),
            "unit": coded_texts([r.unit for r in readings]),
        },
        rows,
    )


def open_spec(spec: str, options: OpenOptions) -> HostSource:
    """`host`."""
    no_parameters(spec)
    return HostSource(proc=ProcCounters() if sys.platform == "linux" else None)
