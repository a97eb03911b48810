"""How far the accelerator model is from public kernel measurements: one table over everything in the corpus.

    FUSETUI_CORPUS=<folder> python tests/bench/bench_model.py [--seeds 3] [--only TEXT]

Every line is fitted on at most 20 rows per (device, dtype, family) and scored on the others, once per seed; the
figures are means over seeds, in percent, `worst` is the worst median. `none` is the error of the datasheet numbers
alone. `in bar`: share of rows whose time lies within the p95 that a calibration on some sixty rows states.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import io
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from fusetui.accelerator.calibrate import fit_rows, predict_ns, relative_errors, split_rows
from fusetui.accelerator.constants import Constants, default_constants
from fusetui.accelerator.hardware import Hardware
from fusetui.accelerator.presets import load_hardware
from fusetui.accelerator.rows import FAMILIES, MeasuredRows

BAR_ROWS = 40
MOST_HELD_OUT = 2500  # rows scored per line; a seeded sample of the rest keeps two cores at this for seconds

# Devices of the corpus that have no preset of their own: the nearest one with its published figures.
DEVICES = {
    "A100": ("A100", {}),
    "H100": ("H100", {}),
    "A100-PCIE-40GB": ("A100", {"dram_bytes_per_s": 1.555e12}),
    "A100-PCIE-80GB": ("A100", {"dram_bytes_per_s": 1.935e12}),
    "V100": (
        "A100",
        {
            "cores": 80,
            "matrix_flops": {"fp32": 14e12},
            "vector_flops": {"fp32": 14e12},
            "dram_bytes_per_s": 900e9,
            "l2_bytes": 6 << 20,
            "l2_bytes_per_s": 2.5e12,
            "sram_bytes_per_core": 96 << 10,
        },
    ),
    "P100": (
        "A100",
        {
            "cores": 56,
            "matrix_flops": {"fp32": 9.3e12},
            "vector_flops": {"fp32": 9.3e12},
            "dram_bytes_per_s": 732e9,
            "l2_bytes": 4 << 20,
            "l2_bytes_per_s": 1.6e12,
            "sram_bytes_per_core": 64 << 10,
        },
    ),
    "MI210": (
        "MI300X",
        {
            "cores": 104,
            "matrix_flops": {"fp16": 181e12, "fp32": 45.3e12},
            "vector_flops": {"fp32": 22.6e12},
            "dram_bytes_per_s": 1.638e12,
            "l2_bytes": 8 << 20,
            "l2_bytes_per_s": 3.5e12,
        },
    ),
    "MI300X": ("MI300X", {}),
    "Wormhole": ("Wormhole", {}),
    "Blackhole": ("Blackhole", {}),
}
NEUSIGHT = {
    "NVIDIA A100-PCIE-40GB": "A100-PCIE-40GB",
    "NVIDIA A100 80GB PCIe": "A100-PCIE-80GB",
    "Tesla V100-PCIE-32GB": "V100",
    "Tesla P100-PCIE-16GB": "P100",
}


def device(name: str) -> Hardware:
    base, changes = DEVICES[name]
    return dataclasses.replace(load_hardware(base), **changes)


def rows_of(family: str, dtype: str, latency_us: np.ndarray, ops: object = None, **columns: object) -> MeasuredRows:
    count = len(latency_us)
    full = {n: np.broadcast_to(np.asarray(columns.get(n, d), float), count) for n, d in FAMILIES[family].items()}
    names = np.broadcast_to(np.asarray(family if ops is None else ops), count)
    keep = np.isfinite(latency_us) & (latency_us > 0)
    return MeasuredRows(family, dtype, names, full, latency_us * 1e3).take(np.flatnonzero(keep))


def gemm_table(root: Path) -> pl.DataFrame:
    raw = gzip.decompress((root / "gemm_measured.csv.gz").read_bytes())
    return pl.read_csv(io.BytesIO(raw), infer_schema_length=None)


def gemm_sets(root: Path) -> Iterator[tuple[str, str, MeasuredRows]]:
    table = gemm_table(root).with_columns(
        pl.when(pl.col("source").str.starts_with("tracelens"))
        .then(pl.lit("tracelens"))
        .otherwise(pl.col("source").str.split(":").list.first())
        .alias("set")
    )
    for key, part in sorted(table.group_by("set", "device", "dtype"), key=lambda item: item[0]):
        source, name, dtype = (str(k) for k in key)
        if name in DEVICES and len(part) >= 20:
            b, m, n, k, lat = (part[c].to_numpy() for c in ("B", "M", "N", "K", "lat_us"))
            yield f"gemm {source}", name, rows_of("matmul", dtype, lat, batch=b, m=m, n=n, k=k)
    for path in sorted((root / "measured/aiconfigurator").glob("*_gemm_perf.parquet")):
        table = pl.read_parquet(path)
        source = f"gemm grid {path.name.split('_')[3]}"
        for (dtype,), part in sorted(table.group_by("gemm_dtype")):
            if dtype in ("bfloat16", "fp8", "fp8_block"):
                m, n, k, lat = (part[c].to_numpy() for c in ("m", "n", "k", "latency"))
                short = "bf16" if dtype == "bfloat16" else "fp8"
                yield (
                    source + str(dtype).removeprefix("bfloat16").removeprefix("fp8"),
                    path.name[:4].upper(),
                    rows_of("matmul", short, lat * 1e3, m=m, n=n, k=k),
                )


def tensix_sets(root: Path) -> Iterator[tuple[str, str, MeasuredRows]]:
    """Products of Tenstorrent profiles whose operands are in device memory, by device and type of the weights."""
    rows: dict[tuple[str, str], list[list[float]]] = {}
    for path in sorted((root / "measured/tenstorrent").glob("*.csv")):
        name = "Wormhole" if path.name.startswith("wh") else "Blackhole"
        for row in pl.read_csv(path, infer_schema=False).iter_rows(named=True):
            dtype = {"BFLOAT16": "bf16", "BFLOAT8_B": "fp8"}.get(row.get("INPUT_1_DATATYPE") or "")
            memory = row.get("INPUT_1_MEMORY") or ""
            if "matmul" not in row["OP CODE"].lower() or not dtype or "DRAM" not in memory:
                continue
            w, z, y, x, n = (
                float(row.get(k + "_PAD[LOGICAL]", row.get(k)).split("[")[0])
                for k in ("INPUT_0_W", "INPUT_0_Z", "INPUT_0_Y", "INPUT_0_X", "INPUT_1_X")
            )
            rows.setdefault((name, dtype), []).append([w * z * y, n, x, float(row["DEVICE KERNEL DURATION [ns]"])])
    for (name, dtype), table in sorted(rows.items()):
        if len(table) >= 20:
            m, n, k, ns = np.array(table).T
            yield "gemm tenstorrent", name, rows_of("matmul", dtype, ns / 1e3, m=m, n=n, k=k)


def attention_sets(root: Path) -> Iterator[tuple[str, str, MeasuredRows]]:
    for path in sorted((root / "measured/aiconfigurator").glob("*_attention_perf.parquet")):
        table = pl.read_parquet(path)
        if "window_size" in table.columns:
            table = table.filter(pl.col("window_size") == 0)
        if "kv_cache_dtype" in table.columns:
            table = table.filter(pl.col("kv_cache_dtype") == "bfloat16")
        kind = next(k for k in ("context", "generation", "encoder") if k in path.name)
        heads, isl = table["num_heads"].to_numpy(), table["isl"].to_numpy()
        step = table["step"].to_numpy() if "step" in table.columns else np.zeros_like(isl)
        rows = rows_of(
            "attention",
            "bf16",
            table["latency"].to_numpy() * 1e3,
            batch=table["batch_size"].to_numpy(),
            q_heads=heads,
            kv_heads=table["num_key_value_heads"].to_numpy() if "num_key_value_heads" in table.columns else heads,
            q_len=np.ones_like(isl) if kind == "generation" else isl,
            kv_len=isl + step,
            head_dim=table["head_dim"].to_numpy(),
            causal=float(kind != "encoder"),
        )
        yield f"attention {kind}", path.name[:4].upper(), rows


def vector_sets(root: Path) -> Iterator[tuple[str, str, MeasuredRows]]:
    for name, part in vidur_tables(root).items():
        yield "vector vidur", name, part
    elem = pl.read_csv(root / "measured/neusight/test_elem.csv", infer_schema_length=None)
    for long, short in NEUSIGHT.items():
        part = elem.filter(pl.col("Device") == long)
        two = part["OPName"].is_in(["add", "mul", "div", "pow"]).to_numpy()
        size = (part["B"] * part["H"]).to_numpy() * 4.0
        ops = np.where(two, "add", "elementwise")
        lat = part["Latency"].to_numpy() * 1e3
        yield "vector neusight", short, rows_of("vector", "fp32", lat, ops, bytes_in=size * (1 + two), bytes_out=size)
        for file, op in (("ln", "layernorm"), ("softmax", "softmax")):
            table = pl.read_csv(root / f"measured/neusight/test_{file}.csv").filter(pl.col("Device") == long)
            b, h = table["B"].to_numpy().astype(float), table["H"].to_numpy()
            lat = table["Latency"].to_numpy() * 1e3
            size = b * h * 4.0
            yield f"{op} neusight", short, rows_of("vector", "fp32", lat, op, bytes_in=size, bytes_out=size, rows=b)


def llmcompass_sets(root: Path) -> Iterator[tuple[str, str, MeasuredRows]]:
    """Elements per second of GELU, LayerNorm and softmax, fp16, of shape (rows, length)."""
    for name in ("A100", "MI210"):
        for file, op in (("gelu", "elementwise"), ("layernorm", "layernorm"), ("softmax", "softmax")):
            table = (
                pl.read_csv(root / f"measured/llmcompass/{file}_{name}.csv", has_header=False).to_numpy().astype(float)
            )
            *shape, rate = (np.array([float(v) for v in column]) for column in table.T)
            count = np.prod(shape, axis=0)
            size, rows = 2 * count, shape[0] if len(shape) > 1 else 0.0
            parts = {"bytes_in": size, "bytes_out": size, "rows": rows}
            yield f"{op} llmcompass", name, rows_of("vector", "fp16", count / rate / 1e3, op, **parts)


def vidur_tables(root: Path) -> dict[str, MeasuredRows]:
    """Row-wise operators of the vidur layers; embeddings are left out (a look-up of random rows, no stated order)."""
    found: dict[str, list[dict[str, object]]] = {}
    for path in sorted((root / "measured/vidur").glob("*_mlp.csv")):
        for r in pl.read_csv(path, infer_schema_length=None).iter_rows(named=True):
            t, e, tp = float(r["num_tokens"]), r["n_embd"], r["num_tensor_parallel_workers"]
            ff, hd = r["n_expanded_embd"] / tp, e / r["n_head"]
            rope = t * (r["n_head"] + r["n_kv_head"]) / tp * hd * 2
            for op, name, read, written, rows in (
                ("norm", "input_layernorm", 2 * t * e, 2 * t * e, t),
                ("norm", "post_attention_layernorm", 2 * t * e, 2 * t * e, t),
                ("rope", "attn_rope", rope, rope, t),
                ("gated", "mlp_act", 4 * t * ff, 2 * t * ff, t),
                ("add", "add", 4 * t * e, 2 * t * e, 0.0),
            ):
                latency = r[f"time_stats.{name}.median"]
                if latency:
                    row = {"op": op, "in": read, "out": written, "rows": rows, "us": latency * 1e3}
                    found.setdefault(path.name[:4].upper(), []).append(row)
    tables = {name: pl.DataFrame(rows) for name, rows in found.items()}
    return {
        name: rows_of(
            "vector",
            "fp16",
            t["us"].to_numpy(),
            t["op"].to_numpy(),
            bytes_in=t["in"].to_numpy(),
            bytes_out=t["out"].to_numpy(),
            rows=t["rows"].to_numpy(),
        )
        for name, t in tables.items()
    }


def percent(error: np.ndarray) -> tuple[float, float]:
    return 100 * float(np.median(error)), 100 * float(np.quantile(error, 0.95))


def score(
    hw: Hardware, rows: MeasuredRows, seeds: int
) -> tuple[np.ndarray, np.ndarray, float, dict[str, float], float]:
    """(uncalibrated median and p95; calibrated ones and share within the stated p95, means over seeds; worst median;
    median per class; seconds per fit)."""
    plain = default_constants(hw, rows.dtype)
    results, per_class, spent, within = [], {}, 0.0, []
    for seed in range(seeds):
        seen, unseen = split_rows(rows, None, seed)
        began = time.perf_counter()
        fitted = fit_rows(hw, plain, seen)
        spent += time.perf_counter() - began
        if len(unseen) > MOST_HELD_OUT:
            at = np.random.default_rng(seed).choice(len(unseen), MOST_HELD_OUT, replace=False)
            unseen = unseen.take(np.sort(at))
        off = unseen.latency_ns / predict_ns(hw, fitted, unseen)
        error, bar = np.abs(1 / off - 1), np.abs(off - 1)
        # What calibrating on some sixty rows would state as p95, and how many of the others lie within it.
        checked = np.random.default_rng(seed).permutation(len(bar)) < min(BAR_ROWS, len(bar) // 2)
        within.append(np.mean(bar[~checked] <= np.quantile(bar[checked], 0.95)) if len(bar) > 20 else np.nan)
        results.append(percent(error))
        for op in np.unique(unseen.ops) if rows.family == "vector" else ():
            per_class.setdefault(str(op), []).append(percent(error[unseen.ops == op])[0])
    base = percent(relative_errors(hw, plain, unseen))
    medians = {op: float(np.mean(values)) for op, values in per_class.items()}
    fitted_errors = [*np.mean(results, axis=0), 100 * float(np.mean(within))]
    return np.array(base), np.array(fitted_errors), np.array(results)[:, 0].max(), medians, spent / seeds


def block_sums(root: Path, seeds: int) -> None:
    """Sum of the four products of a layer, fitted on 20 rows of the same source."""
    table = gemm_table(root).filter(pl.col("source").str.starts_with("vidur"))
    parts = table["source"].str.split(":")
    table = table.with_columns(
        parts.list.get(1).alias("model"), parts.list.get(2).alias("tp"), parts.list.get(3).alias("part")
    )
    for (name,), part in sorted(table.group_by("device")):
        b, m, n, k, lat = (part[c].to_numpy() for c in ("B", "M", "N", "K", "lat_us"))
        rows, hw = rows_of("matmul", "fp16", lat, batch=b, m=m, n=n, k=k), device(str(name))
        results = []
        for seed in range(seeds):
            plain = default_constants(hw, "fp16")
            seen, _ = split_rows(rows, None, seed)
            results.append(percent(sum_errors(hw, fit_rows(hw, plain, seen), part, rows)))
        median, p95 = np.mean(results, axis=0)
        print(
            f"{'sum of a block gemm vidur':28} {name:16} {'fp16':5} {len(part) // 4:7} {'':13} {median:6.1f} {p95:6.1f}"
        )


def sum_errors(hw: Hardware, constants: Constants, table: pl.DataFrame, rows: MeasuredRows) -> np.ndarray:
    sums = (
        table.with_columns(pl.Series("predicted", predict_ns(hw, constants, rows) / 1e3))
        .group_by("model", "tp", "M", "part")
        .agg(pl.col("predicted").mean(), pl.col("lat_us").mean())
        .group_by("model", "tp", "M")
        .agg(pl.col("predicted").sum(), pl.col("lat_us").sum(), pl.len())
        .filter(pl.col("len") == 4)
    )
    return np.abs(sums["predicted"].to_numpy() / sums["lat_us"].to_numpy() - 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="only sets whose name holds this")
    options = parser.parse_args()
    corpus = os.environ.get("FUSETUI_CORPUS")
    if not corpus:
        print("FUSETUI_CORPUS is not set", file=sys.stderr)
        return 2
    root = Path(corpus) / "reference" / "model"
    columns = ("none", "p95", "fitted", "p95", "worst", "in bar", "fit s")
    print(f"{'set':28} {'device':16} {'dtype':5} {'rows':>7} " + " ".join(f"{column:>6}" for column in columns))
    plain: dict[str, list[tuple[int, float]]] = {}
    for sets in (gemm_sets, tensix_sets, attention_sets, vector_sets, llmcompass_sets):
        for name, dev, rows in sets(root):
            if options.only not in name:
                continue
            base, fitted, worst, classes, seconds = score(device(dev), rows, options.seeds)
            if "llmcompass" not in name:  # wall clock, with the launch: no error of a kernel's time
                plain.setdefault(dev, []).append((len(rows), base[0]))
            detail = " ".join(f"{op} {value:.1f}" for op, value in classes.items())
            print(
                f"{name:28} {dev:16} {rows.dtype:5} {len(rows):7} {base[0]:6.1f} {base[1]:6.1f} "
                f"{fitted[0]:6.1f} {fitted[1]:6.1f} {worst:6.1f} {fitted[2]:6.0f} {seconds:6.2f} {detail}",
                flush=True,
            )
    if options.only in "sum of a block gemm vidur":
        block_sums(root, options.seeds)
    print(f"\nuncalibrated, by device: {'median':>8} {'worst set':>10}  flagged as not calibrated")
    for name, sets_of_device in sorted(plain.items()):
        medians = [median for _, median in sets_of_device]
        flag = not default_constants(device(name), "fp32").calibrated
        print(f"{name:25} {np.median(medians):7.1f} {max(medians):10.1f}  {'yes' if flag else 'NO'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
