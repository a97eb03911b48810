"""`fusetui calibrate`: fit the model's constants to measured kernels and say how far off it is on the others."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

from fusetui.accelerator.calibrate import Score, calibrate
from fusetui.accelerator.constants import Constants, constants_table, save_constants
from fusetui.accelerator.measure_host import measure_host
from fusetui.accelerator.presets import HOST, load_hardware
from fusetui.accelerator.rows import read_rows
from fusetui.telemetry.errors import TelemetryError

_HOST_TRAIN = 15  # of the 20 and more short measurements: they are noisy, and few


def run(args: argparse.Namespace) -> int:
    """Print the errors on rows not seen; write the constants where `-o` says. Returns the exit code."""
    hardware = load_hardware(args.hardware)
    if args.rows == HOST:
        rows, train = measure_host(), args.train or _HOST_TRAIN
    else:
        rows, train = read_rows(Path(args.rows)), args.train
    sets, scores = calibrate(hardware, rows, train, args.seed)
    if args.output:
        try:
            save_constants(Path(args.output), sets)
        except OSError as error:
            raise TelemetryError(args.output, f"cannot be written: {error.strerror}") from None
    if args.json:
        table = {
            "hardware": hardware.name,
            "seed": args.seed,
            "scores": [dataclasses.asdict(score) for score in scores],
            "constants": [constants_table(constants) for constants in sets],
        }
        print(json.dumps(table, indent=2))
    else:
        _print(hardware.title, scores, sets)
    return 0


def _print(title: str, scores: Sequence[Score], sets: Sequence[Constants]) -> None:
    print(title)
    print(f"{'rows':10} {'dtype':6} {'fitted':>7} {'held out':>9} {'median':>8} {'p95':>8}")
    for s in scores:
        print(
            f"{s.family:10} {s.dtype:6} {s.train:7} {s.held_out:9} {s.median_error:8.1%} {s.p95_error:8.1%}"
            + ("" if s.held_out else "  on the fitted rows: none are left to check")
        )
    for c in sets:
        if "matmul" in c.fitted:
            print(
                f"{c.dtype}: start {c.start_ns / 1e3:.2f} µs, of peak: matrix {c.eta_matrix:.0%}, "
                f"DRAM {c.eta_dram:.0%}, shared cache {c.eta_l2:.0%}"
            )
