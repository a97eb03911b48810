"""Alibaba traces: series without a name, and batch times without a unit."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from kineto_samples import MEMORY, rows_of, write

from fusetui.importers import alibaba_gentd, alibaba_minibatch
from fusetui.telemetry.errors import TelemetryError

_CORPUS = os.environ.get("FUSETUI_CORPUS")
needs_corpus = pytest.mark.skipif(not _CORPUS, reason="set FUSETUI_CORPUS to a folder with traces/ and reference/")
_SERVING = Path(_CORPUS or ".") / "traces/serving"
SERIES = (
    b"value,container_ip,timestamp_anon,request_type\n"
    b"196.0,aa,1662859347.0,API\n0.5,,1662859290.0,\nx,bb,1662859290.0,\n"
)
BATCHES = (
    b",worker,gpu,time,batch_time_norm\n0,0,25,1,100\n1,1,25,1,300\n2,1,25,2,50\n3,0,25,2,50\n4,0,25,3,7\n5,a,25,3,7\n"
)


def test_a_series_has_the_name_of_its_file(tmp_path: Path) -> None:
    assert alibaba_gentd.sniff(SERIES)
    capture = alibaba_gentd.read(write(tmp_path / "queue_rt.csv", SERIES), MEMORY)
    rows = rows_of(capture)
    assert [(r["name"], r["end_ns"], r["value"], r.get("host"), r.get("stream")) for r in rows] == [
        ("queue_rt", 0, 0.5, None, None),
        ("queue_rt", 57_000_000_000, 196.0, "aa", "API"),
    ]
    assert capture.origin_ns == 1_662_859_290_000_000_000
    assert "readings without a container: 1" in capture.notes
    assert "rows left out: no time or no value: 1" in capture.notes


def test_more_containers_than_there_are_codes(tmp_path: Path) -> None:
    lines = [f"1.0,host{number},1662859347.0" for number in range(40_000)]
    content = "\n".join(["value,container_ip,timestamp_anon", *lines]).encode()
    capture = alibaba_gentd.read(write(tmp_path / "many.csv", content), MEMORY)
    rows = rows_of(capture)
    assert len(rows) == 40_000
    assert (rows[0]["host"], rows[-1]["host"]) == ("host0", "…")
    assert capture.notes[-1] == "more different hosts than fit: the rest are …"


def test_batch_times_are_counters_of_workers_and_their_imbalance(tmp_path: Path) -> None:
    assert alibaba_minibatch.sniff(BATCHES)
    capture = alibaba_minibatch.read(write(tmp_path / "job.csv", BATCHES), MEMORY)
    rows = rows_of(capture)
    took = [(r["host"], r["end_ns"], r["value"], r["request"]) for r in rows if r["name"] == "batch time (normalised)"]
    assert took == [
        ("worker 0", 0, 100, 1), ("worker 1", 0, 300, 1), ("worker 1", 1_000_000, 50, 2),
        ("worker 0", 1_000_000, 50, 2), ("worker 0", 2_000_000, 7, 3),
    ]  # fmt: skip
    assert [(r["request"], r["value"]) for r in rows if r["name"] == "worker imbalance"] == [(1, 0.5), (2, 0.0)]
    assert "unit" not in rows[0]
    assert capture.notes[-1] == "rows left out: no worker, iteration or batch time: 1"


def test_files_without_a_reading_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match="without one readable line"):
        alibaba_minibatch.read(write(tmp_path / "a", BATCHES.partition(b"\n")[0] + b"\n,,,,\n"), MEMORY)
    with pytest.raises(TelemetryError, match="without one readable line"):
        alibaba_gentd.read(write(tmp_path / "b", SERIES.partition(b"\n")[0] + b"\n,,,\n"), MEMORY)


@needs_corpus
@pytest.mark.parametrize(("job", "rows", "median", "most"), [(1, 3000, 0.09, 1.09), (4, 21829, 0.86, None)])
def test_imbalance_of_real_jobs(job: int, rows: int, median: float, most: float | None) -> None:
    path = _SERVING / f"alibaba__clusterdata__gpu-v2020_minibatch_job_{job}_norm.csv"
    found = rows_of(alibaba_minibatch.read(path, MEMORY))
    assert sum(row["name"] == "batch time (normalised)" for row in found) == rows
    imbalance = np.array([row["value"] for row in found if row["name"] == "worker imbalance"])
    assert float(np.median(imbalance)) == pytest.approx(median, abs=0.006)
    assert most is None or float(imbalance.max()) == pytest.approx(most, abs=0.006)


@needs_corpus
@pytest.mark.parametrize(
    ("name", "rows", "quantiles"),
    [
        ("queue_rt_raw", 23478, {0.5: 203, 0.95: 451, 0.99: 627, 1.0: 4329}),
        ("pipeline_inference_data", 34421, {0.5: 15132, 0.95: 35457, 0.99: 70556}),
    ],
)
def test_real_series(name: str, rows: int, quantiles: dict[float, float]) -> None:
    path = _SERVING / f"alibaba__clusterdata__GenTD26_{name}_anon.csv"
    values = np.array([row["value"] for row in rows_of(alibaba_gentd.read(path, MEMORY))])
    assert len(values) == rows
    assert {q: round(float(np.quantile(values, q))) for q in quantiles} == pytest.approx(quantiles, abs=1)
