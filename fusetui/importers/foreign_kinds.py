"""Files that are no captures, by what stands in them: what a person calls them, and what to open or run instead.

To name one more, add a line to the table of its outer form; the first that fits wins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

ANY_CAPTURE: Final = "`fusetui replay --formats` lists what opens: profiler traces, request and server logs, Arrow"
_LIVE: Final = "one look at a device: watch it with `fusetui live {}`, keep it with `fusetui record {} -o FILE`"
_XPROF: Final = "open the .xplane.pb or trace.json.gz of the same run"
_TRTEXEC: Final = "open what trtexec --exportTimes wrote, or an nsys export for single layers"
_IREE: Final = "profile a run, then iree-profile queue --format=jsonl FILE"
_LOADGEN: Final = "open mlperf_log_detail.txt or mlperf_log_trace.json of the same run"


@dataclass(frozen=True, slots=True)
class Kind:
    """A format by its first bytes and by patterns that must all occur in the head."""

    what: str
    remedy: str = ANY_CAPTURE
    begins: tuple[bytes, ...] = ()
    has: tuple[bytes, ...] = ()

    def fits(self, head: bytes) -> bool:
        return head.startswith(self.begins or b"") and all(re.search(pattern, head) for pattern in self.has)


def _look(what: str, source: str, *has: bytes) -> Kind:
    """What a vendor's tool printed."""
    return Kind(what, _LIVE.format(source, source), has=has)


BINARY: Final = (
    Kind("SQLite database of no known profiler", begins=(b"SQLite format 3\0",)),
    Kind(
        "Python pickle, which can run code when it is opened",
        "save what is in it as Arrow or Parquet",
        (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"),
    ),
    Kind("IREE profile bundle", "export it: iree-profile queue --format=jsonl FILE", (b"IRPF", b"IREE")),
    Kind("Nsight Compute report", "open an nsys export (nsys export --type sqlite) of the same work", (b"NVR\0",)),
    Kind("HDF5 file", begins=(b"\x89HDF",)),
    Kind("program", begins=(b"\x7fELF", b"\xcf\xfa\xed\xfe", b"MZ")),
    Kind("PNG picture", begins=(b"\x89PNG",)),
    Kind("statistics derived by XProf, sums without times", _XPROF, has=(rb"\A[\s\S]{0,512}tensorflow\.profiler\.",)),
    Kind(
        "statistics derived by XProf, sums without times", _XPROF, has=(rb"\A[\s\S]{0,64}(?:Device|Host)\x1a\x04IDLE",)
    ),
    Kind(
        "ONNX model, which has not run",
        "plan it: fusetui plan FILE --hardware NAME",
        has=(rb"\A\x08[\x03-\x1f](?:\x12[\x00-\x40]|:)",),
    ),
)
UNKNOWN_BINARY: Final = Kind("binary file of an unknown kind")
BY_ENDING: Final = {
    ".nsys-rep": Kind("Nsight Systems report, by its name", "export it: nsys export --type sqlite FILE"),
    ".qdrep": Kind("Nsight Systems report, by its name", "export it: nsys export --type sqlite FILE"),
    ".ncu-rep": Kind("Nsight Compute report, by its name", "open an nsys export (--type sqlite) of the same work"),
    ".rgp": Kind("Radeon GPU Profiler capture, by its name", "record it with rocprofv3 --kernel-trace --hip-trace"),
}
_PERCENTILES: Final = rb'"\w*(?:(?:p50|p90|p95|p99)(?:_\w+)?|_p\d\d)"\s*:'
OBJECTS: Final = (
    _look("report of neuron-monitor", "neuron", rb'"neuron_runtime_data"\s*:'),
    _look("report of tt-smi", "tt-smi", rb'"device_info"\s*:', rb'"board_info"\s*:'),
    _look("report of rocm-smi", "amdsmi", rb'\A\{\s*"card\d+"\s*:'),
    Kind("TensorRT layer information, no times", _TRTEXEC, has=(rb'"Layers"\s*:',)),
    Kind(
        "TensorRT metadata, no single times",
        _TRTEXEC,
        has=(rb'"(?:performance_summary|build_options|model_options)"',),
    ),
    Kind("IREE profile summary, sums only", _IREE, has=(rb'\A\{"type"\s*:\s*"(?:\w*summary)"',)),
    Kind(
        "google-benchmark results, means only",
        "record a profile of the same run",
        has=(rb'"context"\s*:', rb'"benchmarks"\s*:', rb'"(?:real_time|num_cpus)"'),
    ),
    Kind(
        "Tenstorrent NoC simulation, no measured times",
        "open profile_log_device.csv or ops_perf_results of a run",
        has=(rb'"congestion_model_name"',),
    ),
    Kind(
        "Tenstorrent Visualizer device data",
        "open the profile_log_device.csv it is made of",
        has=(rb'"deviceMeta"',),
    ),
    Kind(
        "description of a Tenstorrent device, no times",
        "open profile_log_device.csv or ops_perf_results of the same run",
        has=(rb'\A\{\s*"architecture"\s*:\s*"(?:grayskull|wormhole|blackhole)', rb'"frequency"\s*:'),
    ),
    Kind(
        "Tenstorrent cluster description, no times",
        "open profile_log_device.csv or ops_perf_results of the same run",
        has=(rb'"ethernet_connections"',),
    ),
    Kind(
        "settings of a BurstGPT load generator",
        "open its detail_log, vllm_log and gpu_log, all in one command",
        has=(rb'"server_config"', rb'"prompt_config"'),
    ),
    Kind(
        "statistics derived by XProf, sums without times",
        _XPROF,
        has=(rb'\A\{\s*"(?:hloModule|byCategory|byProgram|hloInfoMap|podStatsSequence|cols)"\s*:',),
    ),
    Kind(
        "results of a benchmark, percentiles of no single times",
        "open the log or the profile they sum up",
        has=(_PERCENTILES,),
    ),
    Kind("JSON of no known profiler"),
)
ARRAYS: Final = (
    Kind("ONNX Runtime profile", has=(rb'"cat"\s*:\s*"(?:Session|Node)"',)),
    _look("report of amd-smi", "amdsmi", rb'\A\[\s*\{\s*"gpu"\s*:\s*\d+', rb'"(?:gfx_activity|socket_power|asic)"\s*:'),
    Kind(
        "Triton Proton profile, sums per kernel without times",
        'record it with proton.start(data="trace")',
        has=(rb'"frame"\s*:', rb'"metrics"\s*:'),
    ),
    Kind("statistics derived by XProf, sums without times", _XPROF, has=(rb'\A\[\s*\{\s*"cols"\s*:',)),
    Kind("answers of an MLPerf run, no times", _LOADGEN, has=(rb'\A\[\s*\{\s*"seq_id"\s*:', rb'"qsl_idx"\s*:')),
    Kind(
        "empty JSON array, nothing was recorded (LoadGen leaves one as mlperf_log_accuracy.json)",
        _LOADGEN,
        has=(rb"\A\[\s*\]?\s*\Z",),
    ),
    Kind(
        "latencies that a client wrote in a layout of its own",
        "write them as CSV with the columns kind (request), name, enqueue_ns, start_ns, end_ns",
        has=(rb'\A\[\s*\{[^{}]*"\w*latenc\w*"\s*:\s*[\d.]',),
    ),
    Kind("JSON of no known profiler"),
)
TEXTS: Final = (
    Kind("IREE compiler statistics, nothing ran", _IREE, (b";",), (rb"; Aggregate Statistics",)),
    Kind(
        "Prometheus metrics, one moment of a server",
        "watch it: fusetui live http://HOST:PORT/metrics",
        has=(rb"(?m)^(?:# (?:HELP|TYPE|UNIT) \w+|# EOF\s*\Z|[a-zA-Z_:]\w*\{[^}\n]*\} )",),
    ),
    _look("table of hl-smi", "hl-smi", rb"\A[^\n]*\b(?:utilization|temperature)\.aip\b|HL-SMI Version"),
    _look("table of xpu-smi", "xpu-smi", rb"\A(?i:timestamp, *deviceid|[^\n]*\bgpu utilization \(%\))"),
    _look(
        "what nvidia-smi printed",
        "nvml",
        rb"NVIDIA-SMI|NVSMI LOG|nvidia_smi_log|\A# gpu +pwr|\A[^\n]*\b(?:utilization|memory|clocks|power)\.[\w.]+",
    ),
    _look(
        "what rocm-smi printed", "amdsmi", rb"ROCm System Management Interface|\Adevice,[^\n]*(?:Temperature|GPU use)"
    ),
    Kind("XLA program (HLO), which has not run", "profile its run with jax.profiler.trace", (b"HloModule",)),
    Kind(
        "MLIR program, which has not run",
        "profile its run",
        has=(rb"(?m)\A(?:\s*//[^\n]*\n|\s*#map[^\n]*\n|\s*#\w+ = [^\n]*\n)*\s*(?:builtin\.)?module\b[^\n]*\{",),
    ),
    Kind(
        "cluster scheduler log, jobs and machines but no work on an accelerator",
        "open a profile or a request log of one of its jobs",
        has=(
            rb"\A[^\n]*\b(?:scheduled_time|gpu_milli|jobid|num_gpu|gpu_capacity_num|inst_num|submitted_time|runtime)\b[^\n]*\n",
        ),
    ),
    Kind("CSV table of no known tool", has=(rb'\A"?\w[\w .\[\]"()/%:-]*(?:,[\w .\[\]"()/%:-]*)+\r?\n',)),
    Kind(
        "settings of an MLPerf run",
        _LOADGEN,
        has=(rb"(?m)^[*\w-]+\.[*\w]+\.(?:target_qps|target_latency|min_duration)\b",),
    ),
    Kind("text that is no log of a known tool"),
)
