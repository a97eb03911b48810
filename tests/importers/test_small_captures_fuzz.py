"""Mutated files of every format in `small_captures`: read or refused with a line, never a crash, never a hang."""

from __future__ import annotations

import gzip
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kineto_samples import MEMORY, rows_of, write
from small_captures import (
    KERNEL_DETAILS,
    SGLANG_LOG,
    VLLM_LOG,
    chakra_node,
    chakra_trace,
    et_node,
    et_trace,
    loadgen_trace,
    mllog,
    sglang_requests,
    tt_device_log,
    tt_operation,
    tt_report,
)
from test_alibaba import BATCHES, SERIES
from test_kineto_fuzz import mutate
from test_torchmemory import SAMPLE as TIMELINE

from fusetui.importers import (
    alibaba_gentd,
    alibaba_minibatch,
    ascend,
    chakra,
    exectrace,
    mlperf,
    mlperf_summary,
    mlperf_trace,
    sglang_log,
    tenstorrent,
    tenstorrent_device,
    torchmemory,
    vllm_log,
)
from fusetui.importers import (
    sglang_requests as sglang_request_log,
)
from fusetui.importers.bytestream import head_of
from fusetui.importers.capture import Importer
from fusetui.telemetry.errors import TelemetryError

CASES = 1000 if os.environ.get("FUSETUI_FUZZ") else 200
_ZONES = [(0, x, 1, "BRISC", "BRISC-KERNEL", 1000 + x, 3000 * (x + 1)) for x in range(4)]
_MM = ["Tensor(float)", "Tensor(float)"]


def _report() -> bytes:
    replay = {"METAL TRACE ID": 1, "METAL TRACE REPLAY SESSION ID": 2, "INPUT_0_W_PAD[LOGICAL]": "1[1]"}
    rows: list[dict[str, Any]] = [tt_operation(f"op {i}", 1000 * i, 5000 * i, 1350, 1350, **replay) for i in range(6)]
    return tt_report([*rows, {"OP CODE": "end", "OP TYPE": "signpost", "HOST START TS": 9000}])


_SAMPLES: dict[str, tuple[Any, Callable[[], bytes]]] = {
    "tenstorrent": (tenstorrent, _report),
    "tenstorrent device": (tenstorrent_device, lambda: tt_device_log(_ZONES)),
    "execution trace": (exectrace, lambda: et_trace([et_node(i, f"mm{i}", [[2, i], [i, 3]], _MM) for i in range(8)])),
    "chakra": (
        chakra,
        lambda: chakra_trace([chakra_node(i, f"n{i}", 4, start=9 + i, took=2, comm_size=i) for i in range(9)]),
    ),
    "memory": (torchmemory, lambda: TIMELINE),
    "loadgen": (mlperf_trace, lambda: loadgen_trace([(f"{i}.5", i, 100 * i + 200) for i in range(9)])),
    "mllog": (mlperf, lambda: "\n".join(mllog(f"result_{i}_ns", i, i * 1.5) for i in range(9)).encode()),
    "summary": (mlperf_summary, lambda: b"MLPerf Results Summary\n\nMin (ns) : 5\nResult is : VALID\nMax: 7\n"),
    "gentd": (alibaba_gentd, lambda: SERIES),
    "minibatch": (alibaba_minibatch, lambda: BATCHES),
    "ascend": (ascend, lambda: KERNEL_DETAILS),
    "vllm": (vllm_log, lambda: VLLM_LOG),
    "sglang": (sglang_log, lambda: SGLANG_LOG),
    "sglang requests": (
        sglang_request_log,
        lambda: sglang_requests([{"e2e_latency": 1.5, "response_sent_to_client_ts": 1e9 + i} for i in range(6)]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(_SAMPLES))
def test_mutations_are_read_or_refused(tmp_path: Path, name: str) -> None:
    module, sample = _SAMPLES[name]
    importer: Importer = module
    data, read = sample(), 0
    lines: list[str] = []
    for case in range(CASES):
        noise = random.Random(case)
        content = mutate(data, noise)
        if case % 5 == 0:
            content = mutate(gzip.compress(content, mtime=0), noise)
        path = write(tmp_path / "fuzz", content)
        try:
            # Only what an importer recognises is given to it.
            rows = rows_of(importer.read(path, MEMORY)) if importer.sniff(head_of(path)) else None
        except TelemetryError as error:
            lines.append(str(error))
            continue
        if rows is not None:
            ends = [row["end_ns"] for row in rows]
            assert ends == sorted(ends)
            assert all(row["end_ns"] >= row["start_ns"] for row in rows)
            read += 1
    assert read >= CASES // 8
    assert not any("\n" in line for line in lines)
