"""Small Nsight Systems exports written by hand."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

GIGA = 1_700_000_000_000_000_000
MEMORY = 64 << 20


def pid(process: int) -> int:
    return (1 << 48) | (process << 24)


def tid(process: int, thread: int = 1) -> int:
    return pid(process) | thread


def write_db(path: Path, tables: dict[str, tuple[str, list[tuple[Any, ...]]]]) -> Path:
    """tables: name -> (column list, rows)"""
    db = sqlite3.connect(path)
    for name, (columns, rows) in tables.items():
        db.execute(f"create table {name} ({columns})")
        db.executemany(f"insert into {name} values ({','.join('?' * (columns.count(',') + 1))})", rows)
    db.commit()
    db.close()
    return path


KERNEL = "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER"  # noqa: E501
COPY = "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, copyKind INTEGER"  # noqa: E501
CALL = "start INTEGER, end INTEGER, correlationId INTEGER, globalTid INTEGER, nameId INTEGER"
NVTX = "start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER, globalTid INTEGER"


def tables() -> dict[str, tuple[str, list[tuple[Any, ...]]]]:
    """Two processes with the same correlation ids, an orphan, a graph of three kernels, a copy, steps and a metric."""
    return {
        "StringIds": ("id INTEGER PRIMARY KEY, value TEXT", [(1, "gemm<float>"), (2, "gemm"), (3, "step 1"), (4, "add")]),  # noqa: E501
        "CUPTI_ACTIVITY_KIND_KERNEL": (KERNEL, [
            (1500, 1700, 0, 7, 1, pid(10), 1, 2),
            (1600, 1650, 1, 7, 1, pid(11), 4, 4),
            (2500, 2600, 0, 7, 2, pid(10), 4, 4),
            (2600, 2650, 0, 7, 2, pid(10), 4, 4),
            (2700, 2750, 0, 7, 2, pid(10), 4, 4),
            (3000, 3100, 0, 7, 99, pid(10), 1, 2),
        ]),
        "CUPTI_ACTIVITY_KIND_MEMCPY": (COPY, [(3500, 3600, 0, 7, 3, pid(10), 1)]),
        "CUPTI_ACTIVITY_KIND_RUNTIME": (CALL, [
            (1000, 1200, 1, tid(10), 0), (1100, 1650, 1, tid(11), 0), (2000, 2400, 2, tid(10), 0),
            (3300, 3450, 3, tid(10, 2), 0), (5000, 5100, 77, tid(10), 0),
        ]),
        "NVTX_EVENTS": (NVTX, [
            (900, 1800, 59, None, 3, tid(10)), (1900, 3700, 59, "step 2", None, tid(10)),
            (1950, 2000, 59, "aten::add, op_id = 3", None, tid(10)), (1960, None, 34, "checkpoint", None, tid(10)),
            (1970, None, 59, "step 3", None, tid(10)),
        ]),
        "TARGET_INFO_GPU": ("id INTEGER, name TEXT, smCount INTEGER, memoryBandwidth INTEGER", [(0, "GPU X", 66, 10**12)]),  # noqa: E501
        "TARGET_INFO_SESSION_START_TIME": ("utcEpochNs INTEGER", [(GIGA,)]),
        "META_DATA_EXPORT": ("name TEXT, value TEXT", [("EXPORT_SCHEMA_VERSION", "3.25.0")]),
        "TARGET_INFO_GPU_METRICS": (
            "typeId INTEGER, metricId INTEGER, metricName TEXT", [(256, 5, "SMs Active [Throughput %]")],
        ),
        "GPU_METRICS": ("timestamp INTEGER, typeId INTEGER, metricId INTEGER, value INTEGER", [(1400, 256, 5, 42)]),
    }  # fmt: skip
