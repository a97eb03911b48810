"""The task scanner over a written /proc: deltas, reused ids, vanished tasks, and the time budget."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from fusetui.sources.host_linux import parse_task_stat
from fusetui.sources.host_tasks import TaskDelta, TaskScanner

KERNEL = 0x00200000


class Proc:
    """A folder that looks like /proc."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "self").mkdir()
        (root / "self" / "schedstat").write_text("0 0 0\n")
        (root / "loadavg").write_text("0 0 0 1/3 9\n")

    def task(
        self, pid: int, tid: int, counters: tuple[int, int, int], *, name: str = "app", start: int = 50, cpu: int = 1,
        flags: int = 0,
    ) -> None:  # fmt: skip
        stat = f"{tid} ({name}) R 1 1 1 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 {start} " + "0 " * 16 + f"{cpu} 0\n"
        assert parse_task_stat(stat.encode()) is not None
        folder = self.root / str(pid) / "task" / str(tid)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "schedstat").write_text(" ".join(map(str, counters)) + "\n")
        (folder / "stat").write_text(stat)
        if pid == tid:
            (self.root / str(pid) / "stat").write_text(stat)


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path)


def scanner(proc: Proc, **more: object) -> TaskScanner:
    return TaskScanner(str(proc.root), **more)  # type: ignore[arg-type]


def test_first_scan_is_a_baseline_and_the_second_tells_differences(proc: Proc) -> None:
    proc.task(10, 10, (1000, 500, 5), name="server")
    proc.task(10, 11, (2000, 100, 2), name="worker", cpu=3)
    proc.task(12, 12, (7, 7, 7), name="idle")
    scan = scanner(proc)
    assert scan.scan(100) == []
    proc.task(10, 11, (2600, 400, 5), name="worker", cpu=0)
    assert scan.scan(200) == [TaskDelta("worker", "server", 0, 600, 300, 3)]
    assert scan.scan(300) == []
    assert (scan.complete, scan.read, scan.total) == (True, 3, 3)


def test_a_kernel_thread_is_in_the_kernel_stream(proc: Proc) -> None:
    proc.task(2, 2, (10, 0, 1), name="kworker/0:1", flags=KERNEL)
    scan = scanner(proc)
    scan.scan(0)
    proc.task(2, 2, (30, 4, 2), name="kworker/0:1", flags=KERNEL)
    assert scan.scan(1) == [TaskDelta("kworker/0:1", "kernel", 1, 20, 4, 1)]


def test_a_task_born_since_the_last_scan_counts_whole_and_an_older_stranger_does_not(proc: Proc) -> None:
    proc.task(10, 10, (1, 1, 1))
    scan = scanner(proc)
    scan.scan(100)
    proc.task(20, 20, (900, 30, 3), name="new", start=150)
    proc.task(30, 30, (800, 20, 2), name="old", start=60)
    assert scan.scan(100) == [TaskDelta("new", "new", 1, 900, 30, 3)]


def test_a_reused_id_is_a_new_task(proc: Proc) -> None:
    proc.task(10, 10, (5000, 50, 5), name="first", start=50)
    scan = scanner(proc)
    scan.scan(100)
    proc.task(10, 10, (6000, 70, 9), name="second", start=180)
    assert scan.scan(150) == [TaskDelta("second", "second", 1, 6000, 70, 9)]


def test_a_counter_that_went_back_is_a_new_baseline(proc: Proc) -> None:
    proc.task(10, 10, (5000, 50, 5))
    scan = scanner(proc)
    scan.scan(0)
    proc.task(10, 10, (100, 60, 6))
    assert scan.scan(1) == []
    proc.task(10, 10, (150, 60, 7))
    assert scan.scan(2) == [TaskDelta("app", "app", 1, 50, 0, 1)]


def test_vanished_and_unreadable_tasks_are_absent(proc: Proc) -> None:
    proc.task(10, 10, (1, 1, 1))
    proc.task(11, 11, (1, 1, 1))
    proc.task(12, 12, (1, 1, 1))
    scan = scanner(proc)
    scan.scan(0)
    shutil.rmtree(proc.root / "10")
    (proc.root / "11" / "task" / "11" / "schedstat").write_bytes(b"\xff garbage")
    proc.task(12, 12, (9, 9, 9))
    (proc.root / "12" / "task" / "12" / "stat").unlink()
    assert scan.scan(1) == []


def test_without_schedstat_nothing_is_claimed(tmp_path: Path) -> None:
    scan = TaskScanner(str(tmp_path))
    assert not scan.supported
    assert scan.scan(0) == []


def test_the_budget_bounds_a_scan_and_the_rest_gets_its_turn(proc: Proc) -> None:
    for pid in range(100, 200):
        proc.task(pid, pid, (1, 0, 1))
    (proc.root / "loadavg").write_text("0 0 0 1/100 9\n")
    now = iter(range(10**9))
    scan = scanner(proc, budget_ns=30, clock_ns=lambda: next(now))
    assert scan.scan(1000) == []
    assert (scan.complete, scan.read) == (True, 100), "the first scan may take longer"
    seen = []
    for _ in range(5):
        scan.scan(1000)
        seen.append(scan.read)
        assert (scan.complete, scan.total) == (False, 100)
    assert all(0 < read <= 30 for read in seen)
    assert sum(seen) >= 100
    proc.task(150, 150, (500, 40, 3))
    found = [delta for _ in range(7) for delta in scan.scan(1000)]
    assert found == [], "its difference spans scans that did not read it"
    proc.task(150, 150, (700, 60, 5))
    assert scan.scan(1000) == [TaskDelta("app", "app", 1, 200, 20, 2)], "it ran lately, so it is read first"


@pytest.mark.skipif(sys.platform != "linux", reason="counts open files in /proc")
def test_kept_files_are_let_go_and_no_more_than_allowed(proc: Proc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sysconf", lambda _: 20)
    for pid in range(100, 130):
        proc.task(pid, pid, (1, 0, 1))
    before = len(os.listdir("/proc/self/fd"))
    scan = scanner(proc, budget_ns=10**12)
    scan.scan(0)
    assert len(os.listdir("/proc/self/fd")) - before == 10
    for pid in range(100, 130):
        proc.task(pid, pid, (5, 0, 2))
    assert len(scan.scan(1)) == 30, "those without a kept file are read all the same"
    for pid in range(100, 110):
        shutil.rmtree(proc.root / str(pid))
        proc.task(pid + 1000, pid + 1000, (9, 0, 1), start=500)
    assert len(scan.scan(400)) == 10
    assert len(os.listdir("/proc/self/fd")) - before == 10
    scan.close()
    assert len(os.listdir("/proc/self/fd")) == before
    assert scan.scan(500) == []
