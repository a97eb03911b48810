"""Seeking in a large recording: from the key press to the snapshot that shows the new place.

    python tests/bench/bench_seek.py [--rows 10000000] [--seeks 50]

Makes a recording of that many executions in a temporary folder with the project's own recorder, opens it as `replay`
does, and jumps to random places. `rows` is the time until the rows of the window are there, `snapshot` until every
measure over them is computed.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from fusetui.analysis.ingest import Ingest
from fusetui.telemetry.header import Header
from fusetui.telemetry.open import open_trace
from fusetui.telemetry.recording import Recorder
from fusetui.telemetry.replay import Replay
from fusetui.telemetry.schema import build_batch

BATCH = 65_536


def write_recording(path: Path, rows: int) -> None:
    """Executions every 1 µs on 16 cores and 4 streams, waits and services log-normal."""
    chance = np.random.default_rng(7)
    recorder = Recorder(path, Header(source="bench"), max_bytes=1 << 33)
    for begin in range(0, rows, BATCH):
        n = min(BATCH, rows - begin)
        end = np.arange(begin, begin + n, dtype=np.int64) * 1_000 + 10**18
        service = chance.lognormal(8, 1, n).astype(np.int64) + 1
        wait = chance.lognormal(9, 1.5, n).astype(np.int64)
        columns = {
            "kind": "execution",
            "name": np.array(["gemm", "norm", "attention"])[chance.integers(0, 3, n)],
            "enqueue_ns": end - service - wait,
            "start_ns": end - service,
            "end_ns": end,
            "device": np.zeros(n, np.int32),
            "core": chance.integers(0, 16, n).astype(np.int32),
            "stream": np.array(["a", "b", "c", "d"])[chance.integers(0, 4, n)],
        }
        recorder.write(build_batch(columns))
    recorder.close()


def percentiles(times_s: list[float]) -> str:
    """Median, p95 and maximum in ms."""
    ms = np.sort(np.array(times_s)) * 1000
    return f"median {ms[len(ms) // 2]:6.1f}  p95 {ms[int(len(ms) * 0.95)]:6.1f}  max {ms[-1]:6.1f} ms"


def main() -> None:
    """Print the distribution of seek times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--seeks", type=int, default=50)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.arrows"
        write_recording(path, args.rows)
        begun = time.monotonic()
        trace = open_trace(path)
        batches = len(trace.index().rows)
        print(f"{args.rows:,} rows, {path.stat().st_size / 1e6:.0f} MB, {batches} batches")
        print(f"open and index   {(time.monotonic() - begun) * 1000:.1f} ms")
        places = np.random.default_rng(1).random(args.seeks)
        replay = Replay(trace)
        ingest = Ingest(replay)
        ingest.start()
        first = ingest.wait_for(1, 20)
        assert first is not None
        print(f"window           {(first.now_ns - first.window_start_ns) / 1e9:.3f} s, {first.raw_rows:,} rows")
        whole: list[float] = []
        for place in places:
            before = ingest.snapshot
            assert before is not None
            begun = time.monotonic()
            replay.seek_fraction(float(place))
            target = replay.state().position_ns
            while (seen := ingest.snapshot) is None or seen.now_ns != target or seen.raw_rows < 1000:
                time.sleep(0.001)
            whole.append(time.monotonic() - begun)
        print(f"snapshot         {percentiles(whole)}")
        ingest.stop()
        alone = Replay(trace, window_ns=ingest.window_ns)
        rows: list[float] = []
        for place in places:
            begun = time.monotonic()
            alone.seek_fraction(float(place))
            while not alone.poll(0.0):
                pass
            rows.append(time.monotonic() - begun)
        print(f"rows             {percentiles(rows)}")
        narrow = Replay(trace, window_ns=100_000)
        point: list[float] = []
        for place in places:
            begun = time.monotonic()
            narrow.seek_fraction(float(place))
            while not narrow.poll(0.0):
                pass
            point.append(time.monotonic() - begun)
        print(f"one place        {percentiles(point)}")


if __name__ == "__main__":
    main()
