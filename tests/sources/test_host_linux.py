"""Parsers of /proc text: known answers from written files, and odd ones."""

from __future__ import annotations

import pytest

from fusetui.sources import host_linux
from fusetui.sources.host_linux import (
    SchedStat,
    TaskStat,
    parse_cpu_stat,
    parse_pressure,
    parse_schedstat,
    parse_task_stat,
    parse_task_total,
)

STAT = b"""cpu  300 10 60 9000 5 3 2 7 0 0
cpu0 100 10 20 4500 5 1 2 4 50 0
cpu5 200 0 40 4500 0 2 0 3 0 0
intr 12345 0 0
ctxt 98765
procs_running 3
procs_blocked 1
"""


def task_stat(name: bytes, *, flags: int = 4194304, start: int = 777, cpu: int = 5) -> bytes:
    before = b"R 1 1 1 0 -1 %d 10 0 0 0 2 1 0 0 20 0 1 0 %d 4096 10" % (flags, start)
    after = b" ".join([b"0"] * 12) + b" 17 %d 0 0 0 0 0" % cpu
    return b"42 (" + name + b") " + before + b" 18446744073709551615 " + after + b"\n"


def test_busy_is_user_nice_system_irq_softirq(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_linux, "TICK_NS", 10_000_000)
    stat = parse_cpu_stat(STAT)
    assert stat.busy_ns == {0: 133 * 10_000_000, 5: 242 * 10_000_000}
    assert stat.steal_ns == {0: 40_000_000, 5: 30_000_000}
    assert (stat.running, stat.blocked) == (3, 1)


@pytest.mark.parametrize("text", [b"", b"cpu0 1 2\n", b"cpu0 a b c d e f g h\n", b"cpux 1 1 1 1 1 1 1 1\n", b"\xff\0"])
def test_cpu_stat_that_is_not_as_documented_is_absent(text: bytes) -> None:
    assert parse_cpu_stat(text).busy_ns == {}


def test_cpu_stat_of_an_old_kernel_has_no_steal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_linux, "TICK_NS", 1)
    stat = parse_cpu_stat(b"cpu0 1 2 3 4 5 6 7\n")
    assert (stat.busy_ns, stat.steal_ns, stat.running) == ({0: 19}, {0: 0}, None)


def test_schedstat() -> None:
    assert parse_schedstat(b"182241 122170 2\n") == SchedStat(182241, 122170, 2)
    assert parse_schedstat(b"182241 122170\n") is None
    assert parse_schedstat(b"-1 2 3\n") is None


def test_task_stat_name_may_hold_anything() -> None:
    assert parse_task_stat(task_stat(b"a) R (b c")) == TaskStat("a) R (b c", 777, 5, False)
    assert parse_task_stat(task_stat(b"kworker/0:1", flags=0x00208060)) == TaskStat("kworker/0:1", 777, 5, True)
    hostile = parse_task_stat(task_stat(b"\x1b[2J\xff\xfex"))
    assert hostile is not None
    assert hostile.name.isprintable()
    assert hostile.name.endswith("x")


@pytest.mark.parametrize("text", [b"", b"42 (x", b"42 (x) R 1 2", b"42 x) (R"])
def test_task_stat_cut_short_is_absent(text: bytes) -> None:
    assert parse_task_stat(text) is None


def test_pressure_and_task_total() -> None:
    text = b"some avg10=3.23 avg60=1.79 avg300=0.50 total=5155524\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
    assert parse_pressure(text) == {"some": 5_155_524_000, "full": 7_000}
    assert parse_pressure(b"") == {}
    assert parse_pressure(b"some avg10=1\nother total=5\n") == {}
    assert parse_task_total(b"0.00 0.08 0.07 2/183 5312\n") == 183
    assert parse_task_total(b"0.00") is None
