"""Whatever a tool prints, its parser ends with finite readings in known units, or says what is wrong."""

from __future__ import annotations

import json
import math
from typing import Any

from device_looks import rows
from hypothesis import given, settings
from hypothesis import strategies as st

from fusetui.sources.device_rows import Sample
from fusetui.sources.hlsmi import parse_table
from fusetui.sources.neuron_report import parse_report
from fusetui.sources.ttsmi import parse_snapshot

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["N/A", " 23.0", "0x22d522", "-0x1", "1e999", "\x1b[2J", "é" * 300])
)
KEYS = st.sampled_from(
    [
        "neuron_runtime_data",
        "neuron_hardware_info",
        "neuroncore_per_device_count",
        "report",
        "neuroncore_counters",
        "neuroncores_in_use",
        "neuroncore_utilization",
        "execution_stats",
        "latency_stats",
        "total_latency",
        "error_summary",
        "error",
        "p50",
        "3",
        "٣",
        "device_info",
        "telemetry",
        "smbus_telem",
        "ASIC_TEMPERATURE",
        "asic_temperature",
        "power",
    ]
)
TREES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=40
)


def sound(sample: Sample) -> None:
    assert all(math.isfinite(reading.value) for reading in sample.readings)
    assert all(reading.value <= 100 for reading in sample.readings if reading.unit == "%")
    assert "\x1b" not in sample.problem
    for row in rows(sample):
        assert "\x1b" not in row["name"]
        assert len(row["name"]) <= 200


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(KEYS, TREES, max_size=4))
def test_reports_of_neuron_monitor(report: dict[str, Any]) -> None:
    sound(parse_report(report))


@settings(max_examples=200, deadline=None)
@given(TREES, st.lists(TREES, max_size=3))
def test_snapshots_of_tt_smi(tree: Any, devices: list[Any]) -> None:
    for snapshot in (tree, {"device_info": devices}, {"device_info": [{"telemetry": tree, "smbus_telem": tree}]}):
        sound(parse_snapshot(json.dumps(snapshot).encode()))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(st.text("0123456789.-+eE %[]()CWMHziB\x1b", max_size=8), max_size=6), max_size=4))
def test_tables_of_hl_smi(table: list[list[str]]) -> None:
    head = "index, utilization.aip [%], power.draw [W], memory.used [MiB]\n"
    sound(parse_table(head + "\n".join(",".join(row) for row in table)))
