"""Three recorders into one viewer, one killed and restarted: rows at both ends, the gap, the clocks, the cost.

    python tests/bench/bench_several_hosts.py [--seconds 30] [--rate 50000] [--to unix|tcp|flight] [--skew-ms 250]

Every process is real: a generator of numbered rows pipes into each `fusetui stream -`, which sends to the viewer, this
process. A third of the way in the second recorder is killed (SIGKILL) with its generator running, two seconds later it
is started again. The clock of the third is off by --skew-ms: its stamps and its rows. Prints, for each host, the rows
generated, taken, confirmed and received, whether they came without a hole and once each, and the clock's offset as
measured against the truth; then CPU seconds of viewer and recorders per million rows.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fusetui.cli import main as fusetui
from fusetui.sources.arrow import ArrowSource
from fusetui.sources.registry import open_source
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import build_batch
from fusetui.telemetry.writer import StreamWriter

TICK_S = 0.02


def generate(rate: int, seconds: float, skew_ns: int) -> None:
    """Numbered rows to standard output; the number of rows to standard error."""
    writer = StreamWriter(sys.stdout.buffer, Header(source="numbered"))
    began, rows = time.monotonic(), 0
    try:
        while (elapsed := time.monotonic() - began) < seconds:
            more = int(elapsed * rate) - rows
            if more > 0:
                writer.write(_rows(rows, more, rate, skew_ns))
                sys.stdout.buffer.flush()
                rows += more
            time.sleep(TICK_S)
        writer.close()
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    print(rows, file=sys.stderr)


def _rows(first: int, rows: int, rate: int, skew_ns: int) -> pa.RecordBatch:
    end = time.time_ns() + skew_ns - np.arange(rows, dtype=np.int64)[::-1] * (10**9 // rate)
    number = np.arange(first, first + rows, dtype=np.int64)
    return build_batch(
        {
            "kind": "execution", "name": "gemm", "stream": "s", "core": (number % 8).astype(np.int32),
            "enqueue_ns": end - 9_000, "start_ns": end - 5_000, "end_ns": end, "request": number,
        }
    )  # fmt: skip


def stream(skew_ns: int, *arguments: str) -> int:
    """`fusetui stream` on a machine whose clock is off."""
    true_ns = time.time_ns
    time.time_ns = lambda: true_ns() + skew_ns
    return fusetui(["stream", *arguments])


@dataclass
class Host:
    """One recorder with its generator."""

    name: str
    to: str
    skew_ns: int = 0
    said: list[str] = field(default_factory=list)

    def start(self, rate: int, seconds: float) -> None:
        """Both processes."""
        me, skew = os.path.abspath(__file__), str(self.skew_ns)
        self.generator = subprocess.Popen(
            [sys.executable, me, "--generate", str(rate), str(seconds), skew],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.recorder = subprocess.Popen(
            [sys.executable, me, "--stream", skew, "-", "--host", self.name, "--to", self.to],
            stdin=self.generator.stdout,
            stderr=subprocess.PIPE,
        )
        assert self.generator.stdout is not None
        self.generator.stdout.close()

    def end(self) -> None:
        """What both said."""
        for process in (self.generator, self.recorder):
            _, said = process.communicate(timeout=60)
            self.said.append(said.decode().strip())


Seen = dict[str, list[npt.NDArray[np.int64]]]


def take(source: ArrowSource, seen: Seen, until_s: float) -> None:
    """Poll, and keep the numbers of each host's rows."""
    while time.monotonic() < until_s:
        for batch in source.poll(0.1):
            if batch.column("kind")[0].as_py() == "mark":
                print("mark:", *batch.column("name").to_pylist(), sep="\n      ")
                continue
            hosts = batch.column("host")
            words = hosts.dictionary.to_pylist()
            codes = hosts.indices.to_numpy(zero_copy_only=False)
            numbers = batch.column("request").to_numpy(zero_copy_only=False)
            for code in np.unique(codes):
                seen[words[code]].append(numbers[codes == code])


def verdict(numbers: npt.NDArray[np.int64]) -> str:
    """Runs of rows counted from 0, each whole?"""
    starts = np.flatnonzero(numbers == 0)
    runs = np.split(numbers, starts[1:])
    whole = all(np.array_equal(run, np.arange(len(run))) for run in runs)
    return f"{' + '.join(f'{len(run):,}' for run in runs)} rows, {'no hole, none twice' if whole else 'NOT WHOLE'}"


def measure(rate: int, seconds: float, kind: str, skew_ns: int) -> None:
    with tempfile.TemporaryDirectory(prefix="fusetui-") as folder:
        spec = {"unix": f"unix:{folder}/s", "tcp": "tcp:127.0.0.1:0", "flight": "flight:127.0.0.1:0"}[kind]
        source = open_source(spec)
        assert isinstance(source, ArrowSource)
        to = str(source.address).replace("flight:", "grpc://")
        hosts = [Host("a", to), Host("b", to), Host("c", to, skew_ns)]
        seen: Seen = defaultdict(list)
        for host in hosts:
            host.start(rate, seconds)
        while len(seen) < len(hosts):
            take(source, seen, time.monotonic() + 0.2)
        began = time.monotonic()
        take(source, seen, began + seconds / 3)
        hosts[1].recorder.kill()
        hosts[1].end()
        print("killed b:", next(p.detail for p in source.health().producers if p.name.endswith("@b")))
        take(source, seen, began + seconds / 3 + 2)
        hosts[1].start(rate, max(2.0, began + seconds - time.monotonic()))
        while any(host.recorder.poll() is None for host in hosts):
            take(source, seen, time.monotonic() + 0.5)
        take(source, seen, time.monotonic() + 1)
        for host in hosts:
            host.end()
        _report(source, hosts, seen)
        source.close()


def _report(source: ArrowSource, hosts: list[Host], seen: Seen) -> None:
    for host in hosts:
        print(f"\n{host.name}: received {verdict(np.concatenate(seen[host.name]))}")
        producer = next(p for p in source._crowd._producers if p.name.endswith(f"@{host.name}"))
        health = producer.health()
        print(f"   viewer: {health.state}, {health.rows:,} rows; {health.detail}")
        for generated, said in zip(host.said[::2], host.said[1::2], strict=True):
            print(f"   generated {int(generated.split()[-1] or 0):,}; recorder: {said or 'killed'}")
        found = producer.watch.offset.estimate()
        if found is not None and found.error_ns is not None:
            wrong_ms = (found.offset_ns - host.skew_ns) / 1e6
            print(f"   clock: true {host.skew_ns / 1e6:+.2f} ms, measured {found}, wrong by {wrong_ms:+.2f} ms")
    rows = sum(len(numbers) for parts in seen.values() for numbers in parts)
    mine, theirs = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"\n{rows:,} rows; dropped {source.health().dropped_rows}; CPU s per million rows: ", end="")
    print(f"viewer {(mine.ru_utime + mine.ru_stime) / rows * 1e6:.2f}, ", end="")
    print(f"recorders with generators {(theirs.ru_utime + theirs.ru_stime) / rows * 1e6:.2f}")


def main() -> None:
    if sys.argv[1:2] == ["--generate"]:
        generate(int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
        return
    if sys.argv[1:2] == ["--stream"]:
        sys.exit(stream(int(sys.argv[2]), *sys.argv[3:]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rate", type=int, default=50_000)
    parser.add_argument("--to", choices=("unix", "tcp", "flight"), default="tcp")
    parser.add_argument("--skew-ms", type=float, default=250)
    args = parser.parse_args()
    measure(args.rate, args.seconds, args.to, int(args.skew_ms * 1e6))


if __name__ == "__main__":
    main()
