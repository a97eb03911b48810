"""Pages of real engines: expected figures, and truth inside every bracket."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from prometheus_pages import Scrapes

from fusetui.sources.prometheus_hist import quantile_bracket
from fusetui.sources.prometheus_layout import Item
from fusetui.sources.prometheus_rows import difference

pytestmark = pytest.mark.skipif(not os.environ.get("FUSETUI_CORPUS"), reason="set FUSETUI_CORPUS to a folder of traces")


def page(name: str) -> str:
    return (Path(os.environ["FUSETUI_CORPUS"]) / "traces" / "metrics" / name).read_text()


def since_start(name: str, row: str) -> tuple[Item, np.ndarray, float]:
    """The histogram, its observations per bucket and its mean since the engine began."""
    scrapes = Scrapes()
    scrapes.take(page(name))
    item = next(i for i in scrapes.scraper.layout.items if i.row == row)
    values = scrapes.scraper.table.read(page(name))
    found = difference(item, None, values, np.ones(len(item.ids), bool), 1.0)
    assert found is not None
    return item, found.counts, found.sum / found.counts.sum()


@pytest.mark.parametrize("scale", [100, 1000])
def test_vllm_truth_lies_inside_every_bracket(scale: int) -> None:
    truth = json.loads(page("vllm_derived_liao4s_truth.json"))
    scrapes = Scrapes(window_s=0.5)
    before: dict[str, np.ndarray] = {}
    checked = 0
    for n in range(4):
        name = f"vllm_derived_liao4s_scale{scale}_scrape{n}.prom"
        rows = scrapes.take(page(name))
        for row in ("ttft", "e2e"):
            item, counts, _ = since_start(name, row)
            interval = counts - before.get(row, np.zeros_like(counts))
            before[row] = counts
            for which, seen in (("cumulative", counts), ("interval", interval)):
                assert seen.sum() == truth[name][{"cumulative": "completed_total"}.get(which, "completed_in_interval")]
                for label, q in (("p95", 0.95), ("p99", 0.99)):
                    bracket = quantile_bracket(item.levels, seen, q)
                    assert bracket is not None
                    assert bracket.lo < truth[name][which][f"{row}_{label}"] <= bracket.hi, (name, row, which, label)
                    checked += 1
                    shown = rows.get(f"{row} {label} lo [0]"), rows.get(f"{row} {label} hi [0]")
                    if which == "interval" and n and (label == "p95" or interval.sum() >= 100):
                        assert shown == ((bracket.lo, "s"), (bracket.hi, "s"))
        assert rows["requests waiting [0]"] == (truth[name]["gauges"]["waiting"], "")
        assert rows["requests running [0]"] == (truth[name]["gauges"]["running"], "")
        assert rows["kv cache used [0]"][0] == pytest.approx(100 * truth[name]["gauges"]["kv"])
    assert checked == 32


def test_vllm_completed_only_bias_is_marked() -> None:
    text = page("vllm_derived_liao4s_scale1000_scrape0.prom")
    empty = "\n".join(
        line if line.startswith("#") or "_created" in line else line.rpartition(" ")[0] + " 0"
        for line in text.splitlines()
    )
    scrapes = Scrapes(window_s=60.0)
    scrapes.take(empty)
    rows = scrapes.take(text, after_s=37)
    assert rows["ttft p95 hi [0]"] == (2.5, "s")
    [mark] = [mark for mark in scrapes.marks if "Little" in mark]
    assert mark == "ttft [0] p95 ≤ 2.5 s is of ended requests only: 98 wait, about 29 s each by Little's law"


def test_vllm_without_a_request_has_no_quantile() -> None:
    scrapes = Scrapes()
    scrapes.take(page("vllm_kops_v1.35.prom"))
    rows = scrapes.take(page("vllm_kops_v1.35.prom"))
    assert rows["ttft n [0]"] == rows["e2e n [0]"] == (0.0, "")
    assert rows["generation tokens [0]"] == (0.0, "/s")
    assert not [name for name in rows if {"lo", "hi", "mean"} & set(name.split())]
    assert (len(scrapes.scraper.table.series), scrapes.scraper.table.malformed, scrapes.marks) == (395, 0, [])


def test_sglang_beyond_its_buckets() -> None:
    item, counts, mean = since_start("sglang_docs_sample.prom", "ttft")
    for q in (0.5, 0.95, 0.99):
        assert quantile_bracket(item.levels, counts, q) == (30.0, np.inf)
    assert (counts[-1], counts.sum()) == (8495, 11008)
    assert mean == pytest.approx(213.7, abs=0.05)
    scrapes = Scrapes()
    assert scrapes.take(page("sglang_docs_sample.prom"))["requests waiting"] == (2826.0, "")
    assert scrapes.marks == ["e2e and ttft disagree: 11,228 requests ended but only 11,008 had a first token"]


def test_triton_summaries() -> None:
    ill, well = Scrapes(), Scrapes()
    ill.take(page("triton_datadog_fixture.prom"))
    assert [mark for mark in ill.marks if "request summary densenet_onnx: its mean is 0.4427 s" in mark]
    rows = well.take(page("triton_docs_queue_summary.prom"))
    assert rows["queue summary my_model p95"][0] == pytest.approx(98e-6)
    assert well.marks == []


def test_ray_serve_under_rising_load() -> None:
    pages = [page(f"ray_serve_2.60.0_local_t{n}.prom") for n in ("0_warm", "1_steady", "2_overload")]
    scrapes = Scrapes(window_s=0.5)
    rows = [scrapes.take(text) for text in pages]
    assert scrapes.scraper.layout.engine == "Ray Serve"
    assert (scrapes.scraper.table.malformed, scrapes.scraper.table.duplicates) == (0, 0)
    for later in rows[1:]:
        assert later["replica latency M p95 hi"][1] == later["batch wait M p95 hi"][1] == "s"
        assert later["replica latency M p95 lo"][0] <= later["replica latency M p95 hi"][0]
        assert later["batch size M mean"][0] <= 8
    assert [later["replica latency M n"][0] for later in rows[1:]] == [1138.0, 2119.0]
    assert [later["router wait M p95 lo"][0] for later in rows[1:]] == [2.0, 120.0]
    assert [later["router wait M p95 hi"][0] for later in rows[1:]] == [5.0, 300.0]
    assert rows[1]["batch size M mean"][0] < rows[2]["batch size M mean"][0]


def test_ray_serve_counts_what_its_clients_sent() -> None:
    _, counts, _ = since_start("ray_serve_2.60.0_local_t2_overload.prom", "replica latency M")
    assert counts.sum() == len(json.loads(page("ray_serve_2.60.0_local_client_latencies.json"))) == 3367


@pytest.mark.parametrize("name", ["kops_v1.35", "upcloud_L40S", "ericsson_T4", "vks_v1.36"])
def test_dcgm_of_four_vendors(name: str) -> None:
    scrapes = Scrapes()
    rows = scrapes.take(page(f"dcgm_{name}.prom"))
    assert scrapes.scraper.layout.engine == "DCGM exporter"
    assert scrapes.scraper.table.malformed == 0
    assert rows["gpu util [0]"][1] == "%"
    if name == "ericsson_T4":
        assert rows["power [0]"] == (68.244, "W")
        assert rows["sm clock [0]"] == (660.0, "MHz")
