"""What happened on the made-up device as contract rows, in order of completion."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from fusetui.sources.load_device import CHUNK_NS, Device, Kernels
from fusetui.sources.load_work import (
    INCIDENT_FROM_NS,
    KERNEL_DRAM,
    KERNEL_FLOPS,
    KERNEL_REUSE,
    KERNELS,
    LOAD_BATCH,
    LOADS,
    SHAPE_MAPPING,
    SHAPES,
    Ints,
    Requests,
    in_incident,
)
from fusetui.sources.words import coded
from fusetui.telemetry.schema import COUNTER, EXECUTION, KINDS, MAPPINGS, MARK, REQUEST, SCHEMA, build_batch

PLAN: Final = "made-up plan"
_STREAMS: Final = tuple(load.name for load in LOADS)
_COUNTERS: Final = ("dram", "power")
_MARKS: Final = ("incident: core 3 slow, prefill burst", "incident over")
_NAMES: Final = (*KERNELS, *_STREAMS, *_COUNTERS, *_MARKS)
_UNITS: Final = ("GB/s", "W")
_IDLE_W, _BUSY_W = 120.0, 580.0
_COUNTER_CHUNKS: Final = 5
_OPEN_CHUNKS: Final = 10

Columns = dict[str, np.ndarray[Any, Any]]

_FILL: Final = {
    "enqueue_ns": -1, "start_ns": -1, "end_ns": -1, "launch_ns": -1, "device": -1, "core": -1, "stream": -1,
    "request": -1, "plan": -1, "group": -1, "mapping": -1, "shape": -1, "batch": -1, "flops": np.nan, "dram_bytes": -1,
    "sram_bytes": -1, "value": np.nan, "unit": -1,
}  # fmt: skip
_WORDS: Final = {
    "kind": KINDS, "name": _NAMES, "stream": _STREAMS, "plan": (PLAN,), "mapping": MAPPINGS, "shape": SHAPES,
    "unit": _UNITS,
}  # fmt: skip


class Rows:
    """Steps a device and yields rows as they complete; work under way is kept until it is done."""

    def __init__(self, device: Device, devices: int, cores_each: int) -> None:
        self._device = device
        self._devices = devices
        self._cores_each = cores_each
        self._chunks = 0
        self._running: Kernels | None = None
        self._first_open = 0
        self._open = Requests(*(np.zeros(0, np.int64) for _ in range(4)))
        self._open_start = np.zeros(0, np.int64)
        self._open_end = np.zeros(0, np.int64)
        self._dram = np.zeros(devices)
        self._busy = np.zeros(devices)

    @property
    def position_ns(self) -> int:
        """Time since the start up to which everything has come out."""
        return self._device.position_ns

    def step(self) -> list[Columns]:
        """Rows of the next 100 ms, in order; times since the start, -1 and NaN for null."""
        from_ns = self.position_ns
        parts = self._marks(from_ns)
        requests, scheduled = self._device.advance()
        now_ns = self.position_ns
        self._chunks += 1
        self._take_in(requests, scheduled)
        running = scheduled if self._running is None else self._running.plus(scheduled)
        done = running.end_ns <= now_ns
        self._running = running.take(~done)
        finished = self._executions(running.take(done))
        parts.append(_sorted([finished, self._finished_requests(now_ns)]))
        if self._chunks % _OPEN_CHUNKS == 0:
            parts.append(self._open_requests(now_ns))
        if self._chunks % _COUNTER_CHUNKS == 0:
            parts.append(self._counters(now_ns))
        return [part for part in parts if len(part["kind"])]

    def _marks(self, at_ns: int) -> list[Columns]:
        now, before = in_incident(at_ns), in_incident(max(0, at_ns - CHUNK_NS))
        if now == before or at_ns < INCIDENT_FROM_NS:
            return []
        at = np.array([at_ns])
        mark = 0 if now else 1
        return [
            _columns(MARK, np.array([len(KERNELS) + len(_STREAMS) + len(_COUNTERS) + mark]), start_ns=at, end_ns=at)
        ]

    def _take_in(self, requests: Requests, scheduled: Kernels) -> None:
        old = self._open
        self._open = Requests(
            np.concatenate([old.arrival_ns, requests.arrival_ns]), np.concatenate([old.load, requests.load]),
            np.concatenate([old.shape, requests.shape]), np.concatenate([old.core, requests.core]),
        )  # fmt: skip
        unset = np.full(len(requests.load), -1)
        self._open_start = np.concatenate([self._open_start, unset])
        self._open_end = np.concatenate([self._open_end, unset])
        at = scheduled.request - self._first_open
        begins, ends = scheduled.position == 0, scheduled.last == 1
        self._open_start[at[begins]] = scheduled.start_ns[begins]
        self._open_end[at[ends]] = scheduled.end_ns[ends]

    def _executions(self, kernels: Kernels) -> Columns:
        device = kernels.core // self._cores_each
        dram = (kernels.plan_ns * KERNEL_DRAM[kernels.kernel]).astype(np.int64)
        self._dram += np.bincount(device, dram, self._devices)
        self._busy += np.bincount(device, kernels.end_ns - kernels.start_ns, self._devices)
        return _columns(
            EXECUTION, kernels.kernel, enqueue_ns=kernels.enqueue_ns, start_ns=kernels.start_ns, end_ns=kernels.end_ns,
            launch_ns=kernels.launch_ns, device=device, core=kernels.core % self._cores_each, stream=kernels.load,
            request=kernels.request, plan=np.zeros(len(kernels), np.int64), group=kernels.position,
            mapping=SHAPE_MAPPING[kernels.shape], shape=kernels.load * len(SHAPE_MAPPING) + kernels.shape,
            batch=LOAD_BATCH[kernels.load], flops=kernels.plan_ns * KERNEL_FLOPS[kernels.kernel], dram_bytes=dram,
            sram_bytes=(dram * KERNEL_REUSE[kernels.kernel]).astype(np.int64),
        )  # fmt: skip

    def _requests(self, which: Ints, start_ns: Ints, end_ns: Ints) -> Columns:
        load, shape = self._open.load[which], self._open.shape[which]
        return _columns(
            REQUEST, len(KERNELS) + load, enqueue_ns=self._open.arrival_ns[which], start_ns=start_ns, end_ns=end_ns,
            device=self._open.core[which] // self._cores_each, stream=load, request=self._first_open + which,
            mapping=SHAPE_MAPPING[shape], shape=load * len(SHAPE_MAPPING) + shape, batch=LOAD_BATCH[load],
        )  # fmt: skip

    def _finished_requests(self, now_ns: int) -> Columns:
        done = (self._open_end >= 0) & (self._open_end <= now_ns)
        which = np.flatnonzero(done)
        rows = self._requests(which, self._open_start[which], self._open_end[which])
        self._open_end[which] = -2  # told already
        still = np.flatnonzero(self._open_end != -2)
        gone = int(still[0]) if len(still) else len(self._open_end)
        self._first_open += gone
        self._open = Requests(*(getattr(self._open, n)[gone:] for n in ("arrival_ns", "load", "shape", "core")))
        self._open_start, self._open_end = self._open_start[gone:], self._open_end[gone:]
        return rows

    def _open_requests(self, now_ns: int) -> Columns:
        which = np.flatnonzero(self._open_end != -2)
        start = self._open_start[which]
        return self._requests(which, np.where(start <= now_ns, start, -1), np.full(len(which), -1))

    def _counters(self, now_ns: int) -> Columns:
        span_ns = _COUNTER_CHUNKS * CHUNK_NS
        power = _IDLE_W + _BUSY_W * np.minimum(1.0, self._busy / (span_ns * self._cores_each))
        value = np.concatenate([self._dram / span_ns, power])  # bytes per ns are GB/s
        self._dram, self._busy = np.zeros(self._devices), np.zeros(self._devices)
        unit = np.repeat([0, 1], self._devices)
        at = np.full(len(value), now_ns)
        return _columns(
            COUNTER, len(KERNELS) + len(_STREAMS) + unit, start_ns=at, end_ns=at, value=value, unit=unit,
            device=np.tile(np.arange(self._devices), 2),
        )  # fmt: skip


def to_batch(parts: list[Columns], start_ns: int) -> pa.RecordBatch:
    """One contract batch of at least one part; `start_ns` is added to the times."""
    columns: dict[str, pa.Array] = {}
    for name in parts[0]:
        values = np.concatenate([part[name] for part in parts])
        field = SCHEMA.field(name)
        if name in _WORDS:
            columns[name] = coded(values.astype(field.type.index_type.to_pandas_dtype()), _WORDS[name])
        elif pa.types.is_floating(field.type):
            columns[name] = pa.array(values, mask=np.isnan(values))
        else:
            absent = values < 0
            shift = start_ns if name in ("enqueue_ns", "start_ns", "end_ns") else 0
            columns[name] = pa.array((values + shift).astype(field.type.to_pandas_dtype()), mask=absent)
    return build_batch(columns)


def _columns(kind: str, name: Ints, **given: np.ndarray[Any, Any]) -> Columns:
    rows = len(name)
    columns: Columns = {"kind": np.full(rows, KINDS.index(kind)), "name": name}
    for column, fill in _FILL.items():
        columns[column] = given[column] if column in given else np.full(rows, fill)
    return columns


def _sorted(parts: list[Columns]) -> Columns:
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(columns["end_ns"], kind="stable")
    return {name: values[order] for name, values in columns.items()}
