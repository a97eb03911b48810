"""What serving engines and device exporters call things, and what fusetui calls them.

Written with `_` for `:` (older TensorRT-LLM, and vLLM through a collector, differ only in that). Names that moved
between versions stand side by side. Times are given in the unit of the engine and scaled to seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["gauge", "counter", "histogram", "summary"]


@dataclass(frozen=True, slots=True)
class Family:
    """A metric family: what its rows are called, in which unit, and which labels keep its series apart.

    scale    what a value is multiplied with to be in `unit`
    split    label whose value becomes part of the row's name; all other labels but the device are put together
    combine  how gauges are put together
    """

    name: str
    kind: Kind
    row: str
    unit: str = ""
    scale: float = 1.0
    split: str = ""
    combine: Literal["sum", "max"] = "sum"


ENGINES: Final = {
    "vllm_": "vLLM", "sglang_": "SGLang", "trtllm_": "TensorRT-LLM", "tgi_": "TGI", "nv_inference_": "Triton",
    "ray_serve_": "Ray Serve", "gen_ai_": "OpenTelemetry GenAI", "llamacpp_": "llama.cpp", "DCGM_FI_": "DCGM exporter",
    "fusetui_": "fusetui",
}  # fmt: skip


def _times(prefix: str, names: dict[str, str], suffix: str = "", scale: float = 1.0) -> list[Family]:
    return [Family(prefix + name + suffix, "histogram", row, "s", scale) for name, row in names.items()]


def _gauges(prefix: str, names: dict[str, str]) -> list[Family]:
    return [Family(prefix + name, "gauge", row) for name, row in names.items()]


def _shares(prefix: str, names: dict[str, str], scale: float = 100.0) -> list[Family]:
    return [Family(prefix + name, "gauge", row, "%", scale, combine="max") for name, row in names.items()]


def _counts(prefix: str, names: dict[str, str], split: str = "") -> list[Family]:
    return [Family(prefix + name, "counter", row, "/s", split=split) for name, row in names.items()]


_VLLM: Final = [
    *_times("vllm_", {
        "time_to_first_token_seconds": "ttft", "e2e_request_latency_seconds": "e2e",
        "inter_token_latency_seconds": "inter-token", "time_per_output_token_seconds": "inter-token",
        "request_time_per_output_token_seconds": "time per token", "request_queue_time_seconds": "queue wait",
        "request_prefill_time_seconds": "prefill", "request_decode_time_seconds": "decode",
        "request_inference_time_seconds": "inference",
    }),
    Family("vllm_iteration_tokens_total", "histogram", "tokens per step"),
    *_gauges("vllm_", {
        "num_requests_running": "requests running", "num_requests_waiting": "requests waiting",
        "num_requests_swapped": "requests swapped",
    }),
    *_shares("vllm_", {"kv_cache_usage_perc": "kv cache used", "gpu_cache_usage_perc": "kv cache used"}),
    *_counts("vllm_", {
        "num_preemptions": "preemptions", "prompt_tokens": "prompt tokens", "generation_tokens": "generation tokens",
        "request_success": "requests finished", "prefix_cache_queries": "prefix cache queries",
        "prefix_cache_hits": "prefix cache hits",
    }),
    *_counts("vllm_", {"admission_rejections": "rejections"}, "reason"),
    Family("vllm_num_requests_waiting_by_reason", "gauge", "held back", split="reason"),
]  # fmt: skip

_SGLANG: Final = [
    *_times("sglang_", {
        "time_to_first_token_seconds": "ttft", "e2e_request_latency_seconds": "e2e",
        "inter_token_latency_seconds": "inter-token", "time_per_output_token_seconds": "inter-token",
        "request_time_per_output_token_seconds": "time per token", "queue_time_seconds": "queue wait",
        "dp_attention_sync_wait_seconds": "dp sync wait",
    }),
    Family("sglang_per_stage_req_latency_seconds", "histogram", "stage", "s", split="stage"),
    Family("sglang_dp_attention_token_imbalance_ratio", "histogram", "dp token imbalance"),
    *_gauges("sglang_", {
        "num_running_reqs": "requests running", "num_queue_reqs": "requests waiting",
        "num_retracted_reqs": "requests retracted", "num_paused_reqs": "requests paused",
    }),
    Family("sglang_gen_throughput", "gauge", "generation throughput", "tokens/s"),
    *_shares("sglang_", {"token_usage": "kv cache used", "cache_hit_rate": "prefix cache hit rate"}),
    *_counts("sglang_", {"prompt_tokens": "prompt tokens", "generation_tokens": "generation tokens"}),
    *_counts("sglang_", {"cuda_graph_passes": "graph passes"}, "mode"),
    *_counts("sglang_", {"dp_attention_tokens": "dp tokens"}, "kind"),
]  # fmt: skip

_TRTLLM: Final = [
    *_times("trtllm_", {
        "time_to_first_token_seconds": "ttft", "e2e_request_latency_seconds": "e2e",
        "time_per_output_token_seconds": "inter-token", "request_queue_time_seconds": "queue wait",
        "request_prefill_time_seconds": "prefill", "request_decode_time_seconds": "decode",
        "request_inference_time_seconds": "inference", "iteration_latency_seconds": "step",
    }),
    *_gauges("trtllm_", {
        "num_requests_running": "requests running", "num_requests_waiting": "requests waiting",
        "num_paused_requests": "requests paused", "num_scheduled_requests": "requests scheduled",
        "max_batch_size_runtime": "batch limit at run time", "max_batch_size_static": "batch limit planned",
    }),
    *_shares("trtllm_", {"kv_cache_utilization": "kv cache used"}),
    *_counts("trtllm_", {"request_success": "requests finished"}),
]  # fmt: skip

_TGI: Final = [
    *_times("tgi_request_", {
        "duration": "e2e", "queue_duration": "queue wait", "inference_duration": "inference",
        "validation_duration": "validation", "mean_time_per_token_duration": "time per token",
    }),
    *(Family(f"tgi_batch_{what}_duration", "histogram", f"batch {what}", "s", split="method")
      for what in ("forward", "decode", "filter", "inference")),
    *_gauges("tgi_", {"queue_size": "requests waiting", "batch_current_size": "requests running"}),
    Family("tgi_batch_next_size", "histogram", "next batch size"),
    *_counts("tgi_", {"request_success": "requests finished", "request_count": "requests received"}),
]  # fmt: skip

_STAGES: Final = ("request", "queue", "compute_input", "compute_infer", "compute_output")
_TRITON: Final = [
    *(Family(f"nv_inference_{stage}_summary_us", "summary", f"{stage.replace('_', ' ')} summary", "s", 1e-6, "model")
      for stage in _STAGES),
    # Microseconds spent per second: the mean number of requests in that stage.
    *(Family(f"nv_inference_{stage}_duration_us", "counter", f"mean in {stage.replace('_', ' ')}", "", 1e-6, "model")
      for stage in _STAGES),
    *_counts("nv_inference_", {
        "request_success": "requests finished", "request_failure": "requests failed", "count": "inferences",
        "exec_count": "executions",
    }, "model"),
    Family("nv_inference_pending_request_count", "gauge", "requests waiting", split="model"),
    Family("nv_gpu_utilization", "gauge", "gpu util", "%", 100.0, "gpu_uuid"),
    Family("nv_gpu_memory_used_bytes", "gauge", "device memory used", "B", split="gpu_uuid"),
    Family("nv_gpu_power_usage", "gauge", "power", "W", split="gpu_uuid"),
]  # fmt: skip

_RAY: Final = [
    *(Family(f"ray_serve_{name}_ms", "histogram", row, "s", 1e-3, "deployment") for name, row in {
        "deployment_processing_latency": "replica latency", "request_router_fulfillment_time": "router wait",
        "batch_wait_time": "batch wait", "batch_execution_time": "batch run",
    }.items()),
    # As the proxy sees it: routers and replicas included, the client's own way to it not.
    Family("ray_serve_http_request_latency_ms", "histogram", "e2e", "s", 1e-3, "application"),
    Family("ray_serve_grpc_request_latency_ms", "histogram", "grpc e2e", "s", 1e-3, "application"),
    Family("ray_serve_num_ongoing_http_requests", "gauge", "http requests open"),
    Family("ray_serve_actual_batch_size", "histogram", "batch size", split="deployment"),
    Family("ray_serve_batch_utilization_percent", "histogram", "batch filled", "%", split="deployment"),
    *(Family(f"ray_serve_{name}", "gauge", row, split="deployment") for name, row in {
        "deployment_queued_queries": "requests waiting", "replica_processing_queries": "requests running",
        "batch_queue_length": "batch queue length", "request_router_queue_len": "router queue length",
    }.items()),
    Family("ray_serve_replica_utilization_percent", "gauge", "replica busy", "%", 1.0, "deployment", "max"),
    *_counts("ray_serve_", {
        "deployment_request_counter": "requests finished", "num_router_requests": "router requests",
        "batches_processed": "batches",
    }, "deployment"),
]  # fmt: skip

_OTEL: Final = [
    *_times("gen_ai_server_", {
        "request_duration": "e2e", "time_to_first_token": "ttft", "time_per_output_token": "time per token",
    }, "_seconds"),
    *_times("gen_ai_client_", {"operation_duration": "client e2e"}, "_seconds"),
    Family("gen_ai_client_token_usage", "histogram", "tokens", split="gen_ai_token_type"),
]  # fmt: skip

_LLAMACPP: Final = [
    *_gauges("llamacpp_", {
        "requests_processing": "requests running", "requests_deferred": "requests waiting",
    }),
    Family("llamacpp_prompt_tokens_seconds", "gauge", "prompt throughput", "tokens/s"),
    Family("llamacpp_predicted_tokens_seconds", "gauge", "generation throughput", "tokens/s"),
    *_shares("llamacpp_", {"kv_cache_usage_ratio": "kv cache used"}),
    *_counts("llamacpp_", {"prompt_tokens": "prompt tokens", "tokens_predicted": "generation tokens"}),
]  # fmt: skip

_DCGM: Final = [
    *(Family(f"DCGM_FI_{name}", "gauge", row, unit, scale, "GPU_I_ID", "max") for name, row, unit, scale in (
        ("PROF_GR_ENGINE_ACTIVE", "gpu active", "%", 100.0), ("PROF_SM_ACTIVE", "sm active", "%", 100.0),
        ("PROF_SM_OCCUPANCY", "sm occupancy", "%", 100.0), ("PROF_DRAM_ACTIVE", "dram active", "%", 100.0),
        ("PROF_PIPE_TENSOR_ACTIVE", "tensor active", "%", 100.0), ("PROF_PCIE_TX_BYTES", "pcie sent", "B/s", 1.0),
        ("PROF_PCIE_RX_BYTES", "pcie received", "B/s", 1.0), ("DEV_GPU_UTIL", "gpu util", "%", 1.0),
        ("DEV_MEM_COPY_UTIL", "memory copy util", "%", 1.0), ("DEV_FB_USED", "device memory used", "B", 2.0**20),
        ("DEV_POWER_USAGE", "power", "W", 1.0), ("DEV_SM_CLOCK", "sm clock", "MHz", 1.0),
        ("DEV_MEM_CLOCK", "memory clock", "MHz", 1.0), ("DEV_GPU_TEMP", "temperature", "°C", 1.0),
        ("DEV_XID_ERRORS", "last xid", "", 1.0),
        ("PROF_PIPE_FP16_ACTIVE", "fp16 active", "%", 100.0), ("PROF_PIPE_FP32_ACTIVE", "fp32 active", "%", 100.0),
        ("PROF_PIPE_FP64_ACTIVE", "fp64 active", "%", 100.0),
    )),
    # Why clocks were held back: by name. The violation counters are left out, their unit differs by version.
    Family("DCGM_EXP_CLOCK_EVENTS_COUNT", "gauge", "clock events", split="clock_event"),
    Family("DCGM_EXP_XID_ERRORS_COUNT", "gauge", "xid", split="xid"),
    # The energy of a second in mJ is its mean power.
    Family("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "mean power", "W", 1e-3, "GPU_I_ID"),
]  # fmt: skip

_FUSETUI: Final = [
    *(Family(f"fusetui_{name}_seconds", "histogram", row, "s", split="stream") for name, row in {
        "queue_wait": "queue wait", "service": "service", "request_latency": "e2e",
    }.items()),
    *_counts("fusetui_", {"rows": "rows"}, "kind"),
    *_counts("fusetui_", {"mapped_executions": "executions"}, "mapping"),
    *_counts("fusetui_", {"source_dropped_rows": "rows dropped", "recording_lost_rows": "rows not recorded"}),
    Family("fusetui_mapping_share_ratio", "gauge", "share", "%", 100.0, "mapping", "max"),
    Family("fusetui_open_executions", "gauge", "executions", split="state"),
    Family("fusetui_oldest_open_seconds", "gauge", "oldest waiting", "s", combine="max"),
    *_gauges("fusetui_", {"imbalance_ratio": "imbalance", "jain_index": "jain"}),
]  # fmt: skip

FAMILIES: Final = {
    family.name: family
    for families in (_VLLM, _SGLANG, _TRTLLM, _TGI, _TRITON, _RAY, _OTEL, _LLAMACPP, _DCGM, _FUSETUI)
    for family in families
}


def engine_of(name: str) -> str | None:
    """Who exports a metric of that name, None when it is nobody known."""
    plain = name.replace(":", "_")
    return next((engine for prefix, engine in ENGINES.items() if plain.startswith(prefix)), None)
