"""The facts that a capture may tell, what stays unknown without each, and the option that would have recorded it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing worth knowing of every execution, and the column that tells it."""

    name: str
    column: str
    unknown: str


FACTS: Final = (
    Fact("queue wait", "enqueue_ns", "how long work waited, how deep its queue was, who waited unfairly"),
    Fact("launch cost", "launch_ns", "what launching costs the host, and what fusing would save of it"),
    Fact("streams", "stream", "which queue work was in: depth and fairness per queue"),
    Fact("devices", "device", "which device ran it"),
    Fact("cores", "core", "imbalance between the cores of a device"),
    Fact("requests", "request", "latency of what a user waits for; work is judged by itself"),
    Fact("batches", "batch", "how many requests shared the work, and what waiting for them cost"),
    Fact("shapes", "shape", "which sizes came: padding, plans per shape, a model's prediction"),
    Fact("work (FLOP)", "flops", "rates of computation"),
    Fact("DRAM bytes", "dram_bytes", "measured traffic, bursts and on-chip reuse (a plan's are modelled)"),
    Fact("on-chip bytes", "sram_bytes", "measured on-chip traffic"),
    Fact("plans", "plan", "which compile plan ran"),
    Fact("fusion groups", "group", "which operators were fused (names may tell)"),
    Fact("mapping", "mapping", "whether the planned, an adapted or the fallback code ran"),
    Fact("counters", "value", "utilisation, power, clocks and memory beside the work"),
)

_SERVER_LOG: Final = {"cores": "a profile of the same run", "shapes": "a profile of the same run"}
_OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "kineto": {
        "queue wait": "profile(activities=[CPU, CUDA]), with warm-up steps before the ones kept",
        "launch cost": "profile(activities=[CPU, CUDA])",
        "devices": "profile(activities=[CPU, CUDA]) on a machine with a device",
        "requests": "schedule=… and prof.step() after each step",
        "shapes": "profile(record_shapes=True)",
        "plans": "run it under torch.compile",
        "mapping": "run it under torch.compile",
        "counters": "profile(profile_memory=True)",
    },
    "nsys": {
        "queue wait": "nsys profile --trace=cuda,nvtx",
        "launch cost": "nsys profile --trace=cuda,nvtx",
        "requests": "an NVTX range around each step, and --trace=cuda,nvtx",
        "counters": "nsys profile --gpu-metrics-devices=all",
    },
    "nsys-recipe": {
        "queue wait": "the .sqlite of the same report (nsys export --type sqlite)",
        "launch cost": "the .sqlite of the same report",
        "streams": "the .sqlite of the same report",
    },
    "rocprofv3": {
        "queue wait": "rocprofv3 --hip-trace --kernel-trace; open the folder of tables",
        "launch cost": "rocprofv3 --hip-trace --kernel-trace",
        "requests": "rocprofv3 --marker-trace with a roctx range around each step",
    },
    "rocprof-compute": {
        "queue wait": "rocprofv3 --hip-trace --kernel-trace",
        "launch cost": "rocprofv3 --hip-trace --kernel-trace",
    },
    "rpd": {
        "queue wait": "runTracer.sh, which records the API too",
        "counters": "the monitor of rpdTracer (rocm-smi)",
    },
    "onnxruntime": {
        "devices": "the trace of the execution provider's own profiler (nsys, rocprofv3)",
        "queue wait": "nsys or rocprofv3 around the session",
        "shapes": "ONNX Runtime 1.8 or later",
    },
    "trtexec": {"shapes": "trtexec --exportLayerInfo names the layers; nsys has each kernel"},
    "tensorrt-iprofiler": {"queue wait": "trtexec --exportTimes", "streams": "nsys profile --trace=cuda"},
    "tenstorrent": {
        "cores": "open profile_log_device.csv of the same run",
        "shapes": "open ops_perf_results of the same run",
    },
    "xplane": {"requests": "jax.profiler.StepTraceAnnotation around each step"},
    "xprof": {
        "queue wait": "open the .xplane.pb of the same run",
        "requests": "jax.profiler.StepTraceAnnotation around each step",
    },
    "ascend": {"queue wait": "trace_view.json, written by CANN at level 1", "shapes": "profiler_level=Level1"},
    "iree": {"queue wait": "iree-profile queue --format=jsonl", "launch cost": "iree-profile queue --format=jsonl"},
    "pytorch-execution-trace": {"queue wait": "torch.profiler of the same run", "streams": "torch.profiler"},
    "vllm": {"requests": "vllm serve --otlp-traces-endpoint, or a client's log", **_SERVER_LOG},
    "sglang": {"requests": "--export-metrics-to-file", **_SERVER_LOG},
    "host": {"requests": "a producer's own telemetry", "queue wait": "Linux with run-queue statistics"},
    "azure-llm": _SERVER_LOG,
    "mooncake": _SERVER_LOG,
    "burstgpt": _SERVER_LOG,
}


_NONE: Final = frozenset(
    (
        "aiu", "alibaba-gentd26", "alibaba-gpu-v2020", "burstgpt-serving", "chakra", "chrome-trace", "mlperf",
        "mlperf-loadgen", "perfetto", "pytorch-memory",
    )
)  # fmt: skip
"""Sources of which we know no option."""


def option_for(source: str, fact: Fact) -> str | None:
    """What would have recorded a fact, by the source that a capture's header names; None: nothing that we know of.

    A source that no importer names is a producer of the contract: it may send the column.
    """
    if source in _OPTIONS:
        return _OPTIONS[source].get(fact.name)
    return None if source in _NONE else f"the producer of it, as column {fact.column}"
