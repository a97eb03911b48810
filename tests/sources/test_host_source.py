"""The host source: a written /proc under a fake clock, and this machine for real."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from fusetui.sources.host import HostSource
from fusetui.sources.host_common import Rates
from fusetui.sources.host_linux import TICK_NS, TICKS_PER_S
from fusetui.sources.host_proc import ProcCounters
from fusetui.telemetry.schema import SCHEMA

S = 1_000_000_000
WALL = 1_700_000_000 * S


class Machine:
    """A written /proc, with one clock for everything."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.now_ns = 100 * S
        (root / "self").mkdir()
        (root / "self" / "schedstat").write_text("0 0 0\n")
        (root / "pressure").mkdir()
        (root / "loadavg").write_text("0 0 0 1/1 9\n")
        self.set(busy_ticks=(0, 0), run=0, wait=0, slices=0, stalled_us=0)
        self.source = HostSource(
            proc=ProcCounters(str(root), boot_ns=lambda: self.now_ns),
            wall_ns=lambda: WALL + self.now_ns,
            monotonic_ns=lambda: self.now_ns,
        )

    def set(self, *, busy_ticks: tuple[int, int], run: int, wait: int, slices: int, stalled_us: int) -> None:
        lines = [f"cpu{i} {ticks} 0 0 9 0 0 0 0\n" for i, ticks in enumerate(busy_ticks)]
        (self.root / "stat").write_text("".join(lines) + "procs_running 2\nprocs_blocked 0\n")
        folder = self.root / "7" / "task" / "7"
        folder.mkdir(parents=True, exist_ok=True)
        stat = "7 (app) R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 " + "0 " * 16 + "1 0\n"
        (folder / "stat").write_text(stat)
        (folder / "schedstat").write_text(f"{run} {wait} {slices}\n")
        (self.root / "pressure" / "cpu").write_text(f"some avg10=0 avg60=0 avg300=0 total={stalled_us}\n")

    def sample(self) -> list[dict[str, object]]:
        (batch,) = self.source.poll(0)
        batch.validate(full=True)
        assert batch.schema == SCHEMA
        return batch.to_pylist()


def test_executions_and_counters_of_one_second(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    assert machine.source.now_ns() is None
    assert all(row["kind"] == "counter" for row in machine.sample())
    machine.now_ns += S // 2
    machine.sample()
    machine.now_ns += S // 2
    busy = TICKS_PER_S // 2  # half a second
    machine.set(busy_ticks=(0, busy), run=busy * TICK_NS, wait=40_000_000, slices=4, stalled_us=125_000)
    rows = machine.sample()
    now = WALL + machine.now_ns
    executions = [row for row in rows if row["kind"] == "execution"]
    assert [(r["name"], r["stream"], r["core"], r["batch"]) for r in executions] == [("app", "app", 1, 1)] * 4
    assert all(r["start_ns"] - r["enqueue_ns"] == 10_000_000 for r in executions)  # type: ignore[operator]
    assert sum(r["end_ns"] - r["start_ns"] for r in executions) == busy * TICK_NS  # type: ignore[operator,misc]
    counters = {row["name"]: row for row in rows if row["kind"] == "counter"}
    assert counters["cpu busy"]["value"] == pytest.approx(50.0)
    assert counters["cpu 1 busy"]["value"] == pytest.approx(100.0)
    assert counters["cpu 1 busy"]["core"] == 1
    assert counters["psi cpu some"]["value"] == pytest.approx(25.0)
    assert counters["tasks waiting, mean"]["value"] == pytest.approx(0.04)
    assert counters["tasks runnable"]["value"] == 2
    assert counters["cpu busy"]["end_ns"] == now
    assert machine.source.now_ns() == now


def test_no_sample_before_it_is_due_and_none_made_up_after_a_pause(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.sample()
    machine.now_ns += S // 4
    assert machine.source.poll(0) == ()
    machine.now_ns += 100 * S
    machine.sample()
    assert machine.source.poll(0) == ()


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    for path in ("pressure/cpu", "self/schedstat", "stat"):
        (tmp_path / path).unlink()
    source = HostSource(proc=ProcCounters(str(tmp_path)), monotonic_ns=lambda: machine.now_ns)
    rows = source.poll(0)[0].to_pylist()
    assert {row["kind"] for row in rows} == {"counter"}
    missing = " ".join(source.health().missing)
    for what in ("busy CPUs", "schedstat", "PSI"):
        assert what in missing


def test_hidden_tasks_are_named(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    (tmp_path / "loadavg").write_text("0 0 0 1/183 9\n")
    machine.sample()
    assert "1 of 183" in " ".join(machine.source.health().missing)


def test_without_proc_cpus_are_busy_and_tasks_absent() -> None:
    clock = iter(range(0, 100 * S, S // 4))
    source = HostSource(monotonic_ns=lambda: next(clock))
    deadline = time.monotonic() + 3
    rows: list[dict[str, object]] = []
    while time.monotonic() < deadline and not any(r["kind"] == "execution" for r in rows):
        sum(range(200_000))
        rows += pa.Table.from_batches(source.poll(0), SCHEMA).to_pylist()
    executions = [row for row in rows if row["kind"] == "execution"]
    assert executions
    assert {(row["name"], row["stream"], row["enqueue_ns"]) for row in executions} == {("other", None, None)}
    assert "only Linux" in " ".join(source.health().missing)


def test_rates() -> None:
    rates = Rates()
    assert rates.rate("x", 100, 0) is None
    assert rates.rate("x", 300, S // 2) == 400.0
    assert rates.rate("x", 50, S) is None, "it went back"
    assert rates.rate("x", 60, 2 * S) == 10.0
    assert rates.rate("x", 60, 2 * S) is None, "no time passed"


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_this_machine_for_real() -> None:
    source = HostSource(proc=ProcCounters())
    stop = threading.Event()

    def burn() -> None:
        while not stop.is_set():
            sum(range(1000))

    burner = threading.Thread(target=burn, name="burner")
    burner.start()
    batches: list[pa.RecordBatch] = []
    deadline = time.monotonic() + 8
    try:
        while time.monotonic() < deadline and not any("execution" in b.column("kind").to_pylist() for b in batches):
            batches += source.poll(0.5)
    finally:
        stop.set()
        burner.join()
        source.close()
    table = pa.Table.from_batches(batches)
    table.validate(full=True)
    rows = table.to_pylist()
    assert any(row["kind"] == "execution" and row["core"] is not None for row in rows)
    assert {"cpu busy", "memory used"} <= {row["name"] for row in rows if row["kind"] == "counter"}
    assert source.health().state == "ended"
    assert source.poll(5.0) == ()
