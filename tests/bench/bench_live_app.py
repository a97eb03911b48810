"""The whole application under load: a stranger's program streams over a Unix socket while all panes are up.

    python tests/bench/bench_live_app.py [--rate 1000000] [--rate 5000000] [--seconds 20]

The application runs in a pty of 120x40, a second process sends batches of 50,000 rows with fresh times, paced. Prints
the rate taken in, what was lost (the policy is "block": nothing may be), how late the event loop came back from a sleep
of 10 ms, CPU of the application and its memory at the end. 100 % is one core.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from terminal import Terminal

from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import SCHEMA, build_batch

ROWS = 50_000
WARM_UP_S = 6.0
UP_S, LEFT_S = 30.0, 15.0
"""Longest wait until the application is on its screen, and until it has left."""


def produce(path: str, rate: int, seconds: float) -> None:
    """Send for `seconds` at `rate` rows a second; prints rows sent and the rate held."""
    chance = np.random.default_rng(3)
    ages = np.sort(chance.integers(0, 20_000_000, ROWS))[::-1]
    service, wait = chance.lognormal(9, 1, ROWS).astype(np.int64), chance.lognormal(10, 1.5, ROWS).astype(np.int64)

    def words(n: int, prefix: str) -> pa.DictionaryArray:
        codes = pa.array(chance.integers(0, n, ROWS).astype(np.int32))
        return pa.DictionaryArray.from_arrays(codes, [f"{prefix}{i}" for i in range(n)])

    fixed = {"kind": "execution", "name": words(40, "kernel_"), "stream": words(4, "stream_")}
    fixed |= {"device": np.zeros(ROWS, np.int32), "core": chance.integers(0, 16, ROWS).astype(np.int32)}
    schema = SCHEMA.with_metadata(Header(source="stranger").to_metadata())
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    began = time.monotonic()
    sent = 0
    with client.makefile("wb", 1 << 20) as sink, pa.ipc.new_stream(sink, schema) as writer:
        while (elapsed := time.monotonic() - began) < seconds:
            if sent > rate * elapsed:
                time.sleep((sent - rate * elapsed) / rate)
            end = time.time_ns() - ages
            times = {"end_ns": end, "start_ns": end - service, "enqueue_ns": end - service - wait}
            writer.write_batch(build_batch({**fixed, **times}).replace_schema_metadata(schema.metadata))
            sent += ROWS
        held = sent / (time.monotonic() - began)
    print(json.dumps({"sent": sent, "held": held}))


def watch(spec: str, report: str) -> None:
    """The application over a live source, with a probe on its event loop; writes what the probe saw when it ends."""
    from fusetui.app.app import FusetuiApp
    from fusetui.cli import main as fusetui

    late_ms: list[float] = []
    mounted = FusetuiApp.on_mount
    apps: list[FusetuiApp] = []

    async def probe() -> None:
        await asyncio.sleep(WARM_UP_S)
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.01)
            late_ms.append((time.perf_counter() - before - 0.01) * 1000)

    def on_mount(app: FusetuiApp) -> None:
        apps.append(app)
        app.probe = asyncio.get_running_loop().create_task(probe())  # type: ignore[attr-defined]
        mounted(app)

    FusetuiApp.on_mount = on_mount  # type: ignore[method-assign]
    fusetui(["live", spec])
    snapshot = apps[0].session.feed.snapshot
    assert snapshot is not None
    health = snapshot.health
    lost = {"rows": health.rows, "dropped": health.dropped_rows, "rejected": health.rejected_batches}
    Path(report).write_text(json.dumps({"late_ms": late_ms, **lost, "kept": snapshot.raw_rows}))


def wait_until_up(terminal: Terminal) -> None:
    """Until the strip of stages is on the screen: on a busy machine that may take a while."""
    if not terminal.read_for(UP_S, until=b"COMPILE PLAN"):
        raise SystemExit(f"not up after {UP_S:g} s: {bytes(terminal.output[-500:])!r}")


def left(terminal: Terminal, report: str) -> dict[str, Any]:
    """Leave, and what the probe saw."""
    terminal.send(b"q")
    until_s = time.monotonic() + LEFT_S
    while not Path(report).exists() and time.monotonic() < until_s:
        terminal.read_for(0.2)
    terminal.read_for(0.5)
    terminal.close()
    seen: dict[str, Any] = json.loads(Path(report).read_text())
    return seen


def measure(rate: int, seconds: float) -> None:
    """One row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        path, report = f"{folder}/s", f"{folder}/report"
        terminal = Terminal([sys.executable, __file__, "--watch", f"unix:{path}", report])
        wait_until_up(terminal)
        producer = subprocess.Popen(
            [sys.executable, __file__, "--produce", path, str(rate), str(seconds + WARM_UP_S)], stdout=subprocess.PIPE
        )
        terminal.read_for(WARM_UP_S)
        cpu_s = terminal.cpu_s()
        terminal.read_for(seconds - 0.5)
        spent, rss = terminal.cpu_s() - cpu_s, terminal.rss_mib()
        terminal.read_for(4)
        said = json.loads(producer.communicate(timeout=30)[0])
        terminal.read_for(1)
        seen = left(terminal, report)
    late = np.sort(np.array(seen["late_ms"])[:-50])  # the last ones are of leaving
    missing = said["sent"] - seen["rows"]
    cells = [
        f"{rate:>12,}",
        f"{said['held']:>12,.0f}",
        f"{missing:>8,}",
        f"{seen['dropped']:>8,}",
        f"{seen['rejected']:>4}",
    ]
    cells += [f"{np.quantile(late, 0.99):>8.1f}", f"{late[-1]:>8.1f}", f"{100 * spent / seconds:>7.0f}", f"{rss:>7.0f}"]
    print(*cells, flush=True)


def main() -> None:
    """Print one row a rate."""
    if sys.argv[1:2] == ["--produce"]:
        return produce(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
    if sys.argv[1:2] == ["--watch"]:
        return watch(sys.argv[2], sys.argv[3])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, action="append")
    parser.add_argument("--seconds", type=float, default=20)
    args = parser.parse_args()
    heads = (("asked ev/s", 12), ("held ev/s", 12), ("missing", 8), ("dropped", 8), ("bad", 4), ("late p99", 8))
    heads += (("max ms", 8), ("CPU %", 7), ("MiB", 7))
    print(*(f"{name:>{cells}}" for name, cells in heads))
    for rate in args.rate or [1_000_000, 3_000_000, 5_000_000]:
        measure(rate, args.seconds)
    return None


if __name__ == "__main__":
    main()
