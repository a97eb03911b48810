"""Names for files that no importer opens, so that a refusal says what the file is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class _Kind:
    """A format by its first bytes and by patterns that must all occur in the head."""

    name: str
    begins: tuple[bytes, ...] = ()
    has: tuple[bytes, ...] = ()

    def fits(self, head: bytes) -> bool:
        return head.startswith(self.begins or b"") and all(re.search(pattern, head) for pattern in self.has)


_BINARY: Final = (
    _Kind("rocpd database of rocprofv3 (SQLite)", (b"SQLite format 3\0",), (rb"rocpd_",)),
    _Kind("SQLite database", (b"SQLite format 3\0",)),
    _Kind("Python pickle", (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")),
    _Kind("IREE profile bundle (export it: iree-profile queue --format=jsonl FILE)", (b"IRPF", b"IREE")),
    _Kind("HDF5 file", (b"\x89HDF",)),
    _Kind("program", (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"MZ")),
    _Kind("PNG picture", (b"\x89PNG",)),
)
_OBJECTS: Final = (
    _Kind("TensorRT layer information (no times: open what trtexec --exportTimes wrote)", (), (rb'"Layers"\s*:',)),
    _Kind(
        "TensorRT metadata (no times: open what trtexec --exportTimes wrote)",
        (),
        (rb'"(?:performance_summary|build_options|model_options)"',),
    ),
    _Kind(
        "IREE profile summary (sums only: export with iree-profile queue --format=jsonl)",
        (),
        (rb'\A\{"type"\s*:\s*"(?:\w*summary)"',),
    ),
    _Kind(
        "google-benchmark results (means only: record a profile of the same run)",
        (),
        (rb'"context"\s*:', rb'"benchmarks"\s*:', rb'"(?:real_time|num_cpus)"'),
    ),
    _Kind("Tenstorrent NoC simulation (no measured times)", (), (rb'"congestion_model_name"',)),
    _Kind(
        "Tenstorrent Visualizer device data (open the profile_log_device.csv it is made of)", (), (rb'"deviceMeta"',)
    ),
    _Kind("settings of a BurstGPT load generator", (), (rb'"server_config"', rb'"prompt_config"')),
    _Kind("Tenstorrent cluster description", (), (rb'"ethernet_connections"',)),
    _Kind(
        "statistics derived by XProf (no times: open the .xplane.pb or the trace.json.gz)",
        (),
        (rb'\A\{\s*"(?:hloModule|byCategory|byProgram|hloInfoMap|podStatsSequence|cols)"\s*:',),
    ),
    _Kind("JSON of no known profiler"),
)
_ARRAYS: Final = (
    _Kind("ONNX Runtime profile", (), (rb'"cat"\s*:\s*"(?:Session|Node)"',)),
    _Kind(
        'Triton Proton profile (sums per kernel, no times: use proton.start(data="trace"))',
        (),
        (rb'"frame"\s*:', rb'"metrics"\s*:'),
    ),
    _Kind(
        "statistics derived by XProf (no times: open the .xplane.pb or the trace.json.gz)",
        (),
        (rb'\A\[\s*\{\s*"cols"\s*:',),
    ),
    _Kind(
        "TensorRT layer times summed over all runs (no time of each: use trtexec --exportTimes, or nsys for layers)",
        (),
        (rb'"timeMs"',),
    ),
    _Kind("JSON of no known profiler"),
)
_TEXTS: Final = (
    _Kind("IREE compiler statistics (nothing ran: profile the module)", (b";",), (rb"; Aggregate Statistics",)),
    _Kind("Prometheus metrics", (), (rb"(?m)^(?:# (?:HELP|TYPE) \w+|[a-zA-Z_:]\w*\{[^}\n]*\} )",)),
    _Kind(
        "cluster scheduler log (jobs and machines, no work on an accelerator)",
        (),
        (
            rb"\A[^\n]*\b(?:scheduled_time|gpu_milli|jobid|num_gpu|gpu_capacity_num|inst_num|submitted_time|runtime)\b[^\n]*\n",
        ),
    ),
    _Kind("CSV table", (), (rb'\A"?\w[\w .\[\]"()/%:-]*(?:,[\w .\[\]"()/%:-]*)+\r?\n',)),
    _Kind("settings of an MLPerf run", (), (rb"(?m)^[*\w-]+\.[*\w]+\.(?:target_qps|target_latency|min_duration)\b",)),
    _Kind("text"),
)
_BOM: Final = b"\xef\xbb\xbf \t\r\n"


def name_of(head: bytes) -> str:
    """What a file that begins with `head` (decompressed) is, as a person calls it."""
    for kind in _BINARY:
        if kind.fits(head):
            return kind.name
    body = head.lstrip(_BOM)
    kinds = _OBJECTS if body.startswith(b"{") else _ARRAYS if body.startswith(b"[") else _TEXTS
    if kinds is _TEXTS and _looks_binary(head):
        return "binary file of an unknown kind"
    return next(kind.name for kind in kinds if kind.fits(body))


def _looks_binary(head: bytes) -> bool:
    sample = head[:4096]
    return b"\0" in sample or sum(byte < 32 and byte not in b"\t\r\n\f" for byte in sample) > len(sample) // 20
