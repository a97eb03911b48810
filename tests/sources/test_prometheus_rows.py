"""Rates, brackets and contradictions from sequences of small pages."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_pages import Scrapes, histogram

from fusetui.sources.prometheus_fetch import FetchError
from fusetui.sources.prometheus_names import FAMILIES

BOUNDS = ["0.1", "1.0", "10.0", "+Inf"]


def ttft(cumulative: list[int], total: float, labels: str = "") -> str:
    return histogram("vllm:time_to_first_token_seconds", BOUNDS, cumulative, total, labels)


def test_a_counter_becomes_a_rate_and_the_first_page_has_none() -> None:
    scrapes = Scrapes()
    assert "generation tokens" not in scrapes.take("vllm:generation_tokens_total 100\n")
    assert scrapes.take("vllm:generation_tokens_total 350\n", after_s=5) == {"generation tokens": (50.0, "/s")}


def test_a_counter_that_fell_has_no_rate_and_a_mark() -> None:
    scrapes = Scrapes()
    scrapes.take("vllm:num_preemptions_total 100\n")
    assert scrapes.take("vllm:num_preemptions_total 3\n") == {}
    assert scrapes.marks == ["counters began again: preemptions"]
    assert scrapes.take("vllm:num_preemptions_total 5\n") == {"preemptions": (2.0, "/s")}
    assert scrapes.marks == []


@pytest.mark.parametrize("start", ["process_start_time_seconds", "vllm:num_preemptions_created"])
def test_a_restart_is_seen_though_the_counter_grew(start: str) -> None:
    scrapes = Scrapes()
    scrapes.take(f"{start} 1.7e9\nvllm:num_preemptions_total 1\n")
    assert scrapes.take(f"{start} 1.70001e9\nvllm:num_preemptions_total 900\n") == {}
    assert scrapes.marks == ["counters began again: the engine"]
    rates = scrapes.take(f"{start} 1.70001e9\nvllm:num_preemptions_total 901\n")
    assert rates == {"preemptions": (1.0, "/s")}


def test_a_vanished_family_has_no_value_and_no_spike_when_it_is_back() -> None:
    scrapes = Scrapes()
    scrapes.take("vllm:num_preemptions_total 10\nvllm:num_requests_running 4\n")
    assert scrapes.take("vllm:num_requests_running 4\n") == {"requests running": (4.0, "")}
    assert "preemptions" not in scrapes.take("vllm:num_preemptions_total 500\nvllm:num_requests_running 4\n")


def test_quantiles_are_brackets_of_the_interval_only() -> None:
    scrapes = Scrapes()
    assert scrapes.take(ttft([1000, 1000, 1000, 1000], 50.0)) == {}
    rows = scrapes.take(ttft([1090, 1198, 1200, 1200], 150.0))
    assert rows == {
        "ttft n": (200.0, ""),
        "ttft p50 lo": (0.1, "s"),
        "ttft p50 hi": (1.0, "s"),
        "ttft p95 lo": (0.1, "s"),
        "ttft p95 hi": (1.0, "s"),
        "ttft p99 lo": (0.1, "s"),
        "ttft p99 hi": (1.0, "s"),
        "ttft mean": (0.5, "s"),
        "ttft in last bucket": (0.0, "%"),
    }


def test_in_the_last_bucket_there_is_no_upper_end_and_a_mark_says_so_once() -> None:
    scrapes = Scrapes()
    scrapes.take(ttft([0, 0, 0, 0], 0.0))
    rows = scrapes.take(ttft([0, 0, 100, 200], 6500.0))
    assert rows["ttft p99 lo"] == (10.0, "s")
    assert "ttft p99 hi" not in rows
    assert rows["ttft in last bucket"] == (50.0, "%")
    assert "ttft p99 ≥ 10 s: it lies in the last bucket, which has no end" in scrapes.marks
    scrapes.take(ttft([0, 0, 100, 300], 9000.0))
    assert scrapes.marks == []


def test_p99_needs_a_hundred_and_nothing_is_said_of_none() -> None:
    scrapes = Scrapes()
    scrapes.take(ttft([0, 0, 0, 0], 0.0))
    rows = scrapes.take(ttft([0, 99, 99, 99], 50.0))
    assert "ttft p95 hi" in rows
    assert "ttft p99 hi" not in rows
    still = Scrapes()
    still.take(ttft([5, 9, 9, 9], 3.0))
    assert still.take(ttft([5, 9, 9, 9], 3.0)) == {"ttft n": (0.0, "")}


def test_the_window_moves_on() -> None:
    scrapes = Scrapes(window_s=2.0)
    for n in range(10):
        rows = scrapes.take(ttft([n, n, n, n], 0.05 * n))
    assert rows["ttft n"] == (2.0, "")


def test_many_series_shorten_the_window_instead_of_filling_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusetui.sources.prometheus_rows._MAX_KEPT", 24)
    scrapes = Scrapes(window_s=100.0)
    for n in range(10):
        rows = scrapes.take(ttft([n, n, n, n], 0.05 * n))  # six series
    assert rows["ttft n"] == (4.0, "")


def test_a_histogram_that_began_again_counts_from_there() -> None:
    scrapes = Scrapes()
    scrapes.take(ttft([50, 60, 60, 60], 10.0))
    scrapes.take(ttft([51, 61, 61, 61], 10.1))
    assert scrapes.take(ttft([0, 2, 2, 2], 1.0)) == {}
    assert scrapes.marks == ["counters began again: ttft"]
    assert scrapes.take(ttft([0, 5, 5, 5], 2.5))["ttft n"] == (3.0, "")


def test_an_engine_restarted_with_other_buckets_is_read_by_those() -> None:
    scrapes = Scrapes()
    name = "vllm:time_to_first_token_seconds"
    old, new = ["1.0", "2.0", "+Inf"], ["1.0", "5.0", "60.0", "+Inf"]
    scrapes.take(histogram(name, old, [0, 0, 0], 0.0))
    assert scrapes.take(histogram(name, old, [0, 4, 4], 6.0))["ttft p95 hi"] == (2.0, "s")
    assert "ttft n" not in scrapes.take(histogram(name, new, [0, 1, 1, 1], 3.0))
    rows = scrapes.take(histogram(name, new, [0, 1, 11, 11], 303.0))
    assert (rows["ttft p95 lo"], rows["ttft p95 hi"], rows["ttft n"]) == ((5.0, "s"), (60.0, "s"), (10.0, ""))
    scrapes.take(histogram(name, old, [0, 0, 0], 0.0))
    assert scrapes.take(histogram(name, old, [0, 3, 3], 6.0))["ttft p95 hi"] == (2.0, "s")


def test_a_label_set_that_came_later_is_counted_from_its_first_page() -> None:
    scrapes = Scrapes()
    scrapes.take(ttft([1, 1, 1, 1], 0.0, 'model_name="a",'))
    scrapes.take(ttft([2, 2, 2, 2], 0.0, 'model_name="a",') + ttft([70, 70, 70, 70], 0.0, 'model_name="b",'))
    both = ttft([4, 4, 4, 4], 0.0, 'model_name="a",') + ttft([71, 71, 71, 71], 0.0, 'model_name="b",')
    assert scrapes.take(both)["ttft n"] == (3.0, "")


def test_ranks_stay_apart_and_other_labels_are_put_together() -> None:
    page = (
        'vllm:num_requests_waiting{engine="0",model_name="a"} 117\n'
        'vllm:num_requests_waiting{engine="1",model_name="a"} 0\n'
        'vllm:num_requests_waiting{engine="1",model_name="b"} 3\n'
        'vllm:kv_cache_usage_perc{engine="1",model_name="a"} 0.25\n'
    )
    assert Scrapes().take(page) == {
        "requests waiting [0]": (117.0, ""),
        "requests waiting [1]": (3.0, ""),
        "kv cache used [1]": (25.0, "%"),
    }


def test_graph_passes_by_mode_and_only_the_first_tensor_rank() -> None:
    scrapes = Scrapes()
    page = (
        'sglang:cuda_graph_passes_total{{mode="decode_graph",tp_rank="0"}} {0}\n'
        'sglang:cuda_graph_passes_total{{mode="decode_none",tp_rank="0"}} {1}\n'
        'sglang:num_running_reqs{{tp_rank="0"}} 8\nsglang:num_running_reqs{{tp_rank="1"}} 8\n'
    )
    scrapes.take(page.format(10, 0))
    assert scrapes.take(page.format(40, 5)) == {
        "graph passes decode_graph": (30.0, "/s"),
        "graph passes decode_none": (5.0, "/s"),
        "requests running": (8.0, ""),
    }


def test_why_requests_wait_is_not_added_to_how_many() -> None:
    page = "vllm:num_requests_waiting 5\n" + 'vllm:num_requests_waiting_by_reason{reason="capacity"} 4\n'
    assert Scrapes().take(page) == {"requests waiting": (5.0, ""), "held back capacity": (4.0, "")}


def test_old_and_new_names_of_one_thing_are_not_added_up() -> None:
    page = "vllm:kv_cache_usage_perc 0.5\nvllm:gpu_cache_usage_perc 0.5\n"
    assert Scrapes().take(page) == {"kv cache used": (50.0, "%")}
    assert Scrapes().take("vllm:gpu_cache_usage_perc 0.5\n") == {"kv cache used": (50.0, "%")}


def test_dcgm_units_parts_and_a_value_that_is_not_there() -> None:
    page = (
        'DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu="3",UUID="GPU-1"} 0.5\nDCGM_FI_DEV_FB_USED{gpu="3"} 2\n'
        'DCGM_FI_DEV_GPU_UTIL{gpu="3"} NaN\nDCGM_FI_DEV_POWER_USAGE{gpu="3",GPU_I_ID="7"} 68.5\n'
    )
    assert Scrapes().take(page) == {
        "tensor active [3]": (50.0, "%"),
        "device memory used [3]": (2.0 * 2**20, "B"),
        "power mig 7 [3]": (68.5, "W"),
    }


def test_many_wait_while_the_histogram_looks_well() -> None:
    scrapes = Scrapes()
    waiting = "vllm:num_requests_waiting 98\n"
    scrapes.take(waiting + ttft([0, 0, 0, 0], 0.0))
    scrapes.take(waiting + ttft([4, 4, 4, 4], 0.2), after_s=2)
    assert scrapes.marks == ["ttft p95 ≤ 0.1 s is of ended requests only: 98 wait, about 49 s each by Little's law"]
    scrapes.take("vllm:num_requests_waiting 0\n" + ttft([6, 6, 6, 6], 0.3))
    assert scrapes.marks == []
    assert not scrapes.scraper.told


def test_waiting_requests_and_none_that_ends() -> None:
    scrapes = Scrapes(window_s=3.0)
    page = "vllm:num_requests_waiting 15\n" + ttft([4, 4, 4, 4], 0.2)
    marks = []
    for _ in range(6):
        scrapes.take(page)
        marks += scrapes.marks
    assert marks == ["15 requests wait and none ended in 3 s: stuck, or a stale gauge"]


def test_a_sum_that_its_buckets_cannot_have() -> None:
    scrapes = Scrapes()
    scrapes.take(ttft([4, 4, 4, 4], 99.0))
    assert scrapes.marks == ["ttft: its mean 24.75 is not within its buckets, 0 to 0.1: do not trust it"]


def test_a_summary_is_shown_as_told_and_doubted_when_its_mean_differs() -> None:
    page = 'nv_inference_queue_summary_us{{model="m",quantile="0.99"}} {0}\n' + (
        'nv_inference_queue_summary_us_sum{{model="m"}} 1327965\nnv_inference_queue_summary_us_count{{model="m"}} {1}\n'
    )
    well, ill = Scrapes(), Scrapes()
    assert well.take(page.format(500_000, 3)) == {"queue summary m p99": (0.5, "s")}
    assert well.marks == []
    ill.take(page.format(3, 3))
    assert "its mean is 0.4427 s, its quantiles 3e-06 to 3e-06: they disagree" in ill.marks[0]
    assert Scrapes().take(page.format(3, 0)) == {}


def test_buckets_without_bounds_are_refused_by_name() -> None:
    scrapes = Scrapes()
    name = "vllm:time_to_first_token_seconds"
    page = f'# TYPE {name} histogram\n{name}_bucket{{le="+Inf"}} 3\n{name}_count 3\n{name}_sum 1\n'
    assert scrapes.take(page) == {}
    assert "ttft: no classic buckets up to +Inf (a native histogram?), so no quantiles" in scrapes.scraper.missing()


def test_an_unknown_engine_shows_under_its_own_names() -> None:
    scrapes = Scrapes()
    page = "# TYPE queue_depth gauge\nqueue_depth 3\njobs_total {0}\nbuild_info 1\n" + histogram(
        "job_seconds", BOUNDS, [0, 0, 0, 0], 0.0
    ).replace("{", "{{").replace("}", "}}")
    scrapes.take(page.format(1))
    assert scrapes.take(page.format(3)) == {"queue_depth": (3.0, ""), "jobs": (2.0, "/s"), "job n": (0.0, "")}
    assert "engine: none that is known; metrics under their own names" in scrapes.scraper.missing()


def test_ray_serve_end_to_end_is_what_its_proxy_saw() -> None:
    scrapes = Scrapes()
    name, bounds = "ray_serve_http_request_latency_ms", ["50.0", "100.0", "+Inf"]
    ok, failed = (f'application="default",status_code="{code}",' for code in (200, 500))
    open_now = 'ray_serve_num_ongoing_http_requests{node_id="n"} 4\n'
    scrapes.take(histogram(name, bounds, [0, 0, 0], 0.0, ok) + histogram(name, bounds, [0, 0, 0], 0.0, failed))
    rows = scrapes.take(
        open_now + histogram(name, bounds, [0, 3, 3], 240.0, ok) + histogram(name, bounds, [0, 1, 1], 80.0, failed)
    )
    assert rows["e2e default n"] == (4.0, "")
    assert (rows["e2e default p95 lo"], rows["e2e default p95 hi"]) == ((0.05, "s"), (0.1, "s"))
    assert rows["http requests open"] == (4.0, "")


def test_every_engine_has_its_waiting_and_its_latency() -> None:
    pages = {
        "vLLM": "vllm:num_requests_waiting 3", "SGLang": "sglang:num_queue_reqs 3",
        "TensorRT-LLM": "trtllm:num_requests_waiting 3", "TGI": "tgi_queue_size 3",
        "llama.cpp": "llamacpp:requests_deferred 3", "Triton": "nv_inference_pending_request_count 3",
        "Ray Serve": "ray_serve_deployment_queued_queries 3",
    }  # fmt: skip
    for engine, page in pages.items():
        scrapes = Scrapes()
        assert scrapes.take(page) == {"requests waiting": (3.0, "")}, engine
        assert scrapes.scraper.layout.engine == engine
    latencies = {name for name, family in FAMILIES.items() if family.row in ("ttft", "e2e")}
    assert {"gen_ai_server_time_to_first_token_seconds", "tgi_request_duration"} <= latencies


@pytest.mark.parametrize("text", ["", "# HELP a b\n", "<html>no</html>", "a NaN\n"])
def test_a_page_without_a_sample_is_a_failure(text: str) -> None:
    with pytest.raises(FetchError, match="not one sample"):
        Scrapes().take(text)


_VALUES = st.sampled_from(["0", "1", "-1", "NaN", "+Inf", "-Inf", "1e308", "5e-324", "0.3", "9007199254740993"])
_LINES = st.tuples(
    st.sampled_from(
        [
            'vllm:time_to_first_token_seconds_bucket{le="+Inf"}',
            'vllm:time_to_first_token_seconds_bucket{le="1"}',
            'vllm:time_to_first_token_seconds_bucket{le="NaN"}',
            'vllm:time_to_first_token_seconds_bucket{le="-1"}',
            "vllm:time_to_first_token_seconds_sum",
            "vllm:time_to_first_token_seconds_count",
            "vllm:num_requests_waiting",
            "vllm:num_preemptions_total",
            "process_start_time_seconds",
            'nv_inference_queue_summary_us{quantile="0.5"}',
            'nv_inference_queue_summary_us{quantile="2"}',
            "nv_inference_queue_summary_us_sum",
            "nv_inference_queue_summary_us_count",
        ]
    ),
    _VALUES,
)


@given(st.lists(st.lists(_LINES, min_size=1), min_size=2, max_size=5))
def test_whatever_an_engine_counts_rates_and_brackets_stay_in_order(pages: list[list[tuple[str, str]]]) -> None:
    scrapes = Scrapes(window_s=3.0)
    for page in pages:
        try:
            rows = scrapes.take("\n".join(f"{name} {value}" for name, value in page))
        except FetchError:
            continue
        assert all(math.isfinite(value) for value, _ in rows.values())
        assert rows.get("preemptions", (0.0, ""))[0] >= 0
        assert rows.get("ttft n", (0.0, ""))[0] >= 0
        for label in ("p50", "p95", "p99"):
            if f"ttft {label} hi" in rows:
                assert rows[f"ttft {label} lo"][0] <= rows[f"ttft {label} hi"][0]
