"""Records of one process of a rocprofv3 JSON file as device work, calls and marks."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from fusetui.importers.devicework import DeviceWork, Ints
from fusetui.importers.rocprof_tables import key_of
from fusetui.importers.rocprof_types import Handle, Record, Symbol
from fusetui.telemetry.text import safe_text

_GPU: Final = 2
_MAX_AGENTS: Final = 1024
_COPY: Final = "MEMORY_COPY"
_BIG: Final = 1 << 62


class Process:
    """One process; `take` its arrays in file order.

    begun    its metadata has come
    host     the machine, "" when not told
    devices  hardware facts
    """

    def __init__(self, number: int, found: DeviceWork) -> None:
        self.begun, self.host, self.devices = False, "", dict[str, str]()
        self._number, self._found, self._prefix = number, found, ""
        self._nodes: dict[int, tuple[int, bool]] = {}
        self._kernels: dict[int, int] = {}
        self._operations: dict[Any, list[Any]] = {}
        self._markers: dict[int, str] = {}
        self._thread = f"thread {number}/"

    def take(self, key: str, values: Any) -> None:
        """Records of an array, or the value of a key that was decoded whole."""
        if key == "metadata":
            self._take_metadata(values)
        elif key == "agents":
            self._take_agents(values)
        elif key == "buffer_records":
            self._take_operations(values)
        elif key == "kernel_symbols":
            self._take_symbols(values)
        elif key == "kernel_dispatch":
            self._take_dispatches(values)
        elif key == "memory_copy":
            self._take_copies(values)
        elif key == "marker_api":
            self._take_markers(values)
        else:
            self._take_calls(values)

    def _take_metadata(self, value: Any) -> None:
        self.begun = True
        node = value.get("node") if isinstance(value, dict) else None
        self.host = str(node.get("hostname", "")) if isinstance(node, dict) else ""
        pid = value.get("pid") if isinstance(value, dict) else None
        if isinstance(pid, int):
            self._thread = f"thread {pid}/"
        self._prefix = f"{pid if isinstance(pid, int) else self._number}/" if self._number else ""

    def _take_agents(self, values: Any) -> None:
        for agent in values[:_MAX_AGENTS] if isinstance(values, list) else ():
            try:
                handle, node, is_gpu = int(agent["id"]["handle"]), int(agent["node_id"]), agent["type"] == _GPU
            except (KeyError, TypeError, ValueError):
                continue
            self._nodes[handle] = (node if 0 <= node < 1 << 31 else -1, is_gpu)
            if is_gpu:
                name = agent.get("product_name") or agent.get("name")
                self.devices[f"device {node}"] = safe_text(f"{name}, {agent.get('cu_count')} CUs", 200)

    def _take_operations(self, values: Any) -> None:
        for number, entry in enumerate(values if isinstance(values, list) else ()):
            if isinstance(entry, dict) and isinstance(entry.get("operations"), list):
                self._operations[number] = self._operations[entry.get("kind")] = entry["operations"]

    def _take_symbols(self, symbols: list[Symbol]) -> None:
        for symbol in symbols:
            name = symbol.formatted_kernel_name or symbol.kernel_name
            self._kernels[symbol.kernel_id] = self._found.names[name or f"kernel {symbol.kernel_id}"]

    def _take_dispatches(self, records: list[Record]) -> None:
        launched = [(record, record.dispatch_info) for record in records if record.dispatch_info is not None]
        records, dispatches = [r for r, _ in launched], [d for _, d in launched]
        names = [self._kernels.get(d.kernel_id, -1) for d in dispatches]
        unknown = [
            n if n >= 0 else self._found.names[f"kernel {d.kernel_id}"] for n, d in zip(names, dispatches, strict=True)
        ]
        self._found.add_work(
            *_span(records),
            correlation=self._keys(records),
            device=np.array([self._node(d.agent_id)[0] for d in dispatches], np.int64),
            stream=self._found.streams.codes([f"{self._prefix}{d.queue_id.handle}" for d in dispatches]),
            name=np.array(unknown, np.int32),
        )

    def _node(self, handle: Handle | None) -> tuple[int, bool]:
        return self._nodes.get(handle.handle, (-1, False)) if handle is not None else (-1, False)

    def _take_copies(self, records: list[Record]) -> None:
        ends = [(self._node(record.src_agent_id), self._node(record.dst_agent_id)) for record in records]
        streams = [f"{self._prefix}copies {r.stream_id.handle if r.stream_id else '?'}" for r in records]
        self._found.add_work(
            *_span(records),
            correlation=self._keys(records),
            device=np.array([target[0] if target[1] else source[0] for source, target in ends], np.int64),
            stream=self._found.streams.codes(streams),
            name=self._found.names.codes([self._operation(record, _COPY) for record in records]),
        )

    def _operation(self, record: Record, otherwise: str) -> str:
        names = self._operations.get(record.kind, ()) if isinstance(record.kind, (int, str)) else ()
        number = record.operation
        if isinstance(number, str):
            return number
        return str(names[number]) if isinstance(number, int) and 0 <= number < len(names) else otherwise

    def _take_calls(self, records: list[Record]) -> None:
        start, end = _span(records)
        self._found.add_calls(start, end, correlation=self._keys(records))
        self._found.add_host(
            start,
            end,
            thread=self._threads(records),
            name=self._found.names.codes([self._operation(record, "call") for record in records]),
        )

    def _take_markers(self, records: list[Record]) -> None:
        for record in records:
            if record.key >= 0 and isinstance(record.value, str):
                self._markers[record.key] = record.value
        records = [record for record in records if record.start_timestamp >= 0]
        names = [self._markers.get(r.correlation_id.internal) or self._operation(r, "marker") for r in records]
        name = self._found.names.codes(names)
        self._found.add_marks(*_span(records), name=name, stream=self._threads(records))

    def _threads(self, records: list[Record]) -> Any:
        return self._found.streams.codes([f"{self._thread}{record.thread_id}" for record in records])

    def _keys(self, records: list[Record]) -> Ints:
        return key_of(self._number, _numbers([record.correlation_id.internal for record in records]))


def _span(records: list[Record]) -> tuple[Ints, Ints]:
    return _numbers([r.start_timestamp for r in records]), _numbers([r.end_timestamp for r in records])


def _numbers(values: list[int]) -> Ints:
    try:
        return np.array(values, np.int64)
    except OverflowError:
        return np.array([value if abs(value) < _BIG else -_BIG for value in values], np.int64)
