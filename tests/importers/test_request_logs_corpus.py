"""Real request logs: their known counts and oddities, and Little's law on a measured server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from fusetui.importers.open import open_capture

_CORPUS = os.environ.get("FUSETUI_CORPUS")
pytestmark = pytest.mark.skipif(not _CORPUS, reason="set FUSETUI_CORPUS to a folder with traces/ and reference/")
_SERVING = Path(_CORPUS or ".") / "traces/serving"
_RUN = "liao4s__BurstGPT_test__{}_log_scale{}_prompt500.{}"
_LOADS = sorted(int(p.name.split("scale")[1].split("_")[0]) for p in _SERVING.glob(_RUN.format("detail", "*", "json")))


def opened(*names: str) -> tuple[pl.DataFrame, Any]:
    trace = open_capture([_SERVING / name for name in names], memory_bytes=256 << 20)
    assert trace.wait_complete(60)  # type: ignore[attr-defined]
    frames = [pl.from_arrow(trace.read(number)) for number in range(len(trace.index().rows))]
    plain = [frame.with_columns(pl.col(pl.Categorical).cast(pl.String)) for frame in frames]  # type: ignore[union-attr]
    return pl.concat(plain), trace


@pytest.mark.parametrize(
    ("name", "rows", "span_s", "cv"),
    [
        ("Azure__AzurePublicDataset__AzureLLMInferenceTrace_code.csv", 8819, 3436, 13.15),
        ("Azure__AzurePublicDataset__AzureLLMInferenceTrace_conv.csv", 19366, 3502, 1.09),
    ],
)
def test_azure(name: str, rows: int, span_s: int, cv: float) -> None:
    frame, _ = opened(name)
    assert len(frame) == rows
    at = np.sort(frame["start_ns"].to_numpy())
    gaps = np.diff(at)
    assert (at[-1] - at[0]) / 1e9 == pytest.approx(span_s, abs=1)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, abs=0.01)


def test_mooncake_says_that_its_clock_is_coarse() -> None:
    frame, trace = opened("kvcache-ai__Mooncake__conversation_trace.jsonl")
    assert len(frame) == 12031
    assert frame["start_ns"].n_unique() == 1180
    assert any("steps of about 3 s (1,180 distinct of 12,031)" in note for note in trace.notes)
    fine, trace = opened("kvcache-ai__Mooncake__synthetic_trace.jsonl")
    assert len(fine) == 3993
    assert not any("steps" in note for note in trace.notes)


@pytest.mark.parametrize("load", _LOADS)
def test_littles_law_holds_between_latencies_and_the_schedulers_gauges(load: int) -> None:
    """Mean number in the system (gauges) = arrivals x mean time in it (client), within 2 %."""
    frame, _ = opened(_RUN.format("detail", load, "json"), _RUN.format("vllm", load, "csv"))
    told = frame.filter(pl.col("kind") == "request")
    requests = told.filter(pl.col("end_ns").is_not_null())
    assert len(requests) == 500
    # Each is told when it came, too: what waits is known before it ends.
    came = told.filter(pl.col("end_ns").is_null())
    assert came["enqueue_ns"].sort().to_list() == requests["enqueue_ns"].sort().to_list()
    names = ("running requests", "pending requests", "swapped requests")
    gauges = frame.filter(pl.col("name").is_in(names)).group_by("start_ns").agg(pl.col("value").sum()).sort("start_ns")
    at, number = gauges["start_ns"].to_numpy(), gauges["value"].to_numpy()
    from_ns, to_ns = at[0], at[-1]
    inside = np.minimum(requests["end_ns"].to_numpy(), to_ns) - np.maximum(requests["enqueue_ns"].to_numpy(), from_ns)
    by_latency = np.maximum(inside, 0).sum() / (to_ns - from_ns)
    by_gauge = float(((number[1:] + number[:-1]) / 2 * np.diff(at)).sum() / (to_ns - from_ns))
    assert by_gauge == pytest.approx(by_latency, rel=0.02)
