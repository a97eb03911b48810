"""Files that are no captures: each is named, in a line that says what to do instead."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fusetui.importers import foreign_kinds
from fusetui.importers.archive import kind_of
from fusetui.importers.bytestream import head_of
from fusetui.importers.foreign import recognised
from fusetui.importers.foreign_kinds import ANY_CAPTURE, ARRAYS, BINARY, BY_ENDING, OBJECTS, TEXTS, UNKNOWN_BINARY
from fusetui.importers.open import importers, open_capture
from fusetui.telemetry.errors import TelemetryError

HEADS = [
    (b'{"neuron_runtime_data": [{"pid": 0}]}', "neuron-monitor", "fusetui live neuron"),
    (b'{"device_info": [{"board_info": {"board_type": "n300"}}]}', "tt-smi", "fusetui live tt-smi"),
    (b'{"card0": {"GPU use (%)": "3"}}', "rocm-smi", "fusetui live amdsmi"),
    (b'[{"gpu": 0, "asic": {"market_name": "x"}}]', "amd-smi", "fusetui live amdsmi"),
    (b"index, utilization.aip [%], power.draw [W]\n0, 4 %, 80 W\n", "hl-smi", "fusetui live hl-smi"),
    (b"Timestamp, DeviceId, GPU Utilization (%)\n06:14:46.000, 0, 1.5\n", "xpu-smi", "fusetui live xpu-smi"),
    (b"timestamp, name, utilization.gpu [%]\n2026/01/01, H100, 3 %\n", "nvidia-smi", "fusetui live nvml"),
    (b"Mon Jan  1\n| NVIDIA-SMI 570.1   Driver Version: 570.1 |\n", "nvidia-smi", "fusetui live nvml"),
    (b"# gpu    pwr  gtemp\n# Idx      W      C\n    0     60\n", "nvidia-smi", "fusetui live nvml"),
    (b"======= ROCm System Management Interface =======\n", "rocm-smi", "fusetui live amdsmi"),
    (b"# TYPE up gauge\nup 1\n", "Prometheus metrics", "fusetui live http://"),
    (b'vllm:num_requests_running{model="m"} 3.0\n# EOF\n', "Prometheus metrics", "fusetui live http://"),
    (b'[{"t_submit": 1.5, "latency_s": 0.09}, {}]', "latencies that a client wrote", "enqueue_ns"),
    (b'{"a.prom": {"interval": {"ttft_p95": 0.05}}}', "percentiles of no single times", "log or the profile"),
    (b'{"completed": 9, "p99_ttft_ms": 4.5}', "percentiles of no single times", "log or the profile"),
    (b"[\n]\n", "nothing was recorded", "mlperf_log_detail.txt"),
    (b'[\n{ "seq_id" : 0, "qsl_idx" : 3, "data" : "00" }', "answers of an MLPerf run", "mlperf_log_detail.txt"),
    (b'{"architecture": "wormhole_b0", "frequency": 1000}', "Tenstorrent device", "profile_log_device.csv"),
    (b'\x12\x08"=type.googleapis.com/tensorflow.profiler.X', "derived by XProf", ".xplane.pb"),
    (b"\x22\x96\x1b\x0aX\x08\x01\x12\x06Device\x1a\x04IDLE", "derived by XProf", ".xplane.pb"),
    (b"\x08\x08\x12\x07pytorch\x1a\x052.9.0:", "ONNX model", "fusetui plan"),
    (b"HloModule jit_f, is_scheduled=true\n", "XLA program", "jax.profiler"),
    (b"module @block {\n  func.func @main()", "MLIR program", "profile its run"),
    (b"// a comment\n#map = affine_map<(d0) -> (d0)>\nmodule {\n", "MLIR program", "profile its run"),
]


@pytest.mark.parametrize(("head", "what", "remedy"), HEADS, ids=[what for _, what, _ in HEADS])
def test_a_file_is_named_with_what_to_do_instead(tmp_path: Path, head: bytes, what: str, remedy: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(head)
    with pytest.raises(TelemetryError) as caught:
        open_capture([path], memory_bytes=64 << 20)
    assert what in caught.value.what
    assert remedy in caught.value.remedy


@pytest.mark.parametrize("ending", BY_ENDING)
def test_a_binary_that_nothing_tells_is_named_by_its_ending(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"file{ending.upper()}"
    path.write_bytes(b"\x01\x02\x00\x03")
    assert recognised(path.read_bytes(), path) is BY_ENDING[ending]
    assert recognised(path.read_bytes(), tmp_path / "file.bin") is UNKNOWN_BINARY


def test_an_ending_says_nothing_of_a_file_that_tells_what_it_is(tmp_path: Path) -> None:
    assert recognised(b"# TYPE up gauge\nup 1\n", tmp_path / "a.nsys-rep").what.startswith("Prometheus")


def test_every_line_fits_a_terminal() -> None:
    kinds = [*BINARY, *OBJECTS, *ARRAYS, *TEXTS, *BY_ENDING.values(), UNKNOWN_BINARY]
    assert max(len(f"{kind.what}; {kind.remedy}") for kind in kinds) <= 160
    assert all(kind.remedy for kind in kinds)


def test_no_name_is_hidden_behind_a_wider_one() -> None:
    for table in (OBJECTS, ARRAYS, TEXTS):
        assert all(kind.begins or kind.has for kind in table[:-1])
        assert table[-1].fits(b"")


CORPUS = os.environ.get("FUSETUI_CORPUS")


@pytest.mark.skipif(not CORPUS, reason="FUSETUI_CORPUS is not set")
def test_real_files_that_do_not_open_are_named() -> None:
    generic, named = [], 0
    for path in sorted(Path(CORPUS or "", "traces").rglob("*")):
        if not path.is_file() or path.suffix in (".md", ".py"):
            continue
        with path.open("rb") as file:
            first = file.read(8)
        head = head_of(path)
        if not head or kind_of(path, first) or first.startswith(b"PAR1") or any(i.sniff(head) for i in importers()):
            continue
        if recognised(head, path).remedy == foreign_kinds.ANY_CAPTURE:
            generic.append(path.name)
        named += 1
    assert not generic
    assert named > 70


def test_the_general_remedy_names_the_listing() -> None:
    assert "fusetui replay --formats" in ANY_CAPTURE
