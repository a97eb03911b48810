"""What psutil tells on every system: memory, disk and network, and CPU times where there is no /proc."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import psutil

_NS: Final = 1_000_000_000
PSUTIL_TICK_NS: Final = 10_000_000
"""CPU times are kept in hundredths of a second on macOS and Windows' are no finer than that in practice."""

_ERRORS: Final = (OSError, RuntimeError, NotImplementedError, psutil.Error)


class Reading(NamedTuple):
    """A counter row. core: the CPU it is about, None for the whole machine."""

    name: str
    value: float
    unit: str
    core: int | None = None


class Rates:
    """Growing totals to rates per second. A total seen first, or one that went back, has no rate."""

    def __init__(self) -> None:
        self._totals: dict[str, tuple[int, int]] = {}

    def rate(self, name: str, total: int, at_ns: int) -> float | None:
        """Growth per second since the last call for `name`; total in any unit, at_ns monotonic ns."""
        before = self._totals.get(name)
        self._totals[name] = (total, at_ns)
        if before is None or total < before[0] or at_ns <= before[1]:
            return None
        return (total - before[0]) * _NS / (at_ns - before[1])


class SystemCounters:
    """Memory in use, and disk and network rates.

    missing  what this system does not tell, one line each
    """

    def __init__(self) -> None:
        self._rates = Rates()
        self._absent: dict[str, str] = {}

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(self._absent.values())

    def read(self, at_ns: int) -> list[Reading]:
        """Readings now; rates cover the time since the last call."""
        readings: list[Reading] = []
        memory = self._ask("memory", psutil.virtual_memory)
        if memory is not None:
            readings.append(Reading("memory used", float(memory.total - memory.available), "B"))
        disk = self._ask("disk", lambda: psutil.disk_io_counters(nowrap=False))
        if disk is not None:
            readings += self._rate("disk read", disk.read_bytes, at_ns)
            readings += self._rate("disk written", disk.write_bytes, at_ns)
        net = self._ask("network", lambda: psutil.net_io_counters(nowrap=False))
        if net is not None:
            readings += self._rate("net received", net.bytes_recv, at_ns)
            readings += self._rate("net sent", net.bytes_sent, at_ns)
        return readings

    def _rate(self, name: str, total: int, at_ns: int) -> list[Reading]:
        rate = self._rates.rate(name, total, at_ns)
        return [] if rate is None else [Reading(name, rate, "B/s")]

    def _ask(self, what: str, question: Callable[[], Any]) -> Any:
        try:
            answer = question()
        except _ERRORS as error:
            self._absent[what] = f"{what}: {error}"
            return None
        if answer is None:
            self._absent[what] = f"{what}: this system tells nothing"
        else:
            self._absent.pop(what, None)
        return answer


def psutil_busy_ns() -> dict[int, int]:
    """CPU -> busy ns since boot: all time that is neither idle, waiting for I/O, nor stolen."""
    try:
        times = psutil.cpu_times(percpu=True)
    except _ERRORS:
        return {}
    idle = ("idle", "iowait", "steal", "guest", "guest_nice")
    busy = (sum(value for name, value in cpu._asdict().items() if name not in idle) for cpu in times)
    return {cpu: int(seconds * _NS) for cpu, seconds in enumerate(busy)}
