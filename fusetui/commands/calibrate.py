"""`fusetui calibrate`: fit the model's constants to measured kernels and say how far off it is on the others."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fusetui.accelerator.calibrate import (
    TRAIN_ROWS,
    Score,
    calibrate,
    fit_rows,
    relative_errors,
    with_family,
)
from fusetui.accelerator.constants import Constants, constants_table, default_constants, save_constants
from fusetui.accelerator.grid import Floats
from fusetui.accelerator.hardware import Hardware
from fusetui.accelerator.host import one_core
from fusetui.accelerator.measure_host import measure_host
from fusetui.accelerator.presets import HOST, load_hardware
from fusetui.accelerator.rows import MeasuredRows, read_rows
from fusetui.analysis.recover.measured import halves
from fusetui.commands.inputs import capture_path, say
from fusetui.commands.output import in_the_way
from fusetui.commands.plan_trace import recovery_of
from fusetui.telemetry.errors import TelemetryError

EXIT_USAGE = 2
_LEAST_ROWS = 4
_FOLDS = 4


def run(args: argparse.Namespace) -> int:
    """Print the errors on rows not seen; write the constants where `-o` says. Returns the exit code."""
    rows = [] if args.rows == HOST else [capture_path(args.rows)]
    if args.output and (problem := in_the_way(Path(args.output), rows, force=args.force)):
        say(f"fusetui: {problem}")
        return EXIT_USAGE
    hardware = load_hardware(args.hardware)
    before: dict[str, float] = {}
    apart: dict[str, float] = {}
    if args.rows == HOST:
        sets, scores = calibrate(one_core(hardware), measure_host(), args.train or TRAIN_ROWS, args.seed)
    elif _is_table(args.rows):
        sets, scores = calibrate(hardware, read_rows(Path(args.rows)), args.train, args.seed)
    else:
        sets, scores, before, apart = calibrate_trace(hardware, capture_path(args.rows))
    if args.output:
        try:
            save_constants(Path(args.output), sets)
        except OSError as error:
            raise TelemetryError(args.output, f"cannot be written: {error.strerror}") from None
    if args.json:
        known = {"uncalibrated_median_error": before, "left_out_median_error": apart} if before else {}
        table = {
            "hardware": hardware.name,
            "seed": args.seed,
            "scores": [dataclasses.asdict(score) for score in scores],
            **known,
            "constants": [constants_table(constants) for constants in sets],
        }
        print(json.dumps(table, indent=2))
    else:
        _print(hardware.title, scores, sets, before, apart)
    return 0


def _is_table(name: str) -> bool:
    """Whether it is to be read as CSV: a capture is told by its content, and what cannot be read is a table's error."""
    path = Path(name)
    if name.startswith("sample:") or path.suffix == ".csv" or not path.is_file():
        return not name.startswith("sample:")
    try:
        with path.open("rb") as file:
            return b"latency_us" in file.readline(4096)
    except OSError:
        return True


def calibrate_trace(
    hardware: Hardware, path: Path
) -> tuple[list[Constants], list[Score], dict[str, float], dict[str, float]]:
    """Fit on the first half of the runs of a capture's operators, score on the second half.

    Returns constants, scores, and per family the median error on the second half before anything was fitted, and of
    fits that had not seen the shape. The scores tell of these operators; the error bar of the constants is that
    of shapes left out, because a plan is of others.
    """
    recovery = recovery_of(path)
    first, second = halves(recovery)
    dtype = recovery.captured.dtype
    plain = fitted = default_constants(hardware, dtype)
    scores: list[Score] = []
    before: dict[str, float] = {}
    apart: dict[str, float] = {}
    errors = []
    for seen, unseen in zip(first, second, strict=True):
        if len(seen) < _LEAST_ROWS:
            continue
        before[seen.family] = float(np.median(relative_errors(hardware, plain, unseen)))
        fitted = fit_rows(hardware, fitted, seen)
        error = relative_errors(hardware, fitted, unseen)
        median, p95 = float(np.median(error)), float(np.quantile(error, 0.95))
        scores.append(Score(seen.family, dtype, len(seen), len(unseen), median, p95))
        errors.append(_left_out(hardware, plain, seen, unseen))
        apart[seen.family] = float(np.median(errors[-1]))
        fitted = with_family(fitted, seen.family, len(seen), 1 + errors[-1])
    if not scores:
        most = max((len(rows) for rows in first), default=0)
        what = f"{most} operators of one kind that ran more than once"
        raise TelemetryError(str(path), what, f"at least {_LEAST_ROWS} are needed to fit on")
    both = np.concatenate(errors)
    median, p95 = float(np.median(both)), float(np.quantile(both, 0.95))
    return [dataclasses.replace(fitted, median_error=median, p95_error=p95)], scores, before, apart


def _left_out(hardware: Hardware, plain: Constants, seen: MeasuredRows, unseen: MeasuredRows) -> Floats:
    """Errors on the second half of the runs of constants fitted to the first half of the runs of other shapes.

    Where there is one shape only, nothing else can be fitted to: the errors are those of the constants as they were.
    """
    kinds = np.unique(seen.ops, return_inverse=True)[1]
    shapes = np.column_stack([kinds, *seen.columns.values()])
    fold = np.unique(shapes, axis=0, return_inverse=True)[1].ravel() % _FOLDS
    if not fold.any():
        return relative_errors(hardware, plain, unseen)
    found = np.zeros(len(seen))
    for number in np.unique(fold):
        out = np.flatnonzero(fold == number)
        fitted = fit_rows(hardware, plain, seen.take(np.flatnonzero(fold != number)))
        found[out] = relative_errors(hardware, fitted, unseen.take(out))
    return found


def _print(
    title: str,
    scores: Sequence[Score],
    sets: Sequence[Constants],
    before: Mapping[str, float],
    apart: Mapping[str, float],
) -> None:
    print(title)
    print(f"{'rows':10} {'dtype':6} {'fitted':>7} {'held out':>9} {'median':>8} {'p95':>8}")
    uncalibrated = {
        family: f"  {error:.1%} before, {apart[family]:.1%} on shapes left out" for family, error in before.items()
    }
    for s in scores:
        print(
            f"{s.family:10} {s.dtype:6} {s.train:7} {s.held_out:9} {s.median_error:8.1%} {s.p95_error:8.1%}"
            + uncalibrated.get(s.family, "")
            + ("" if s.held_out else "  of fits on the other four fifths of them: none are left to check")
        )
    if before:
        print("fitted on the first half of the runs, held out is the second half of the same operators")
    for c in sets:
        if "matmul" in c.fitted:
            print(
                f"{c.dtype}: start {c.start_ns / 1e3:.2f} µs, of peak: matrix {c.eta_matrix:.0%}, "
                f"DRAM {c.eta_dram:.0%}, shared cache {c.eta_l2:.0%}"
            )
