"""Streamed profiles against the files `fusetui replay` opens: `python tests/bench/bench_profile_truth.py`.

Real PyTorch and ONNX Runtime on the CPU (both and `onnx` must be installed). Prints, of each, the rows of the exported
files, the rows that came over the socket, and how many are the same in every column.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from socket import AF_UNIX, socket
from typing import Any

from fusetui.emit import ProfileStream
from fusetui.importers.open import open_capture
from fusetui.telemetry.reader import StreamReader

MEMORY = 64 << 20
_TIMES = ("enqueue_ns", "start_ns", "end_ns")


class Reader(threading.Thread):
    """A viewer that keeps the rows."""

    def __init__(self, path: str) -> None:
        super().__init__(daemon=True)
        self.rows: list[dict[str, Any]] = []
        self.listener = socket(AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()

    def run(self) -> None:
        connection, _ = self.listener.accept()
        with connection, connection.makefile("rb") as file:
            for batch in StreamReader(file, "socket"):
                self.rows += batch.to_pylist()


def replayed(paths: Iterable[Path], origin_ns: int = 0) -> list[dict[str, Any]]:
    """The rows of captures, as `fusetui replay` opens them, their times moved by origin_ns."""
    rows: list[dict[str, Any]] = []
    for path in paths:
        trace = open_capture([path], memory_bytes=MEMORY)
        while not trace.complete:
            trace.refresh()
        for number in range(len(trace.index().rows)):
            rows += trace.read(number).to_pylist()
        trace.close()
    for row in rows:
        row.update({name: row[name] + origin_ns for name in _TIMES if row[name] is not None})
    return rows


def torch_windows(folder: Path, stream: ProfileStream) -> list[dict[str, Any]]:
    import torch

    paths: list[Path] = []

    class Kept:
        """A window can be written once only, so the file that is streamed is copied."""

        def __init__(self, profiler: Any) -> None:
            self.profiler = profiler

        def export_chrome_trace(self, path: str) -> None:
            self.profiler.export_chrome_trace(path)
            paths.append(Path(shutil.copy(path, folder / f"w{len(paths)}.json")))

    block = torch.nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
    inputs = torch.rand(4, 32, 128)
    schedule = torch.profiler.schedule(wait=2, warmup=1, active=2)
    with torch.profiler.profile(
        schedule=schedule, on_trace_ready=lambda p: stream.torch_trace(Kept(p)), record_shapes=True
    ) as profiler:
        for _ in range(30):
            block(inputs).sum().backward()
            profiler.step()
    return replayed(paths)


def onnx_runs(folder: Path, stream: ProfileStream) -> list[dict[str, Any]]:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper

    weights = helper.make_tensor("w", TensorProto.FLOAT, [256, 256], np.ones(65536, np.float32))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 256]) for name in ("x", "z")]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Relu", ["y"], ["z"])]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(folder / "m.onnx"))
    options = onnxruntime.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(folder / "ort")
    session = onnxruntime.InferenceSession(str(folder / "m.onnx"), options, providers=["CPUExecutionProvider"])
    for n in range(200):
        session.run(None, {"x": np.ones((1 + n % 8, 256), np.float32)})
    origin_ns = session.get_profiling_start_time_ns()
    stream.onnx_profile(session)
    return replayed(folder.glob("ort*.json"), origin_ns)


def main() -> None:
    wrong = 0
    for name, work in (("PyTorch", torch_windows), ("ONNX Runtime", onnx_runs)):
        with tempfile.TemporaryDirectory() as text:
            folder = Path(text)
            reader = Reader(f"{folder}/s")
            reader.start()
            with ProfileStream(f"unix:{folder}/s", source="truth", most_waiting=100) as stream:
                expected = work(folder, stream)
            reader.join(5)
        told, came = (Counter(map(repr, rows)) for rows in (expected, reader.rows))
        same = sum((told & came).values())
        kinds = ", ".join(f"{n:,} {kind}s" for kind, n in Counter(row["kind"] for row in reader.rows).items())
        print(
            f"{name}: {len(expected):,} rows in the files, {len(reader.rows):,} streamed ({kinds}), {same:,} the same"
        )
        wrong += same != len(expected) or same != len(reader.rows)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
