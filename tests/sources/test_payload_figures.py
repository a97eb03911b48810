"""What each page of a real engine or exporter must read as: figures taken from the page by eye, one row a payload."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from prometheus_pages import Scrapes

_MIB = 2.0**20
_FIRST: dict[str, tuple[str, int, dict[str, tuple[float, str]]]] = {
    # payload: engine, series, rows of the first scrape
    "dcgm_ericsson_T4": ("DCGM exporter", 20, {
        "sm clock [0]": (660.0, "MHz"), "memory clock [0]": (5000.0, "MHz"), "temperature [0]": (74.0, "°C"),
        "power [0]": (68.244, "W"), "gpu util [0]": (91.0, "%"), "memory copy util [0]": (73.0, "%"),
        "device memory used [0]": (5120 * _MIB, "B"), "gpu active [0]": (15.6205, "%"),
        "tensor active [0]": (0.5822, "%"), "dram active [0]": (9.2781, "%"), "pcie sent [0]": (4791810.0, "B/s"),
        "pcie received [0]": (6935930.0, "B/s"),
    }),
    "dcgm_kops_v1.35": ("DCGM exporter", 23, {
        "power [0]": (16.365, "W"), "sm clock [0]": (210.0, "MHz"), "pcie sent [0]": (112603.0, "B/s"),
        "gpu util [0]": (0.0, "%"), "device memory used [0]": (0.0, "B"), "temperature [0]": (31.0, "°C"),
    }),
    "dcgm_kops_v1.35_b2": ("DCGM exporter", 23, {
        "power [0]": (16.365, "W"), "sm clock [0]": (210.0, "MHz"), "pcie received [0]": (17544.0, "B/s"),
    }),
    "dcgm_upcloud_L40S": ("DCGM exporter", 23, {
        "power [0]": (35.686, "W"), "dram active [0]": (0.0131, "%"), "gpu active [0]": (0.0, "%"),
        "pcie sent [0]": (175084.0, "B/s"), "temperature [0]": (32.0, "°C"),
    }),
    "dcgm_vks_v1.36": ("DCGM exporter", 11, {
        "sm clock [0]": (1410.0, "MHz"), "memory clock [0]": (1215.0, "MHz"), "device memory used [0]": (0.0, "B"),
    }),
    "ray_serve_2.60.0_local_t0_warm": ("Ray Serve", 1657, {"router queue length M": (1.0, "")}),
    "ray_serve_2.60.0_local_t1_steady": ("Ray Serve", 1547, {"router queue length M": (5.0, "")}),
    "ray_serve_2.60.0_local_t2_overload": ("Ray Serve", 1543, {"requests waiting M": (0.0, "")}),
    "sglang_docs_sample": ("SGLang", 70, {
        "requests running": (162.0, ""), "requests waiting": (2826.0, ""), "kv cache used": (28.0, "%"),
        "prefix cache hit rate": (0.7507552643049313, "%"), "generation throughput": (86.50814177726902, "tokens/s"),
    }),
    "triton_datadog_fixture": ("Triton", 45, {
        "request summary densenet_onnx p99": (3e-6, "s"), "requests waiting densenet_onnx": (0.0, ""),
        "power GPU-951eeeeb-d284-d263-688e-d98a5306389b": (32.09, "W"),
    }),
    "triton_docs_queue_summary": ("Triton", 9, {
        "queue summary my_model p50": (55e-6, "s"), "queue summary my_model p90": (97e-6, "s"),
        "queue summary my_model p99.9": (101e-6, "s"),
    }),
    "vllm_kops_v1.35": ("vLLM", 395, {
        "requests running [0]": (0.0, ""), "requests waiting [0]": (0.0, ""), "kv cache used [0]": (0.0, "%"),
    }),
}  # fmt: skip
_MARKED = {
    "sglang_docs_sample": "e2e and ttft disagree: 11,228 requests ended but only 11,008 had a first token",
    "triton_datadog_fixture": "request summary densenet_onnx: its mean is 0.4427 s, its quantiles 3e-06 to 3e-06: "
    "they disagree, do not trust it",
}
_ELSEWHERE = ("vllm_derived_",)  # their truth is in a file of its own: test_prometheus_corpus

needs_corpus = pytest.mark.skipif(not os.environ.get("FUSETUI_CORPUS"), reason="set FUSETUI_CORPUS to traces")


def folder() -> Path:
    return Path(os.environ["FUSETUI_CORPUS"]) / "traces" / "metrics"


@needs_corpus
@pytest.mark.parametrize("name", _FIRST)
def test_a_payload_reads_as_it_says(name: str) -> None:
    engine, series, expected = _FIRST[name]
    scrapes = Scrapes()
    rows = scrapes.take((folder() / f"{name}.prom").read_text())
    table = scrapes.scraper.table
    assert (scrapes.scraper.layout.engine, len(table.series), table.malformed, table.duplicates) == (
        engine, series, 0, 0,
    )  # fmt: skip
    for row, (value, unit) in expected.items():
        assert rows[row] == (pytest.approx(value), unit), row
    assert scrapes.marks == [line for marked, line in _MARKED.items() if marked == name]


@needs_corpus
def test_no_payload_is_left_out() -> None:
    names = {path.stem for path in folder().glob("*.prom") if not path.name.startswith(_ELSEWHERE)}
    assert names == set(_FIRST)


def test_dcgm_energy_is_power_and_held_back_clocks_are_named() -> None:
    scrapes = Scrapes()
    energy = 'DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="1"}'
    events = 'DCGM_EXP_CLOCK_EVENTS_COUNT{gpu="1",clock_event="hw_thermal",window_size_in_ms="300000"} 3\n'
    scrapes.take(f"{energy} 1000000\n{events}")
    assert scrapes.take(f"{energy} 1300000\n{events}") == {
        "mean power [1]": (300.0, "W"),
        "clock events hw_thermal [1]": (3.0, ""),
    }
    scrapes.take(f"{energy} 100\n")
    assert scrapes.marks == ["counters began again: mean power"]
