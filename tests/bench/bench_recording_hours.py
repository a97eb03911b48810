"""Hours of recording with restarts: what is missing afterwards, and what the recorder took.

    python tests/bench/bench_recording_hours.py [--hours 2] [--rate 20000] [--restarts 16] [--folder DIR]
        [--options='--metrics 127.0.0.1:9464']

A producer sends numbered rows over a Unix socket to `fusetui record`, which rotates by size and time. At random moments
the recorder gets SIGTERM or SIGKILL and is started again a second later; the middle third of the time is left in peace,
to see whether memory grows. Afterwards the recording is read back as one trace and every number is looked for. Only
what a SIGKILL caught between the producer and the disk may be missing. Exit code 1 when anything else is.

FOLDER gets the recording (about 35 bytes a row), record.log, samples.csv and summary.txt, which is rewritten every
minute, so that it is there however the run ends; SIGTERM ends the run early, with everything checked.
"""

from __future__ import annotations

import argparse
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
from recording_check import Missing, missing_numbers

from fusetui.emit import Producer
from fusetui.telemetry.schema import EXECUTION, REQUEST, build_batch

BATCH_S = 0.1
SAMPLE_S = 10.0
WARM_S = 60.0
APART_S = 15.0
"""Between two restarts at least; the producer keeps what it makes while nobody listens, up to 50 s of 20,000 rows."""
BUFFER_ROWS = 1 << 20
PRODUCER = "producer.csv"


def produce(address: str, rate: int, status: Path) -> None:
    """Numbered rows at `rate` until SIGTERM: `request` is the number, from 0, without a gap."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    rows = max(1, round(rate * BATCH_S))
    rng = np.random.default_rng(1)
    names = words([f"kernel_{k % 40}" for k in range(rows)])
    kinds = pa.DictionaryArray.from_arrays(pa.array(np.arange(rows) % 8 == 0).cast(pa.int8()), [EXECUTION, REQUEST])
    fixed = {
        "kind": kinds,
        "name": names,
        "stream": words(["decode", "prefill"] * (rows // 2) + ["decode"] * (rows % 2)),
    }
    begun_s, number = time.time(), 0
    with Producer(address, source="recording bench", buffer_rows=BUFFER_ROWS, close_s=10.0) as out:
        while not ended.wait(max(0.0, begun_s + number / rate - time.time())):
            end_ns = time.time_ns() + np.arange(rows) * 1000
            spent_ns = rng.lognormal(13, 1, rows).astype(np.int64)
            out.write_batch(
                build_batch(
                    {
                        **fixed, "enqueue_ns": end_ns - 3 * spent_ns, "start_ns": end_ns - spent_ns, "end_ns": end_ns,
                        "core": np.arange(rows, dtype=np.int32) % 16, "request": np.arange(number, number + rows),
                    }
                )
            )  # fmt: skip
            number += rows
            status.write_text(f"{begun_s},{number},{out.sent},{out.dropped}\n")
    status.write_text(f"{begun_s},{number},{out.sent},{out.dropped}\n")


def words(values: list[str]) -> pa.DictionaryArray:
    return pa.array(values).dictionary_encode()


@dataclass
class Life:
    """One recorder process, from start to end."""

    pid: int
    born_s: float
    ended_by: str = ""
    ended_s: float = 0.0
    code: int | None = None
    cpu_s: float = 0.0
    samples: list[tuple[float, int, int]] = field(default_factory=list)
    """Age in s, RSS in bytes, open file descriptors."""


class Run:
    """The recorder and the producer, and what was seen of them."""

    def __init__(self, folder: Path, rate: int, options: list[str]) -> None:
        self.folder = folder
        self.recording = folder / "recording"
        self.address = f"unix:{folder}/socket"
        self.rate = rate
        self._options = options
        self.lives: list[Life] = []
        self.began_s = time.time()
        self._log = (folder / "record.log").open("a")
        self._start_recorder()
        command = [sys.executable, __file__, "--produce", self.address, "--rate", str(rate), "--folder", str(folder)]
        self._producer = subprocess.Popen(command)

    def _start_recorder(self) -> None:
        command = [sys.executable, "-m", "fusetui.cli", "record", self.address, "-o", f"{self.recording}/"]
        self._process = subprocess.Popen(
            [*command, "--rotate", "64MB", "--rotate", "5min", *self._options], stdout=self._log, stderr=self._log
        )
        self.lives.append(Life(self._process.pid, time.time()))

    def sample(self) -> None:
        life = self.lives[-1]
        try:
            process = psutil.Process(life.pid)
            with process.oneshot():
                used = process.cpu_times()
                life.cpu_s = used.user + used.system
                life.samples.append((time.time() - life.born_s, process.memory_info().rss, process.num_fds()))
        except psutil.Error:
            return
        age_s, rss, fds = life.samples[-1]
        with (self.folder / "samples.csv").open("a") as file:
            file.write(f"{time.time():.1f},{life.pid},{age_s:.1f},{rss},{fds},{life.cpu_s:.2f}\n")

    def end_recorder(self, how: signal.Signals) -> None:
        """Signal it, and note when and how it ended."""
        self.sample()
        life = self.lives[-1]
        life.ended_by, life.ended_s = how.name, time.time()
        self._process.send_signal(how)
        try:
            life.code = self._process.wait(30.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            life.ended_by = f"{how.name} without effect for 30 s"

    def restart(self, how: signal.Signals) -> None:
        self.end_recorder(how)
        time.sleep(1.0)
        self._start_recorder()

    def alive(self) -> bool:
        return self._process.poll() is None and self._producer.poll() is None

    def finish(self) -> None:
        """The producer first, so that nothing is on its way when the recorder ends."""
        self._producer.terminate()
        self._producer.wait(30.0)
        time.sleep(2.0)
        if self._process.poll() is None:
            self.end_recorder(signal.SIGTERM)
        self._log.close()

    def produced(self) -> tuple[float, int, int, int]:
        """When number 0 was made, numbers made, rows handed to the connection, rows dropped by the producer."""
        try:
            begun, number, sent, dropped = (self.folder / PRODUCER).read_text().split(",")
        except (OSError, ValueError):
            return self.began_s, 0, 0, 0
        return float(begun), int(number), int(sent), int(dropped)


def plan_of(hours: float, restarts: int, rng: random.Random) -> list[tuple[float, signal.Signals]]:
    """Moments in s since the beginning, in the first and the last third, and what the recorder gets then."""
    total_s = hours * 3600
    moments = sorted(rng.choice((rng.uniform(0.03, 0.35), rng.uniform(0.65, 0.92))) for _ in range(restarts))
    for at in range(1, restarts):
        moments[at] = max(moments[at], moments[at - 1] + APART_S / total_s)
    kinds = [signal.SIGTERM, signal.SIGKILL] * ((restarts + 1) // 2)
    rng.shuffle(kinds)
    return list(zip((share * total_s for share in moments), kinds, strict=False))


def pooled_slope(lives: list[Life]) -> float:
    """Growth of RSS in bytes per hour: least squares over all lives, each with its own level, warmed up."""
    above = below = 0.0
    for life in lives:
        table = np.array([(age, rss) for age, rss, _ in life.samples if age >= WARM_S], float).reshape(-1, 2)
        if len(table) >= 3:
            table -= table.mean(axis=0)
            above += float((table[:, 0] * table[:, 1]).sum())
            below += float((table[:, 0] ** 2).sum())
    return above / below * 3600 if below else float("nan")


def summary(run: Run, missing: Missing | None) -> tuple[str, bool]:
    """The text, and whether all is well."""
    begun_s, made, sent, dropped = run.produced()
    hours = (time.time() - run.began_s) / 3600
    lines = [f"{hours:.2f} h, {made:,} rows made at {run.rate:,}/s, {sent:,} sent, {dropped:,} dropped by the producer"]
    lines.append(f"recorder: {len(run.lives)} lives, {memory(run.lives)}")
    well = True
    gaps = {} if missing is None else assigned(missing, run.lives, begun_s, run.rate)
    for at, life in enumerate(run.lives):
        lost = gaps.pop(at, 0)
        bad_code = life.ended_by == "SIGTERM" and life.code != 0
        well &= not bad_code and (lost == 0 or life.ended_by == "SIGKILL")
        lines.append(life_line(life, lost if missing is not None else None))
    if missing is None:
        lines.append("not read back yet")
        return "\n".join(lines) + "\n", False
    lost_elsewhere = gaps.pop(-1, 0)
    well &= lost_elsewhere == 0 and missing.repeated == 0 and missing.last == made - 1
    lines.append(
        f"read back: {missing.found:,} rows in {missing.segments} segments, {missing.bytes / 1e9:.2f} GB;"
        f" {missing.total:,} numbers missing in {len(missing.gaps)} gaps, {lost_elsewhere:,} of them at no restart;"
        f" {missing.repeated:,} twice; last number {missing.last:,} of {made - 1:,}"
    )
    lines += [f"  note: {note}" for note in missing.notes[:20]]
    lines.append("OK" if well else "NOT OK")
    return "\n".join(lines) + "\n", well


def memory(lives: list[Life]) -> str:
    samples = [sample for life in lives for sample in life.samples if sample[0] >= WARM_S]
    samples = samples or [sample for life in lives for sample in life.samples] or [(0.0, 0, 0)]
    rss = [sample[1] / 2**20 for sample in samples]
    fds = [sample[2] for sample in samples]
    lived_s = sum(life.samples[-1][0] for life in lives if life.samples)
    cpu = sum(life.cpu_s for life in lives) / lived_s if lived_s else 0.0
    return (
        f"RSS {min(rss):.0f} to {max(rss):.0f} MiB, slope {pooled_slope(lives) / 2**20:+.2f} MiB/h,"
        f" fds {min(fds)} to {max(fds)}, CPU {cpu:.1%} of a core"
    )


def life_line(life: Life, lost: int | None) -> str:
    lived = life.ended_s - life.born_s if life.ended_s else life.samples[-1][0] if life.samples else 0.0
    end = f"{life.ended_by or 'runs'}{'' if life.code is None else f' code {life.code}'}"
    rss = ", ".join(
        f"{rss / 2**20:.0f} MiB at {age:.0f} s" for age, rss, _ in life.samples[:: max(1, len(life.samples) - 1)]
    )
    return f"  {lived:6.0f} s, {end}" + ("" if lost is None else f", {lost:,} rows missing") + f"; {rss}"


def assigned(missing: Missing, lives: list[Life], begun_s: float, rate: int) -> dict[int, int]:
    """Rows missing by the life whose end was nearest to when they were made, -1 when none was within 15 s."""
    ends = np.array([life.ended_s or np.inf for life in lives])
    lost: dict[int, int] = {}
    for first, last in missing.gaps:
        away_s = np.abs(ends - (begun_s + last / rate))
        at = int(np.argmin(away_s)) if away_s.min() < 15 else -1
        lost[at] = lost.get(at, 0) + last - first + 1
    return lost


def drive(run: Run, hours: float, plan: list[tuple[float, signal.Signals]], stop: threading.Event) -> None:
    """Restart as planned, sample every 10 s and write what is known every minute, until the time is up."""
    now_s, sampled_s, written_s = 0.0, 0.0, 0.0
    while now_s < hours * 3600 and not stop.wait(0.2):
        now_s = time.time() - run.began_s
        if plan and now_s >= plan[0][0]:
            run.restart(plan.pop(0)[1])
        elif not run.alive():
            return
        if now_s - sampled_s >= SAMPLE_S:
            sampled_s = now_s
            run.sample()
        if now_s - written_s >= 60:
            written_s = now_s
            (run.folder / "summary.txt").write_text(summary(run, None)[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--rate", type=int, default=20_000)
    parser.add_argument("--restarts", type=int, default=16)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--options", default="", help="more options for the recorder, as in a shell")
    parser.add_argument("--produce", metavar="ADDRESS", help=argparse.SUPPRESS)
    args = parser.parse_args()
    folder = args.folder or Path(tempfile.mkdtemp(prefix="fusetui-hours-"))
    if args.produce:
        produce(args.produce, args.rate, folder / PRODUCER)
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    run = Run(folder, args.rate, shlex.split(args.options))
    try:
        drive(run, args.hours, plan_of(args.hours, args.restarts, random.Random(args.seed)), stop)
    finally:
        run.finish()
    text, well = summary(run, missing_numbers(run.recording))
    (folder / "summary.txt").write_text(text)
    print(text, end="")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
