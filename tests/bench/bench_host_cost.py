"""What watching this machine costs: CPU of the host source alone, in percent of one core.

    python tests/bench/bench_host_cost.py [--seconds 20] [--tasks 0]

`--tasks N` starts N sleeping threads in child processes (50 each), to see how the cost grows and where the time
budget begins to hold.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from fusetui.sources.host import HostSource
from fusetui.sources.host_proc import ProcCounters
from fusetui.sources.host_tasks import TaskScanner

SLEEPER = """
import sys, threading
for _ in range(49):
    threading.Thread(target=sys.stdin.read, daemon=True).start()
sys.stdin.read()
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--tasks", type=int, default=0)
    arguments = parser.parse_args()
    children = [
        subprocess.Popen([sys.executable, "-S", "-c", SLEEPER], stdin=subprocess.PIPE)
        for _ in range(arguments.tasks // 50)
    ]
    time.sleep(1.0 + arguments.tasks / 500)
    scanner = TaskScanner()
    source = HostSource(proc=ProcCounters(scanner=scanner))
    source.poll(1.0)
    began, cpu, rows = time.monotonic(), time.process_time(), 0
    while time.monotonic() - began < arguments.seconds:
        rows += sum(batch.num_rows for batch in source.poll(1.0))
    wall, cpu = time.monotonic() - began, time.process_time() - cpu
    print(f"tasks {scanner.total}, read {scanner.read}, complete {scanner.complete}")
    print(f"CPU {100 * cpu / wall:.2f} % of a core, {rows / wall:.0f} rows/s")
    print("missing:", *source.health().missing)
    source.close()
    for child in children:
        child.communicate()


if __name__ == "__main__":
    main()
