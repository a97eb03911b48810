"""What watching costs: CPU and bytes to the terminal at 1 and 2 Hz, beside other monitors run the same way.

    python tests/bench/bench_watch.py [--seconds 120] [--peer btop] [--peer "glances"]

Every row is measured in the same sitting, in a 120x40 pty, after 5 s of warm-up. 100 % is one core.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from pathlib import Path

from terminal import Terminal

WARM_UP_S = 5.0


def measure(argv: list[str], seconds: float) -> tuple[float, float, float]:
    """(percent of a core, kB/s to the terminal, MiB resident) over `seconds`."""
    terminal = Terminal(argv)
    terminal.read_for(WARM_UP_S)
    cpu_s, received = terminal.cpu_s(), terminal.received
    terminal.read_for(seconds)
    spent, wrote, rss = terminal.cpu_s() - cpu_s, terminal.received - received, terminal.rss_mib()
    terminal.close()
    return 100 * spent / seconds, wrote / seconds / 1000, rss


def main() -> None:
    """Print one row a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--source", default="host")
    parser.add_argument("--peer", action="append", default=[])
    args = parser.parse_args()
    fusetui = str(Path(sys.executable).with_name("fusetui"))
    rows = {f"fusetui live {args.source} {hz} Hz": [fusetui, "live", args.source, "--hz", str(hz)] for hz in (1, 2)}
    rows |= {peer: shlex.split(peer) for peer in args.peer if shutil.which(shlex.split(peer)[0])}
    print(f"{'program':32} {'% of a core':>12} {'kB/s':>8} {'RSS MiB':>8}")
    for name, argv in rows.items():
        cpu, rate, rss = measure(argv, args.seconds)
        print(f"{name:32} {cpu:12.1f} {rate:8.1f} {rss:8.0f}", flush=True)


if __name__ == "__main__":
    main()
