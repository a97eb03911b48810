"""Linux /proc, as text in and numbers out: the files that say how busy CPUs are and how long tasks waited for one.

Formats: proc(5) for /proc/stat and /proc/<pid>/stat; Documentation/scheduler/sched-stats.rst for schedstat;
Documentation/accounting/psi.rst for /proc/pressure. A line that is not as documented is absent (None), never an error.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final, NamedTuple

from fusetui.telemetry.text import safe_text

TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
TICK_NS: Final = 1_000_000_000 // TICKS_PER_S

_BUSY_FIELDS: Final = (0, 1, 2, 5, 6)  # user, nice, system, irq, softirq; guest time is inside user, steal is not ours
_STEAL_FIELD: Final = 7
_KERNEL_THREAD: Final = 0x00200000
_MAX_NAME: Final = 64


class SchedStat(NamedTuple):
    """One task since it began: time on a CPU, time runnable but waiting for one (ns), and times it was put on one."""

    run_ns: int
    wait_ns: int
    slices: int


class TaskStat(NamedTuple):
    """name: thread name, safe to print; start_ticks: when it began, since boot; cpu: where it ran last."""

    name: str
    start_ticks: int
    cpu: int
    kernel: bool


@dataclass(frozen=True, slots=True)
class CpuStat:
    """/proc/stat since boot: CPU number -> busy and stolen ns, and tasks now runnable and now blocked on I/O."""

    busy_ns: dict[int, int]
    steal_ns: dict[int, int]
    running: int | None
    blocked: int | None


def parse_cpu_stat(text: bytes) -> CpuStat:
    """The content of /proc/stat."""
    busy: dict[int, int] = {}
    steal: dict[int, int] = {}
    gauges: dict[bytes, int] = {}
    for line in text.splitlines():
        key, _, rest = line.partition(b" ")
        values = rest.split()
        if key.startswith(b"cpu") and key[3:].isdigit() and len(values) > max(_BUSY_FIELDS) and _all_digits(values):
            busy[int(key[3:])] = sum(int(values[i]) for i in _BUSY_FIELDS) * TICK_NS
            steal[int(key[3:])] = int(values[_STEAL_FIELD]) * TICK_NS if len(values) > _STEAL_FIELD else 0
        elif key in (b"procs_running", b"procs_blocked") and values and values[0].isdigit():
            gauges[key] = int(values[0])
    return CpuStat(busy, steal, gauges.get(b"procs_running"), gauges.get(b"procs_blocked"))


def parse_schedstat(text: bytes) -> SchedStat | None:
    """The content of /proc/<pid>/task/<tid>/schedstat."""
    values = text.split()
    if len(values) < 3 or not _all_digits(values):
        return None
    return SchedStat(int(values[0]), int(values[1]), int(values[2]))


def parse_task_stat(text: bytes) -> TaskStat | None:
    """The content of /proc/<pid>/task/<tid>/stat. The name may hold spaces, parentheses and any byte."""
    opening, closing = text.find(b"("), text.rfind(b")")
    if not 0 <= opening < closing:
        return None
    fields = text[closing + 1 :].split()  # fields[0] is field 3 of proc(5)
    if len(fields) < 37 or not _all_digits((fields[6], fields[19], fields[36])):
        return None
    name = safe_text(text[opening + 1 : closing].decode("utf-8", "replace"), _MAX_NAME)
    return TaskStat(name, int(fields[19]), int(fields[36]), bool(int(fields[6]) & _KERNEL_THREAD))


def parse_pressure(text: bytes) -> dict[str, int]:
    """The content of /proc/pressure/*: "some" and "full" -> ns stalled since boot."""
    stalled: dict[str, int] = {}
    for line in text.splitlines():
        words = line.split()
        total = next((word[6:] for word in words if word.startswith(b"total=")), b"")
        if words and words[0] in (b"some", b"full") and total.isdigit():
            stalled[words[0].decode()] = int(total) * 1000
    return stalled


def parse_task_total(text: bytes) -> int | None:
    """The content of /proc/loadavg: how many tasks the kernel schedules."""
    words = text.split()
    total = words[3].partition(b"/")[2] if len(words) > 3 else b""
    return int(total) if total.isdigit() else None


def read_bytes(path: str) -> bytes | None:
    """A small /proc file, or None when it is gone or not ours to read."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        first = os.read(handle, 65536)
        if len(first) < 4096:
            return first
        return first + b"".join(iter(lambda: os.read(handle, 65536), b""))
    except OSError:
        return None
    finally:
        os.close(handle)


def _all_digits(values: list[bytes] | tuple[bytes, ...]) -> bool:
    return all(value.isdigit() for value in values)
