"""What streaming profiles costs a training step: `python tests/bench/bench_profiles.py` where torch is installed.

A small transformer block is trained on the CPU, the variants taking turns so that a noisy machine slows all alike:
no profiler; the profiler on its schedule with its windows thrown away; the same with the windows written to a file;
and the same with the windows streamed to a reader on a Unix socket. One thread, so that the processor time of the
whole process, reader and importer included, tells the cost where the clock on the wall tells of the neighbours.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from socket import AF_UNIX, socket
from typing import Any

from fusetui.emit import ProfileStream
from fusetui.telemetry.reader import StreamReader

STEPS, TURNS = 20, 4
WAIT, WARMUP, ACTIVE = 7, 1, 2


class Reader(threading.Thread):
    """A viewer in this process that only counts; it takes some of the machine, as a real one does."""

    def __init__(self, path: str) -> None:
        super().__init__(daemon=True)
        self.rows = 0
        self.listener = socket(AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()

    def run(self) -> None:
        connection, _ = self.listener.accept()
        with connection, connection.makefile("rb") as file:
            for batch in StreamReader(file, "socket"):
                self.rows += batch.num_rows


def step_of(torch: Any) -> Callable[[], None]:
    torch.manual_seed(0)
    block = torch.nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
    optimizer = torch.optim.SGD(block.parameters(), lr=0.01)
    inputs = torch.rand(4, 32, 128)

    def step() -> None:
        optimizer.zero_grad()
        block(inputs).sum().backward()
        optimizer.step()

    return step


def timed(torch: Any, step: Callable[[], None], on_ready: Callable[[Any], object] | None) -> list[tuple[float, float]]:
    """Seconds on the wall and of processor time of each step, the profiler's own part of it included."""
    schedule = torch.profiler.schedule(wait=WAIT, warmup=WARMUP, active=ACTIVE)
    profiler: Any = nullcontext()
    if on_ready is not None:
        profiler = torch.profiler.profile(schedule=schedule, on_trace_ready=on_ready, record_shapes=True)
    times = []
    with profiler as running:
        for _ in range(STEPS):
            began_s, used_s = time.perf_counter(), time.process_time()
            step()
            if running is not None:
                running.step()
            times.append((time.perf_counter() - began_s, time.process_time() - used_s))
    return times


def main() -> None:
    try:
        import torch
    except ImportError:
        sys.exit("torch is not installed here")
    torch.set_num_threads(1)
    step = step_of(torch)
    for _ in range(10):
        step()
    with tempfile.TemporaryDirectory() as folder:
        reader = Reader(f"{folder}/s")
        reader.start()
        stream = ProfileStream(f"unix:{folder}/s", source="bench")
        variants: dict[str, Callable[[Any], object] | None] = {
            "plain": None,
            "profiler": lambda profiler: None,
            "profiler, written to a file": lambda p: p.export_chrome_trace(str(Path(folder) / "w.json")),
            "profiler, streamed": stream.torch_trace,
        }
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in variants}
        for _ in range(TURNS):
            for name, on_ready in variants.items():
                found[name] += timed(torch, step, on_ready)
        size = (Path(folder) / "w.json").stat().st_size
        stream.close()
        reader.join(5)
    print(f"torch {torch.__version__}, 1 thread, {STEPS * TURNS} steps each,", end=" ")
    print(f"{ACTIVE} of {WAIT + WARMUP + ACTIVE} profiled, a window is {size:,} bytes")
    plain_s = statistics.fmean(cpu_s for _, cpu_s in found["plain"])
    for name, times in found.items():
        walls, cpu_s = [wall_s for wall_s, _ in times], statistics.fmean(cpu_s for _, cpu_s in times)
        print(
            f"{name:28} wall {statistics.median(walls) * 1e3:6.2f} ms median, {max(walls) * 1e3:6.1f} worst;", end=" "
        )
        print(f"processor {cpu_s * 1e3:6.2f} ms a step, {cpu_s / plain_s:5.3f} of plain")
    windows = stream.profiles + stream.dropped_profiles
    print(f"{stream.profiles} of {windows} windows sent, {reader.rows:,} of {stream.sent:,} rows read,", end=" ")
    print(f"{stream.dropped} dropped, {stream.export_s / max(windows, 1) * 1e3:.1f} ms a window in the training thread")


if __name__ == "__main__":
    main()
