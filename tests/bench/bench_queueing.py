"""Every point of the queueing reference through the simulator: reference, ours, error, within?

    FUSETUI_CORPUS=... python tests/bench/bench_queueing.py [--kind mm1] [--above 0.8] [--most 1] [--scale 1] [--seed 1]

--above, --most  points above and up to this utilisation (default: all up to 0.8)
--scale  of the number of arrivals (1: enough for the tolerances; smaller is quicker and misses some)
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "accelerator"))

from queueing_points import RUN, check, load_of, requests_for


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=sorted(RUN))
    parser.add_argument("--most", type=float, default=0.8)
    parser.add_argument("--above", type=float, default=-1.0)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    corpus = os.environ.get("FUSETUI_CORPUS")
    if not corpus:
        print("bench_queueing: FUSETUI_CORPUS is not set; point it at the reference folder", file=sys.stderr)
        return 2
    reference = json.loads((Path(corpus) / "reference/serving/reference_queueing.json").read_text())["points"]
    began, points, good, numbers, near = time.perf_counter(), 0, 0, 0, 0
    for kind in RUN if args.kind is None else [args.kind]:
        for i, point in enumerate(reference[kind]):
            if not args.above < round(load_of(kind, point), 9) <= args.most:
                continue
            checks = check(kind, point, requests_for(kind, point, args.scale), args.seed * 100 + i)
            for c in checks:
                print(f"{c.kind:18} {c.at:60.60} {c.quantity:12} {c.want:12.6f} {c.got:12.6f} {c.error:+8.2%} "
                      f"(±{c.tolerance:.1%}) {'ok' if c.within else 'MISSED'}", flush=True)  # fmt: skip
            points += 1
            good += all(c.within for c in checks)
            numbers += len(checks)
            near += sum(c.within for c in checks)
    took = time.perf_counter() - began
    print(f"{good} of {points} points, {near} of {numbers} numbers within tolerance, {took:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
