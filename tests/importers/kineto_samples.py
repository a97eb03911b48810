"""Small Kineto files written by hand, and a way to read one back as rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fusetui.importers import kineto
from fusetui.importers.capture import Capture

MEMORY = 64 << 20
BASE = 1_767_189_312_000_000_000


def launch(name: str, ts: Any, dur: Any, correlation: int, cat: str = "cuda_runtime", **args: Any) -> dict[str, Any]:
    return {
        "ph": "X", "cat": cat, "name": name, "pid": 100, "tid": 100, "ts": ts, "dur": dur,
        "args": {"cbid": 211, "correlation": correlation, **args},
    }  # fmt: skip


def kernel(name: str, ts: Any, dur: Any, correlation: int, cat: str = "kernel", **args: Any) -> dict[str, Any]:
    return {
        "ph": "X", "cat": cat, "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur,
        "args": {"device": 0, "stream": 7, "correlation": correlation, "grid": [1, 1, 1], **args},
    }  # fmt: skip


def operator(name: str, ts: Any, dur: Any, tid: int = 100, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 100, "tid": tid, "ts": ts, "dur": dur, "args": args}


def text_of(events: list[dict[str, Any]], **top: Any) -> str:
    """As Kineto lays a file out: keys, then one event per line, then keys."""
    head = {"schemaVersion": 1, **top}
    lines = ",\n".join("  " + json.dumps(event) for event in events)
    return f'{json.dumps(head)[:-1]}, "traceEvents": [\n{lines}\n  ],\n  "traceName": "/tmp/a].json"\n}}'


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)
    return path


def read(path: Path, content: str | bytes) -> Capture:
    return kineto.read(write(path / "trace.json", content), MEMORY)


def rows_of(capture: Capture) -> list[dict[str, Any]]:
    """All rows; columns that are null are left out of each row."""
    found: list[dict[str, Any]] = []
    for batch in capture.batches:
        batch.validate(full=True)
        found += [{key: value for key, value in row.items() if value is not None} for row in batch.to_pylist()]
    return found


def executions(capture: Capture) -> list[dict[str, Any]]:
    return [row for row in rows_of(capture) if row["kind"] == "execution"]
