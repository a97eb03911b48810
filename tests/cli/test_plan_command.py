"""`fusetui plan`: the three forms of the worksheet, and errors that name what is wrong."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from fusetui.accelerator.constants import default_constants, save_constants
from fusetui.accelerator.presets import load_hardware
from fusetui.cli import main

TOTALS = {
    "predicted_ns", "predicted_error", "launches", "exposed_launch_ns", "dram_bytes", "dram_lower_bound_bytes",
    "peak_bytes", "burst",
}  # fmt: skip
GROUP = {
    "ops", "tile", "bottleneck_before", "bottleneck", "predicted_ns", "dram_bytes", "reuse_factor", "reuse_ratio",
    "occupancy", "waves", "spill_bytes",
}  # fmt: skip


def test_json_has_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["plan", "transformer-prefill", "--shapes", "model=gpt2,sequence=256", "--hardware", "A100", "--json"])
        == 0
    )
    sheet = json.loads(capsys.readouterr().out)
    assert sheet["calibrated"] is False
    assert sheet["proved_optimal"] is True
    assert sheet["search_ms"] > 0
    assert sheet["groups"]
    assert all(set(group) >= GROUP for group in sheet["groups"])
    assert set(sheet["totals"]) >= TOTALS
    assert list(sheet["policies"]) == ["none", "conservative", "balanced", "aggressive"]
    assert all(set(totals) >= TOTALS for totals in sheet["policies"].values())
    balanced = {k: v for k, v in sheet["policies"]["balanced"].items() if k != "proved_optimal"}
    assert balanced == sheet["totals"]
    assert sheet["totals"]["predicted_error"] == pytest.approx(0.3)


@pytest.mark.parametrize("form", [[], ["--markdown"]])
def test_uncalibrated_is_said_beside_predictions(form: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "mlp", *form]) == 0
    out = capsys.readouterr().out
    assert "± 30% (uncalibrated" in out
    assert "policies (uncalibrated)" in out
    assert "proved optimal" in out
    for word in ("up_proj + silu + gate", "none", "conservative", "balanced *", "aggressive", "saved (ii)"):
        assert word in out


def test_calibrated_constants_are_used_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hw = load_hardware("A100")
    path = tmp_path / "a100.json"
    known = dict.fromkeys(("matmul", "vector", "attention"), 0.05)
    fitted = {"calibrated": True, "family_median": known, "eta_matrix": 0.4}
    save_constants(path, [dataclasses.replace(default_constants(hw, "bf16"), **fitted)])  # type: ignore[arg-type]
    command = ["plan", "mlp", "--hardware", "A100", "--json"]
    assert main(command) == 0
    before = json.loads(capsys.readouterr().out)
    assert main([*command, "--constants", str(path)]) == 0
    after = json.loads(capsys.readouterr().out)
    assert after["calibrated"] is True
    assert after["totals"]["predicted_error"] == pytest.approx(0.05)
    assert after["totals"]["predicted_ns"] > 1.2 * before["totals"]["predicted_ns"]
    assert main(["plan", "mlp", "--hardware", "H100", "--constants", str(path)]) == 2
    assert "fitted for A100, not for H100" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nothing"], 2, "block nothing: does not exist"),
        (["mlp", "--shapes", "tokens=-1"], 2, "--shapes tokens=-1"),
        (["mlp", "--shapes", "token=1"], 2, "has no parameter token"),
        (["mlp", "--hardware", "Z80"], 3, "'Z80' is not known"),
        (["mlp", "--dtype", "fp7"], 3, "'fp7' is not known"),
        (["mlp", "--constants", "/nonexistent.json"], 3, "/nonexistent.json"),
    ],
)
def test_errors_are_one_line(arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *arguments]) == code
    streams = capsys.readouterr()
    assert streams.out == ""
    assert words in streams.err
    assert streams.err.count("\n") == 1


def test_without_a_block_it_lists_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan"]) == 0
    out = capsys.readouterr().out
    assert "transformer-decode" in out
    assert "llama-70b" in out
    assert "H100" in out
