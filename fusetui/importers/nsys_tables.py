"""Device work, launch calls and GPU metrics of an Nsight Systems export."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.devicework import DeviceWork, Ints, codes
from fusetui.importers.sqlitefile import NULL, Database
from fusetui.telemetry.text import safe_text

_KERNEL: Final = "CUPTI_ACTIVITY_KIND_KERNEL"
_GRAPH: Final = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
_COPY: Final = "CUPTI_ACTIVITY_KIND_MEMCPY"
_SET: Final = "CUPTI_ACTIVITY_KIND_MEMSET"
_COPIES: Final = {
    1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 9: "HtoH", 10: "PtoP",
}  # fmt: skip
_SPAN: Final = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid")
_STRING_BITS: Final = 40
_PROCESS_BITS: Final = 24
_CORRELATION_BITS: Final = 33
_UNIT = re.compile(r"\s*\[([^\]]*)\]\s*$")


class Processes(dict[int, int]):
    """Small numbers for process ids, in order of appearance; that of NULL (a reduced export) is one of them."""

    def __missing__(self, process: int) -> int:
        self[process] = len(self)
        return self[process]

    def of(self, ids: Ints) -> Ints:
        """Number of each id, shape (rows,)."""
        different, index = np.unique(ids, return_inverse=True)
        return np.array([self[value] for value in different.tolist()], np.int64)[index]


def _key(process: Ints, correlation: Ints) -> Ints:
    return np.where(correlation > 0, (process << _CORRELATION_BITS) | correlation, 0)


def take_work(db: Database, found: DeviceWork, processes: Processes) -> None:
    """Kernels, whole graphs, copies and sets. Names are string ids, or negative for those made up here."""
    have = db.tables.get(_KERNEL, frozenset())
    string = next((c for c in ("demangledName", "shortName", "mangledName") if c in have), "shortName")
    sources = ((_KERNEL, string), (_GRAPH, "graphId"), (_COPY, "copyKind"), (_SET, "copyKind"))
    for kind, (table, name) in enumerate(sources):
        for start, end, device, stream, correlation, pid, named in db.chunks(table, [*_SPAN, name]):
            process = processes.of(pid >> _PROCESS_BITS)
            found.add_work(
                start,
                end,
                correlation=_key(process, correlation),
                device=_number(device),
                stream=np.where(stream < 0, -1, codes(found.streams, (process << 32) | (stream & 0xFFFFFFFF))),
                name=codes(found.names, (np.int64(kind) << _STRING_BITS) | (named & ((1 << _STRING_BITS) - 1))),
            )


def _number(values: Ints) -> Ints:
    return np.where((values >= 0) & (values < 1 << 31), values, -1)


def take_calls(db: Database, found: DeviceWork, processes: Processes) -> None:
    """The API calls that may have launched something."""
    for table in ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"):
        for start, end, correlation, tid in db.chunks(table, ["start", "end", "correlationId", "globalTid"]):
            reduced = set(processes) == {NULL >> _PROCESS_BITS}
            process = np.zeros_like(tid) if reduced else processes.of(tid >> _PROCESS_BITS)
            key = _key(process, correlation)
            launching = key != 0
            found.add_calls(start[launching], end[launching], correlation=key[launching])


def name_texts(db: Database, found: DeviceWork) -> list[str]:
    """Text of each name code: a string of the export, or what the code stands for."""
    mask = (1 << _STRING_BITS) - 1
    ids = [key for key in found.names if isinstance(key, int)]
    strings = db.texts("StringIds", "id", "value", [key & mask for key in ids if key >> _STRING_BITS == 0])
    return [safe_text(_name(key, strings)) for key in found.names]


def _name(key: Any, strings: dict[int, str]) -> str:
    if not isinstance(key, int):
        return str(key)
    kind, number = key >> _STRING_BITS, key & ((1 << _STRING_BITS) - 1)
    if kind == 0:
        return strings.get(number, f"kernel {number}")
    return ("", f"CUDA graph {number}", f"Memcpy {_COPIES.get(number, '?')}", "Memset")[kind]


def stream_texts(found: DeviceWork, processes: Processes) -> list[str]:
    """Text of each stream code: its number, and the process when several use the device."""
    pids = {number: pid & ((1 << _PROCESS_BITS) - 1) for pid, number in processes.items()}
    keys = [key for key in found.streams if isinstance(key, int)]
    several = len({key >> 32 for key in keys}) > 1
    named = {key: f"{pids[key >> 32]}/{key & 0xFFFFFFFF}" if several else str(key & 0xFFFFFFFF) for key in keys}
    return [safe_text(named.get(key, str(key))) for key in found.streams]


def take_metrics(db: Database, found: DeviceWork) -> None:
    """Sampled GPU metrics; the unit is what the metric's name has in brackets."""
    if "metricName" not in db.tables.get("TARGET_INFO_GPU_METRICS", ()):
        return
    names: dict[tuple[int, int], str] = {}
    for type_id, metric, name in db.rows("select typeId, metricId, metricName from TARGET_INFO_GPU_METRICS"):
        if isinstance(type_id, int) and isinstance(metric, int):
            names[type_id, metric] = str(name)
    columns = ["timestamp", "typeId", "metricId"]
    for time, kind, metric, value in db.chunks("GPU_METRICS", columns, reals=["value"]):
        pairs, index = np.unique(np.stack([kind, metric]), axis=1, return_inverse=True)
        found_names = [names.get((int(k), int(m)), f"metric {m}") for k, m in pairs.T]
        units = [_UNIT.search(name) for name in found_names]
        titles = found.names.codes([_UNIT.sub("", name) for name in found_names])
        unit = [-1 if u is None else found.units[u[1].replace("Throughput %", "%")] for u in units]
        flat = index.ravel()
        found.add_readings(time, value, name=titles[flat], unit=_codes(unit)[flat], device=kind & 0xFF)


def _codes(values: list[int]) -> npt.NDArray[np.int32]:
    return np.array(values, np.int32)
