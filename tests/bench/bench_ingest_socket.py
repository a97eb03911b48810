"""How many rows a second ArrowSource takes in from one producer process over a Unix socket, and at what cost.

    python tests/bench/bench_ingest_socket.py [--seconds 3]

For each (rate asked for, rows per batch) a child process sends pre-encoded batches, paced, and this process only polls.
Prints the rate held, CPU of this process, and rows lost (there must be none: the policy is "block").
"""

from __future__ import annotations

import argparse
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from fusetui.sources.arrow import ArrowSource
from fusetui.sources.arrow_listen import Address
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import SCHEMA, build_batch

CASES = (
    (100_000, 1_000),
    (1_000_000, 10_000),
    (5_000_000, 50_000),
    (0, 50_000),
    (0, 10_000),
    (0, 1_000),
    (0, 100),
    (0, 1),
)


def message(rows: int) -> tuple[bytes, bytes]:
    """The bytes of a stream's beginning with its dictionaries, and those of one more batch."""
    now = time.time_ns() + np.arange(rows, dtype=np.int64)
    words = pa.DictionaryArray.from_arrays(
        pa.array(np.arange(rows) % 40, pa.int32()), [f"kernel_{i}" for i in range(40)]
    )
    batch = build_batch(
        {
            "kind": "execution", "name": words, "stream": words, "enqueue_ns": now - 900, "start_ns": now - 500,
            "end_ns": now, "core": np.arange(rows, dtype=np.int32) % 64, "request": np.arange(rows, dtype=np.int64),
        }
    )  # fmt: skip
    schema = SCHEMA.with_metadata(Header(source="bench").to_metadata())
    batch = pa.RecordBatch.from_arrays(batch.columns, schema=schema)
    sink = pa.BufferOutputStream()
    sizes = []
    with pa.ipc.new_stream(sink, schema) as writer:
        for _ in range(2):
            writer.write_batch(batch)
            sizes.append(sink.tell())
    whole = sink.getvalue().to_pybytes()
    return whole[: sizes[0]], whole[sizes[0] : sizes[1]]


def produce(path: str, rate: int, rows: int, seconds: float) -> None:
    """Send for `seconds`, at most `rate` rows a second (0: as fast as they are taken); prints the rows sent."""
    first, more = message(rows)
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    client.sendall(first)
    began = time.monotonic()
    sent = rows
    while (elapsed := time.monotonic() - began) < seconds:
        if rate and sent > rate * elapsed:
            time.sleep((sent - rate * elapsed) / rate)
        client.sendall(more)
        sent += rows
    client.close()
    print(sent)


def measure(rate: int, rows: int, seconds: float) -> str:
    """One line of results."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "s")
        source = ArrowSource(Address("unix", path))
        child = subprocess.Popen(
            [sys.executable, __file__, "--produce", path, str(rate), str(rows), str(seconds)],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        got = polls = 0
        began = cpu = 0.0
        while True:
            batches = source.poll(0.25)
            if batches and not got:
                began, cpu = time.monotonic(), time.process_time()
            got += sum(batch.num_rows for batch in batches)
            polls += bool(batches)
            producers = source.health().producers
            if not batches and producers and producers[0].state in ("ended", "failed"):
                break
        wall = time.monotonic() - began - 0.25
        cpu = time.process_time() - cpu
        sent = int(child.communicate()[0])
        lost = sent - got
        source.close()
    asked = f"{rate:>10,}" if rate else "  flat out"
    return f"{asked} {rows:>8,} {got / wall:>14,.0f} {100 * cpu / wall:>8.0f} {polls / wall:>9.0f} {lost:>6}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--produce", nargs=4)
    arguments = parser.parse_args()
    if arguments.produce:
        path, rate, rows, seconds = arguments.produce
        produce(path, int(rate), int(rows), float(seconds))
        return
    print("asked/s    rows/batch    held rows/s    CPU %   polls/s   lost")
    for rate, rows in CASES:
        print(measure(rate, rows, arguments.seconds), flush=True)


if __name__ == "__main__":
    main()
