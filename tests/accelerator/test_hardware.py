"""Hardware descriptions: presets with their sources, user files, and errors that name file and key."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

import pytest

from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.errors import HardwareError
from fusetui.accelerator.hardware import dtype_bytes
from fusetui.accelerator.presets import hardware_names, load_hardware

PRESETS = [name for name in hardware_names() if name != "host"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    place = tmp_path / "fusetui" / "hardware"
    place.mkdir(parents=True)
    return place


@pytest.mark.parametrize("name", PRESETS)
def test_every_value_of_a_preset_has_a_source(name: str) -> None:
    text = (resources.files("fusetui.accelerator") / "presets" / f"{name.lower()}.toml").read_text()
    table = tomllib.loads(text)
    valued = set(table) - {"name", "title", "kind", "sources"}
    assert set(table["sources"]) == valued
    assert all(len(source) >= 5 for source in table["sources"].values())


@pytest.mark.parametrize("name", hardware_names())
def test_presets_are_possible_devices(name: str) -> None:
    hw = load_hardware(name)
    assert hw.name == name
    assert hw.cores >= 1
    assert 1e9 < hw.dram_bytes_per_s < 1e14
    for dtype in hw.matrix_flops:
        assert hw.rate(dtype) >= hw.rate("fp64" if "fp64" in hw.matrix_flops else dtype)
        assert all(side >= 1 for side in hw.mma_shape(dtype))
    assert hw.vector_rate("fp16") >= hw.vector_rate("fp32") > 0


def test_a100_figures() -> None:
    hw = load_hardware("a100")
    assert (hw.cores, hw.rate("bf16"), hw.dram_bytes_per_s, hw.l2_bytes) == (108, 312e12, 2.039e12, 40 << 20)
    assert hw.sources["dram_bytes_per_s"].startswith("NVIDIA A100 datasheet")


def test_a_user_file_extends_a_preset(folder: Path) -> None:
    (folder / "half.toml").write_text('extends = "H100"\ncores = 66\n[matrix_flops]\nbf16 = 500e12\n')
    half, whole = load_hardware("half"), load_hardware("H100")
    assert "half" in hardware_names()
    assert (half.name, half.cores, half.rate("bf16")) == ("half", 66, 500e12)
    assert (half.rate("fp16"), half.launch) == (whole.rate("fp16"), whole.launch)


def test_a_user_file_may_replace_a_preset_it_extends(folder: Path) -> None:
    (folder / "h100.toml").write_text('extends = "H100"\nname = "H100"\ncores = 114\n')
    assert load_hardware("H100").cores == 114


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cores = 0", "key cores: must be a number, more than 0, not 0"),
        ("cores = 1.5", "key cores: must be a whole number, not 1.5"),
        ("cores = true", "key cores: must be a number"),
        ("clock_hz = nan", "key clock_hz: must be a number"),
        ("dram_bytes = -1", "key dram_bytes: must be a number"),
        ('kind = "toaster"', "key kind: must be one of gpu, systolic, cpu, not 'toaster'"),
        ("spam = 1", "key spam: not known"),
        ("[mma]\nfp16 = [16, 8]", "key mma.fp16: must be [m, n, k]"),
        ("[launch]\nfall_ns = 1", "key launch.fall_ns: not known"),
        ("[matrix_flops]\nfp16 = -3", "key matrix_flops.fp16: must be a number"),
        ("l2_bytes = 0", "key l2_bytes_per_s: must be given with l2_bytes"),
        ("extends = 3", "key extends: must be the name"),
        ("cores = ", "cannot be read as TOML"),
    ],
)
def test_a_wrong_file_is_named_with_its_key(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text if text.startswith("extends") else f'extends = "H100"\n{text}\n')
    with pytest.raises(HardwareError) as error:
        load_hardware(str(path))
    assert str(error.value).startswith(f"{path}: {problem}")
    assert "\n" not in str(error.value)


def test_missing_keys_circles_and_unknown_names(folder: Path) -> None:
    alone = folder / "alone.toml"
    alone.write_text('name = "alone"\n')
    with pytest.raises(HardwareError, match=r"alone.toml: key title: missing"):
        load_hardware("alone")
    (folder / "ring-a.toml").write_text('extends = "ring-b"\n')
    (folder / "ring-b.toml").write_text('extends = "ring-a"\n')
    with pytest.raises(HardwareError, match="ring-"):
        load_hardware("ring-a")
    with pytest.raises(HardwareError, match=r"'H1000' is not known; one of A100, "):
        load_hardware("H1000")
    with pytest.raises(HardwareError, match="no such hardware file"):
        load_hardware("./none.toml")


def test_sizes_of_types() -> None:
    assert [dtype_bytes(d) for d in ("fp32", "bf16", "fp8")] == [4, 2, 1]
    with pytest.raises(HardwareError, match="'fp3' is not known"):
        dtype_bytes("fp3")


def test_typical_shares_start_the_constants(tmp_path: Path) -> None:
    path = tmp_path / "slow.toml"
    path.write_text('extends = "A100"\n[typical]\neta_dram = 0.5\n')
    slow, plain = load_hardware(str(path)), load_hardware("A100")
    assert default_constants(slow, "fp16").eta_dram == 0.5
    assert default_constants(slow, "fp16").eta_matrix == default_constants(plain, "fp16").eta_matrix
    path.write_text('extends = "A100"\n[typical]\nspeed = 0.5\n')
    with pytest.raises(HardwareError, match=r"key typical.speed: not known; eta_matrix"):
        load_hardware(str(path))
