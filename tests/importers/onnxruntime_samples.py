"""Small ONNX Runtime profiles written by hand."""

from __future__ import annotations

import json
from typing import Any


def node(name: str, op: str, ts: Any, dur: Any, inputs: list[Any], outputs: list[Any], **args: Any) -> dict[str, Any]:
    """The kernel time of one node; sizes as lists of {type: sizes}."""
    return {
        "cat": "Node", "pid": 7, "tid": 9, "dur": dur, "ts": ts, "ph": "X", "name": f"{name}_kernel_time",
        "args": {
            "op_name": op, "provider": "CPUExecutionProvider", "node_index": "3", "input_type_shape": inputs,
            "output_type_shape": outputs, "thread_scheduling_stats": {"main_thread": {"core": 1, "block_size": [1]}},
            **args,
        },
    }  # fmt: skip


def session(name: str, ts: int, dur: int) -> dict[str, Any]:
    return {"cat": "Session", "pid": 7, "tid": 9, "dur": dur, "ts": ts, "ph": "X", "name": name, "args": {}}


def runs(count: int) -> list[dict[str, Any]]:
    """A session that ran a two-node model `count` times, 100 us apart."""
    events = [session("model_loading_array", 2, 50), session("session_initialization", 60, 400)]
    for i in range(count):
        at = 1000 + 100 * i
        x, y = {"float": [2, 8, 16]}, {"float": [2, 8, 32]}
        table = [{"float": [9, 4]}, {"int64": [3]}, {"int64": []}]
        events += [
            node("MatMul_1", "MatMul", at + 1, 40 + i, [x], [y]),
            node("Gather_2", "Gather", at + 50, 5, table, [{"float": [3, 4]}]),
            session("SequentialExecutor::Execute", at + 1, 60),
            session("model_run", at, 70),
        ]
    return events


def text_of(events: list[dict[str, Any]]) -> str:
    """As ONNX Runtime lays a file out: one event per line."""
    return "[\n" + ",\n".join(json.dumps(event) for event in events) + "\n]\n"
