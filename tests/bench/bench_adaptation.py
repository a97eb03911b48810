"""What proposals to pad are worth: chosen by the model's prices, or by earlier measurements, judged by measured times.

    FUSETUI_CORPUS=<folder> python tests/bench/bench_adaptation.py [--seed 0] [--series N]

A series is one (N, K) with all its M measured; a point is one M. The measured optimum pads each M to the fastest
M' >= M of its series. Proposals come from `best_padding`:
- model: on prices of every M by constants fitted to 20 rows of the device;
- history: on the measured times of one half of the sources, judged by the other half (only points that both have).
`realised` is the time that the proposals save over the time that the optimum saves; `worse` are proposals that took
longer than not padding, `> 2 %` those beyond the repeatability of these measurements; `lost` is what the worse ones
cost over what the optimum saves; `found` is the share of points with more than 10 % to gain that a proposal improves.
The optimum is a minimum over noisy times, so that part of what it saves is not there to be had.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from fusetui.accelerator.calibrate import fit_rows, predict_ns, split_rows
from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.presets import load_hardware
from fusetui.accelerator.rows import MeasuredRows
from fusetui.analysis.mapping_adapt import best_padding

MARGINS = (0.0, 0.02, 0.05, 0.1, 0.2)
REACHES = (np.inf, 1.25)
TRAIN_ROWS = 20
LARGE = 1.1


@dataclass
class Score:
    """Sums over points, us."""

    proposals: int = 0
    worse: int = 0
    much_worse: int = 0
    saved: float = 0.0
    lost: float = 0.0

    def add(self, before: float, after: float) -> None:
        self.proposals += 1
        self.worse += after > before
        self.much_worse += after > 1.02 * before
        self.saved += before - after
        self.lost += max(after - before, 0.0)


def table(root: Path, device: str) -> pl.DataFrame:
    """One row per (n, k, m) and half of the sources: the median time, us."""
    raw = gzip.decompress((root / "gemm_measured.csv.gz").read_bytes())
    rows = pl.read_csv(io.BytesIO(raw), infer_schema_length=None)
    return rows.filter(pl.col("source").str.starts_with("vidur") & (pl.col("device") == device)).select(
        pl.col("N").alias("n"), pl.col("K").alias("k"), pl.col("M").alias("m"), "lat_us", "source"
    )


def optimum(measured: dict[int, float]) -> dict[int, float]:
    """Time that the measured optimum takes for each size of a series, us."""
    sizes = sorted(measured)
    best = np.minimum.accumulate(np.array([measured[m] for m in sizes])[::-1])[::-1]
    return dict(zip(sizes, best.tolist(), strict=True))


def judge(
    pairs: list[tuple[dict[int, float], dict[int, float]]], name: str, reach: float, margins: tuple[float, ...]
) -> None:
    """pairs: (times to choose by, times to judge by) per series, of the same sizes."""
    optima = [optimum(measured) for _, measured in pairs]
    best = sum(t - o[m] for (_, measured), o in zip(pairs, optima, strict=True) for m, t in measured.items())
    large = sum(t > LARGE * o[m] for (_, measured), o in zip(pairs, optima, strict=True) for m, t in measured.items())
    for margin in margins:
        score, found = Score(), 0
        for (chosen_by, measured), o in zip(pairs, optima, strict=True):
            for p in best_padding(chosen_by, margin, reach):
                score.add(measured[p.size], measured[p.pad_to])
                found += measured[p.size] > LARGE * o[p.size] and measured[p.pad_to] < measured[p.size]
        n = max(score.proposals, 1)
        print(
            f"  {name:8} reach {reach:5} margin {margin:4.2f}  proposals {score.proposals:6}  "
            f"realised {score.saved / best:7.1%}  lost {score.lost / best:6.1%}  found {found / max(large, 1):6.1%}  "
            f"worse {score.worse / n:6.1%}  > 2 % {score.much_worse / n:6.1%}"
        )


def prices(name: str, series: list[tuple[float, float, dict[int, float]]], seed: int) -> list[dict[int, float]]:
    """The model's time of every point of (n, k, sizes), fitted to 20 measured rows, us."""
    hw = load_hardware(name)
    points = np.array([(n, k, m, t) for n, k, times in series for m, t in times.items()], np.float64)
    n, k, m, lat = points.T
    columns = {"batch": np.ones_like(m), "m": m, "n": n, "k": k}
    rows = MeasuredRows("matmul", "fp16", np.full(len(m), "matmul"), columns, lat * 1e3)
    seen, _ = split_rows(rows, TRAIN_ROWS, seed)
    predicted = predict_ns(hw, fit_rows(hw, default_constants(hw, "fp16"), seen), rows) / 1e3
    error = np.abs(predicted / lat - 1)
    print(
        f"  model: fitted to {len(seen)} rows, error median {np.median(error):.1%}, p95 {np.quantile(error, 0.95):.1%}"
    )
    ends = np.cumsum([len(times) for _, _, times in series])
    parts = np.split(predicted, ends[:-1])
    return [dict(zip(times, part.tolist(), strict=True)) for (_, _, times), part in zip(series, parts, strict=True)]


def check(root: Path, device: str, series: list[dict[int, float]]) -> None:
    """Our reading of the table beside the reference's figures."""
    gains = []
    for measured in series:
        times = np.array([measured[m] for m in sorted(measured)])
        gains.append(times / np.minimum.accumulate(times[::-1])[::-1] - 1)
    gain = np.concatenate(gains)
    wanted = next(
        r for r in json.loads((root / "shape_adaptation_measured.json").read_text())["rows"] if r["device"] == device
    )
    print(
        f"  measured optimum: {len(gain)} points, mean gain {gain.mean():.2%}, share > 10 % {(gain > 0.1).mean():.4f}"
    )
    shares = f"{wanted['mean_gain_pct']} %, {wanted['frac_gain_gt_10pct']}"
    print(f"  (reference, of a superset of these shapes: {wanted['points']} points, {shares})")


def halves(rows: pl.DataFrame) -> list[tuple[dict[int, float], dict[int, float]]]:
    """Series measured twice: by sources of even and of odd rank, sizes that both have."""
    ranked = rows.with_columns(pl.col("source").rank("dense").over("n", "k", "m").mod(2).alias("half"))
    wide = (
        ranked.group_by("n", "k", "m")
        .agg(
            pl.col("lat_us").filter(pl.col("half") == 0).median().alias("even"),
            pl.col("lat_us").filter(pl.col("half") == 1).median().alias("odd"),
        )
        .drop_nulls()
        .sort("n", "k", "m")
    )
    return [
        (dict(zip(p["m"], p["odd"], strict=True)), dict(zip(p["m"], p["even"], strict=True)))
        for _, p in wide.group_by("n", "k", maintain_order=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--series", type=int, default=0, help="only so many series per device (0: all)")
    args = parser.parse_args()
    root = Path(os.environ["FUSETUI_CORPUS"]) / "reference/model"
    for device in ("A100", "H100"):
        print(device)
        rows = table(root, device)
        medians = rows.group_by("n", "k", "m").agg(pl.col("lat_us").median()).sort("n", "k", "m")
        series = [
            (float(key[0]), float(key[1]), dict(zip(p["m"].to_list(), p["lat_us"].to_list(), strict=True)))
            for key, p in medians.group_by("n", "k", maintain_order=True)
        ]
        check(root, device, [times for _, _, times in series])
        if args.series:
            series = [series[i] for i in np.random.default_rng(args.seed).permutation(len(series))[: args.series]]
        pairs = list(zip(prices(device, series, args.seed), [times for _, _, times in series], strict=True))
        again = halves(rows)
        for reach in REACHES:
            judge(pairs, "model", reach, MARGINS)
        print(f"  history: {len(again)} series measured twice, {sum(len(a) for a, _ in again)} points")
        for reach in REACHES if again else ():
            judge(again, "history", reach, MARGINS)


if __name__ == "__main__":
    main()
