"""What starting costs: `--version` and `--help` against bare Python, and the first frame of a replay.

    python tests/bench/bench_start.py [sample:NAME]

CPU seconds are user + system of the whole process; medians of 7 runs, interleaved.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from terminal import Terminal

RUNS = 7


def cpu_of(argv: list[str]) -> float:
    """CPU seconds of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_frame(argv: list[str], marker: bytes) -> tuple[float, float]:
    """(wall, CPU) seconds from the start until `marker` is on the screen."""
    begun = time.monotonic()
    terminal = Terminal(argv)
    if not terminal.read_for(20, until=marker):
        raise SystemExit(f"{marker!r} never came: {bytes(terminal.output[-500:])!r}")
    result = time.monotonic() - begun, terminal.cpu_s()
    terminal.close()
    return result


def main() -> None:
    """Print medians and ratios."""
    sample = sys.argv[1] if len(sys.argv) > 1 else "sample:torch-serving"
    fusetui = str(Path(sys.executable).with_name("fusetui"))
    python = sys.executable
    commands = {
        "python -c pass": [python, "-c", "pass"],
        "--version": [fusetui, "--version"],
        "--help": [fusetui, "--help"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(RUNS):
        for name, argv in commands.items():
            times[name].append(cpu_of(argv))
    base = statistics.median(times["python -c pass"])
    for name, values in times.items():
        median = statistics.median(values)
        print(f"{name:20} {median * 1000:7.1f} ms CPU   {median / base:5.1f} x bare Python")
    for what, marker in (("first frame", b"COMPILE PLAN"), ("first numbers", b"p99 ")):
        frames = [first_frame([fusetui, "replay", sample], marker) for _ in range(RUNS)]
        wall, cpu = (statistics.median(column) for column in zip(*frames, strict=True))
        print(f"{what:20} {wall * 1000:7.0f} ms wall  {cpu:6.3f} s CPU   replay {sample}")


if __name__ == "__main__":
    main()
