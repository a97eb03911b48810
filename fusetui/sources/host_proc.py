"""The counters of a Linux machine that live in /proc: busy CPUs, run queue, pressure stall, tasks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from fusetui.sources.host_common import Rates, Reading
from fusetui.sources.host_linux import (
    TICK_NS,
    TICKS_PER_S,
    CpuStat,
    parse_cpu_stat,
    parse_pressure,
    read_bytes,
)
from fusetui.sources.host_tasks import TaskDelta, TaskScanner

# "full" for CPU is undefined for the whole machine (psi.rst).
_PRESSURE: Final = (("cpu", "some"), ("memory", "some"), ("memory", "full"), ("io", "some"), ("io", "full"))
_HIDDEN_SHARE: Final = 0.9


def _boot_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class ProcCounters:
    """Reads /proc; whatever it lacks or hides is named in `missing`, and nothing raises.

    root     where proc is mounted
    boot_ns  time since boot, the clock of task start times
    tick_ns  how coarse the busy time of a CPU is
    """

    tick_ns: int = TICK_NS

    def __init__(
        self, root: str = "/proc", *, scanner: TaskScanner | None = None, boot_ns: Callable[[], int] = _boot_ns
    ) -> None:
        self._root = root
        self._boot_ns = boot_ns
        self._scanner = scanner or TaskScanner(root)
        self._scanned_ticks = 0
        self._rates = Rates()
        self._stat = CpuStat({}, {}, None, None)
        self._no_pressure = False

    @property
    def supported(self) -> bool:
        """Whether this kernel tells run-queue waits."""
        return self._scanner.supported

    @property
    def missing(self) -> tuple[str, ...]:
        lines = []
        scanner = self._scanner
        if not self._stat.busy_ns:
            lines.append(f"busy CPUs: {self._root}/stat cannot be read")
        if not scanner.supported:
            lines.append("run-queue waits: this kernel keeps no schedstat (CONFIG_SCHED_INFO)")
        elif not scanner.complete:
            total = "?" if scanner.total is None else scanner.total
            lines.append(f"tasks: read {scanner.read} of {total} in the time allowed, the rest is in 'other'")
        elif scanner.total is not None and scanner.read < _HIDDEN_SHARE * scanner.total:
            lines.append(f"tasks: {scanner.read} of {scanner.total} can be seen from here (container or hidepid)")
        if self._no_pressure:
            lines.append("pressure stall: no /proc/pressure (kernel without PSI, or a container)")
        return tuple(lines)

    def busy_ns(self) -> dict[int, int]:
        """CPU -> busy ns since boot."""
        self._stat = parse_cpu_stat(read_bytes(f"{self._root}/stat") or b"")
        return self._stat.busy_ns

    def read(self, at_ns: int) -> list[Reading]:
        """Run queue, stolen time and pressure as of the last `busy_ns`; shares cover the time since the last call."""
        readings = []
        for name, gauge in (("tasks runnable", self._stat.running), ("tasks blocked", self._stat.blocked)):
            if gauge is not None:
                readings.append(Reading(name, float(gauge), "tasks"))
        if self._stat.steal_ns:
            mean_ns = sum(self._stat.steal_ns.values()) // len(self._stat.steal_ns)
            readings += self._percent("cpu stolen", mean_ns, at_ns)
        pressure = {what: parse_pressure(read_bytes(f"{self._root}/pressure/{what}") or b"") for what, _ in _PRESSURE}
        self._no_pressure = not any(pressure.values())
        for what, kind in _PRESSURE:
            if kind in pressure[what]:
                readings += self._percent(f"psi {what} {kind}", pressure[what][kind], at_ns)
        return readings

    def tasks(self) -> list[TaskDelta]:
        """What tasks did since the last call."""
        now_ticks = self._boot_ns() * TICKS_PER_S // 1_000_000_000
        deltas = self._scanner.scan(self._scanned_ticks)
        self._scanned_ticks = now_ticks
        return deltas

    def close(self) -> None:
        """Let go of the kernel's files."""
        self._scanner.close()

    def _percent(self, name: str, total_ns: int, at_ns: int) -> list[Reading]:
        rate = self._rates.rate(name, total_ns, at_ns)
        return [] if rate is None else [Reading(name, min(100.0, rate / 1e7), "%")]
