"""Calibration: constants recovered from rows the model made, files, errors, and the command."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fusetui.accelerator.calibrate import calibrate, predict_ns, split_rows
from fusetui.accelerator.constants import (
    UNCALIBRATED_ERROR,
    Constants,
    default_constants,
    load_constants,
    plan_error,
    save_constants,
)
from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.host import one_core
from fusetui.accelerator.presets import load_hardware
from fusetui.accelerator.rows import MeasuredRows, read_rows
from fusetui.cli import main

L4 = load_hardware("L4")
TRUE = dataclasses.replace(
    default_constants(L4, "fp16"),
    start_ns=6000.0,
    eta_matrix=0.6,
    eta_dram=0.88,
    attention_start_ns=12000.0,
    attention_eta_matrix=0.4,
    vector_start_ns=3500.0,
)


def write_rows(path: Path, constants: Constants = TRUE, noise: float = 0.03) -> Path:
    """Times of shapes of our own choosing on a device with known constants, with some noise."""
    random = np.random.default_rng(4)
    lines = ["op,dtype,latency_us,batch,m,n,k,q_heads,kv_heads,q_len,kv_len,head_dim,causal,bytes_in,bytes_out,rows"]
    for family in ("matmul", "attention", "vector"):
        for _ in range(60):
            m, n, k = (int(2 ** random.uniform(4, 12.5)) for _ in range(3))
            cells = {
                "matmul": f"matmul,fp16,@,1,{m},{n},{k},,,,,,,,,",
                "attention": f"attention,fp16,@,{1 + m % 8},,,,32,8,{min(n, k)},{k},128,true,,,",
                "vector": f"{('add', 'norm')[m % 2]},fp16,@,,,,,,,,,,,{m * n * 2},{m * n * 2},{m}",
            }[family]
            lines.append(cells)
    path.write_text("\n".join(line.replace("@", "1") for line in lines))
    times = np.concatenate([predict_ns(L4, constants, rows) for rows in read_rows(path)]) / 1e3
    times *= np.exp(random.normal(0, noise, len(times)))
    path.write_text("\n".join([lines[0], *(r.replace("@", f"{t:.4f}") for r, t in zip(lines[1:], times, strict=True))]))
    return path


def test_constants_come_back_from_twenty_rows(tmp_path: Path) -> None:
    sets, scores = calibrate(L4, read_rows(write_rows(tmp_path / "rows.csv")), train=20, seed=1)
    (found,) = sets
    assert found.calibrated
    assert set(found.fitted) == {"matmul", "attention", "vector"}
    assert found.rows == 60
    for score in scores:
        assert (score.train, score.held_out) == (20, 40)
        assert score.median_error < 0.06, score
    assert found.eta_dram == pytest.approx(0.88, rel=0.1)
    assert found.eta_matrix == pytest.approx(0.6, rel=0.1)
    assert found.attention_eta_matrix == pytest.approx(0.4, rel=0.15)
    assert 0 < found.median_error < 0.06


def test_rows_that_the_host_paced_are_told_from_those_it_did_not(tmp_path: Path) -> None:
    # At 80 us a call most of these shapes hide behind the host; without a pace none of them do.
    for pace_ns in (80_000.0, 0.0):
        true = dataclasses.replace(TRUE, pace_ns=pace_ns)
        products = read_rows(write_rows(tmp_path / "rows.csv", true))[:1]
        (found,), (score,) = calibrate(L4, products, train=20, seed=1)
        assert found.pace_ns == pytest.approx(pace_ns, rel=0.05)
        assert score.median_error < 0.06
        save_constants(tmp_path / "saved.json", [found])
        assert load_constants(tmp_path / "saved.json", "fp16").pace_ns == found.pace_ns


def test_the_same_seed_gives_the_same_constants(tmp_path: Path) -> None:
    groups = read_rows(write_rows(tmp_path / "rows.csv"))[:1]
    assert calibrate(L4, groups, 12, 7) == calibrate(L4, groups, 12, 7)
    assert calibrate(L4, groups, 12, 7)[0] != calibrate(L4, groups, 12, 8)[0]


def test_rows_to_fit_on_span_what_there_is() -> None:
    side = 2.0 ** np.arange(4, 13)
    m, n, k = (axis.ravel() for axis in np.meshgrid(side, side, side))
    rows = MeasuredRows("matmul", "fp16", np.full(len(m), "matmul"), {"batch": m * 0 + 1, "m": m, "n": n, "k": k}, m)
    for seed in range(5):
        seen, _ = split_rows(rows, 20, seed)
        least = np.minimum(np.minimum(seen.columns["m"], seen.columns["n"]), seen.columns["k"])
        work = seen.columns["m"] * seen.columns["n"] * seen.columns["k"]
        # Half of the rows are due ten of the twenty; drawn at random, five or six are nothing unusual.
        for values, everything in ((least, np.minimum(np.minimum(m, n), k)), (work, m * n * k)):
            for low in (0.0, 0.5):
                edges = np.quantile(everything, [low, low + 0.5])
                assert ((values >= edges[0]) & (values <= edges[1])).sum() >= 7, seed


def test_families_state_their_own_errors(tmp_path: Path) -> None:
    (found,), scores = calibrate(L4, read_rows(write_rows(tmp_path / "rows.csv")), train=20, seed=1)
    assert set(found.family_median) == set(found.family_p95) == {"matmul", "attention", "vector"}
    for score in scores:
        assert found.family_median[score.family] == pytest.approx(score.median_error, rel=0.15)
        assert found.family_p95[score.family] > found.family_median[score.family]


def test_error_of_a_plan_is_that_of_its_mix() -> None:
    c = dataclasses.replace(TRUE, family_median={"matmul": 0.05, "vector": 0.1}, family_p95={"matmul": 0.2})
    assert plan_error(c, {"matmul": 300.0, "vector": 100.0}) == pytest.approx(0.0625)
    assert plan_error(c, {"matmul": 300.0, "attention": 100.0}) == pytest.approx(0.1125)
    assert plan_error(c, {"matmul": 1.0, "vector": 1.0}, "p95") == pytest.approx((0.2 + 0.6) / 2)
    assert plan_error(c, {}) == UNCALIBRATED_ERROR
    assert plan_error(TRUE, {"vector": 5.0}) == UNCALIBRATED_ERROR


def test_without_rows_to_spare_the_error_is_of_folds(tmp_path: Path) -> None:
    rows = read_rows(write_rows(tmp_path / "rows.csv", noise=0.2))[0]
    few = rows.take(np.arange(20))
    _, (score,) = calibrate(L4, [few], train=20)
    assert (score.train, score.held_out) == (20, 0)
    # The noise has a median of 13 %; eight constants fitted to twenty rows would show less on those rows.
    assert score.median_error > 0.1


def test_training_rows_are_never_scored(tmp_path: Path) -> None:
    rows = read_rows(write_rows(tmp_path / "rows.csv"))[0]
    seen, unseen = split_rows(rows, 15, 3)
    assert sorted([*seen.latency_ns, *unseen.latency_ns]) == sorted(rows.latency_ns)
    assert (len(seen), len(unseen)) == (15, 45)


def test_defaults_say_that_they_are_not_calibrated() -> None:
    plain = default_constants(L4, "fp16")
    assert not plain.calibrated
    assert plain.median_error == UNCALIBRATED_ERROR == 0.30


def test_constants_survive_their_file(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    both = [TRUE, dataclasses.replace(TRUE, dtype="bf16", fitted=("matmul",))]
    save_constants(path, both)
    assert load_constants(path, "fp16") == TRUE
    assert load_constants(path, "bf16") == both[1]
    with pytest.raises(AcceleratorError, match="for any dtype; it holds fp16, bf16"):
        load_constants(path)


def test_files_of_earlier_versions_take_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    save_constants(path, [dataclasses.replace(TRUE, cast_eta=0.9, family_median={"matmul": 0.1})])
    (table,) = json.loads(path.read_text())
    for name in ("cast_eta", "cast_row_ns", "attention_packed", "family_median", "family_p95"):
        del table[name]
    path.write_text(json.dumps([table]))
    assert load_constants(path).cast_eta == 0.5
    assert load_constants(path).family_median == {}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"eta_dram": "fast"}, "key eta_dram: must be float, not 'fast'"),
        ({"start_ns": -1}, "key start_ns: must be float, not -1"),
        ({"vector_eta": {}}, "key vector_eta: must give every class"),
        ({"family_p95": [0.1]}, "key family_p95: must be a table of numbers"),
        ({"family_p95": {"matmul": "much"}}, "key family_p95.matmul: must be float, not 'much'"),
        ({"extra": 1}, "key extra: not known"),
    ],
)
def test_wrong_constants_are_named(tmp_path: Path, change: dict[str, object], problem: str) -> None:
    path = tmp_path / "c.json"
    save_constants(path, [TRUE])
    path.write_text(json.dumps([json.loads(path.read_text())[0] | change]))
    with pytest.raises(AcceleratorError) as error:
        load_constants(path)
    assert str(error.value).startswith(f"{path}: {problem}")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("op,m,n,k\nmatmul,1,1,1\n", "column dtype: missing"),
        ("op,dtype,latency_us,m,n,k\nmatmul,fp16,1,8,0,8\n", "line 2: column n: '0'"),
        ("op,dtype,latency_us,m,n,k\nmatmul,fp16,inf,8,8,8\n", "line 2: column latency_us: 'inf'"),
        ("op,dtype,latency_us\nmatmul,fp16,3\n", "line 2: column m: ''"),
        ("op,dtype,latency_us\nflip,fp16,3\n", "line 2: op 'flip' is not known"),
        ("op,dtype,latency_us\n", "holds no rows"),
    ],
)
def test_wrong_rows_are_named(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text)
    with pytest.raises(AcceleratorError, match=problem):
        read_rows(path)


def test_columns_are_read_with_their_defaults_and_names(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("latency_us,op,m,n,k,dtype\n2.5,GEMM,8,16,32,bfloat16\n3,linear,1,2,3,bf16\n")
    (rows,) = read_rows(path)
    assert (rows.family, rows.dtype, rows.latency_ns.tolist()) == ("matmul", "bf16", [2500, 3000])
    assert {name: column.tolist() for name, column in rows.columns.items()} == {
        "batch": [1, 1],
        "m": [8, 1],
        "n": [16, 2],
        "k": [32, 3],
    }


def test_too_few_rows() -> None:
    one = np.ones(3)
    rows = MeasuredRows("matmul", "fp16", np.array(["matmul"] * 3), dict.fromkeys(("batch", "m", "n", "k"), one), one)
    with pytest.raises(AcceleratorError, match="1 rows of matmul fp16 to fit on; at least 4 are needed"):
        calibrate(L4, [rows])


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, out = write_rows(tmp_path / "rows.csv"), tmp_path / "c.json"
    assert main(["calibrate", str(rows), "--hardware", "L4", "--train", "20", "-o", str(out), "--json"]) == 0
    table = json.loads(capsys.readouterr().out)
    assert [s["family"] for s in table["scores"]] == ["matmul", "attention", "vector"]
    assert load_constants(out, "fp16").calibrated
    assert main(["calibrate", str(rows), "--hardware", "L4"]) == 0
    assert "held out" in capsys.readouterr().out
    assert main(["calibrate", str(rows), "--hardware", "L5"]) == 3
    assert "'L5' is not known" in capsys.readouterr().err


@pytest.mark.skipif(not os.environ.get("FUSETUI_CORPUS"), reason="FUSETUI_CORPUS is not set")
def test_public_measurements_are_met_from_twenty_rows() -> None:
    bench = Path(__file__).parents[1] / "bench" / "bench_model.py"
    command = [sys.executable, str(bench), "--seeds", "2", "--only", "gemm vidur"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout.splitlines()
    lines = [line for line in printed if "gemm vidur" in line]
    assert len(lines) == 4
    for line in lines:
        figures = [float(word) for word in line.split("fp16")[1].split()]
        # rows, then uncalibrated median and p95, which sums of a block do not have
        median, p95 = figures[1:3] if "sum" in line else figures[3:5]
        limit = (6, 20) if "sum" in line else (8, 25)
        assert median <= limit[0], line
        assert p95 <= limit[1], line


def test_this_machine_can_be_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "host.json"
    assert main(["calibrate", "host", "--hardware", "host", "-o", str(out), "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert [(s["family"], s["dtype"], s["train"]) for s in scores] == [("matmul", "fp32", 20), ("vector", "fp32", 20)]
    assert load_constants(out).hardware == "host"


def test_one_core_has_its_share_of_the_machine() -> None:
    host = load_hardware("host")
    one = one_core(host)
    assert one.cores == 1
    assert one.rate("fp32") * host.cores == pytest.approx(host.rate("fp32"))
    assert one.l2_bytes_per_s * host.cores == pytest.approx(host.l2_bytes_per_s)
    # Eight cores draw all the bandwidth there is: more of them share it.
    assert one.dram_bytes_per_s == pytest.approx(host.dram_bytes_per_s / min(host.cores, 8))
