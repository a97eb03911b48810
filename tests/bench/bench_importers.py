"""Events a second and peak memory of importing, beside a plain reader of the same file, in one sitting.

    python tests/bench/bench_importers.py [FORMAT ...] [--events N] [--rounds N] [--file PATH]

A format is one function here, named in FORMATS: it writes a capture of about N events (or `--file` names a real one)
and says how the peer reads it. The peer is what a person would write without this program: the standard library's
reader, all rows in memory, launches joined by a dictionary. Every way runs in a child process of its own; the best is
printed.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Format:
    """write(path, events) makes a capture, peer(path) reads one and returns the pieces of work that it joined."""

    importer: str
    write: Callable[[Path, int], None]
    peer: Callable[[Path], int]


def nsys() -> Format:
    kernel = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid", "demangledName")
    call = ("start", "end", "correlationId", "globalTid", "nameId")

    def write(path: Path, events: int) -> None:
        db = sqlite3.connect(path)
        db.execute("pragma synchronous = off")
        # As wide as the real tables, which is what reading them costs.
        filler = ", ".join(f"x{i} integer default 1" for i in range(24))
        columns = {"CUPTI_ACTIVITY_KIND_KERNEL": kernel, "CUPTI_ACTIVITY_KIND_RUNTIME": call}
        for table, names in columns.items():
            db.execute(f"create table {table} ({', '.join(n + ' integer' for n in names)}, {filler})")
        db.execute("create table StringIds (id integer primary key, value text)")
        db.executemany("insert into StringIds values (?, ?)", ((i, f"kernel_{i}<float, {i}>") for i in range(200)))
        process = 5 << 24
        every = range(1, events)
        work = ((i * 10 + 8, i * 10 + 15, i % 2, 7, i, process, i % 200) for i in every)
        calls = ((i * 10, i * 10 + 5, i, process + 1, 0) for i in every)
        for (table, names), rows in zip(columns.items(), (work, calls), strict=True):
            holes = ",".join("?" * len(names))
            db.executemany(f"insert into {table} ({', '.join(names)}) values ({holes})", rows)
        db.commit()

    def peer(path: Path) -> int:
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        strings = dict(db.execute("select id, value from StringIds"))
        calls = {
            (tid >> 24, correlation): (start, end)
            for start, end, correlation, tid in db.execute(
                "select start, end, correlationId, globalTid from CUPTI_ACTIVITY_KIND_RUNTIME"
            )
        }
        rows = []
        for start, end, device, stream, correlation, pid, name in db.execute(
            f"select {', '.join(kernel)} from CUPTI_ACTIVITY_KIND_KERNEL"
        ):
            launch = calls.get((pid >> 24, correlation))
            rows.append((strings[name], start, end, device, stream, launch))
        rows.sort(key=lambda row: row[2])
        return len(rows)

    return Format("nsys", write, peer)


def rpd() -> Format:
    def write(path: Path, events: int) -> None:
        db = sqlite3.connect(path)
        db.execute("pragma synchronous = off")
        db.execute("create table rocpd_string (id integer primary key, string text)")
        db.execute(
            "create table rocpd_op (id integer primary key, gpuId integer, queueId integer, start integer, end integer,"
            " description_id integer, opType_id integer)"
        )
        db.execute(
            "create table rocpd_api (id integer primary key, pid integer, tid integer, start integer, end integer)"
        )
        db.execute("create table rocpd_api_ops (api_id integer, op_id integer)")
        db.executemany("insert into rocpd_string values (?, ?)", ((i, f"kernel_{i}") for i in range(1, 200)))
        every = range(1, events)
        db.executemany("insert into rocpd_op values (?,?,?,?,?,?,?)",
                       ((i, 0, i % 4, i * 10 + 8, i * 10 + 15, 1 + i % 199, 1) for i in every))  # fmt: skip
        db.executemany("insert into rocpd_api values (?,?,?,?,?)", ((i, 1, 1, i * 10, i * 10 + 5) for i in every))
        db.executemany("insert into rocpd_api_ops values (?,?)", ((i, i) for i in every))
        db.commit()

    def peer(path: Path) -> int:
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        strings = dict(db.execute("select id, string from rocpd_string"))
        api = {key: (start, end) for key, start, end in db.execute("select id, start, end from rocpd_api")}
        of = dict(db.execute("select op_id, api_id from rocpd_api_ops"))
        rows = [
            (strings[name], start, end, device, queue, api.get(of.get(key, 0)))
            for key, start, end, device, queue, name in db.execute(
                "select id, start, end, gpuId, queueId, description_id from rocpd_op"
            )
        ]
        rows.sort(key=lambda row: row[2])
        return len(rows)

    return Format("rpd", write, peer)


_DISPATCH = (
    '{"size":184,"kind":11,"operation":2,"thread_id":1,"correlation_id":{"internal":%d,"external":0},"start_timestamp":%d,'
    '"end_timestamp":%d,"dispatch_info":{"size":72,"agent_id":{"handle":9},"queue_id":{"handle":%d},"kernel_id":%d,'
    '"dispatch_id":%d,"workgroup_size":{"x":512,"y":1,"z":1},"grid_size":{"x":512,"y":1,"z":1}},"stream_id":{"handle":0}}'
)


def rocprof_json() -> Format:
    def write(path: Path, events: int) -> None:
        symbols = [{"size": 88, "kernel_id": i, "kernel_name": f"kernel_{i}.kd"} for i in range(200)]
        with path.open("w") as out:
            out.write('{"rocprofiler-sdk-tool":[{"metadata":{"pid":1},"agents":[],"kernel_symbols":')
            json.dump(symbols, out, separators=(",", ":"))
            out.write(',"buffer_records":{"kernel_dispatch":[')
            for i in range(1, events):
                out.write("," if i > 1 else "")
                out.write(_DISPATCH % (i, i * 10 + 8, i * 10 + 15, i % 4, i % 200, i))
            out.write('],"hip_api":[]}}]}')

    def peer(path: Path) -> int:
        (process,) = json.loads(path.read_bytes())["rocprofiler-sdk-tool"]
        names = {symbol["kernel_id"]: symbol["kernel_name"] for symbol in process["kernel_symbols"]}
        rows = [
            (names[r["dispatch_info"]["kernel_id"]], r["start_timestamp"], r["end_timestamp"])
            for r in process["buffer_records"]["kernel_dispatch"]
        ]
        rows.sort(key=lambda row: row[2])
        return len(rows)

    return Format("rocprof_json", write, peer)


def rocprof_csv() -> Format:
    columns = "Kind,Agent_Id,Queue_Id,Thread_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp"

    def write(path: Path, events: int) -> None:
        with path.open("w") as out:
            out.write(columns + "\n")
            for i in range(1, events):
                out.write(
                    f'"KERNEL_DISPATCH","Agent 4",{i % 4},9,"k{i % 200}<float, 4>(int)",{i},{i * 10},{i * 10 + 7}\n'
                )

    def peer(path: Path) -> int:
        with path.open(newline="") as file:
            rows = [
                (r["Kernel_Name"], int(r["Start_Timestamp"]), int(r["End_Timestamp"]), r["Queue_Id"])
                for r in csv.DictReader(file)
            ]
        rows.sort(key=lambda row: row[2])
        return len(rows)

    return Format("rocprof_csv", write, peer)


def chrome() -> Format:
    def write(path: Path, events: int) -> None:
        with path.open("w") as out:
            out.write('{"traceEvents":[\n')
            for i in range(1, events):
                event = {"ph": "X", "name": f"kernel_{i % 200}", "cat": "op", "pid": 1, "tid": i % 8, "ts": i + 0.125,
                         "dur": 0.875, "args": {"grid": [4, 1, 1], "bytes": i}}  # fmt: skip
                out.write(json.dumps(event) + ("\n]}" if i == events - 1 else ",\n"))

    def peer(path: Path) -> int:
        rows = [
            (e["name"], round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000), e["tid"])
            for e in json.loads(path.read_bytes())["traceEvents"]
            if e.get("ph") == "X"
        ]
        rows.sort(key=lambda row: row[2])
        return len(rows)

    return Format("chrome", write, peer)


_OPERATOR = (
    '{"ph":"X","cat":"cpu_op","name":"aten::op%d","pid":1,"tid":1,"ts":%d.125,"dur":8,"args":{"External id":%d,'
    '"Input Dims":[[%d,4096],[4096,512]],"Input type":["c10::BFloat16","c10::BFloat16"]}}'
)
_CALL = (
    '{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":%d.250,"dur":4.5,'
    '"args":{"cbid":211,"correlation":%d,"External id":%d}}'
)
_KERNEL = (
    '{"ph":"X","cat":"kernel","name":"kernel_%d","pid":%d,"tid":%d,"ts":%d.875,"dur":7.125,"args":{"device":%d,'
    '"context":1,"stream":%d,"correlation":%d,"External id":%d,"grid":[64,1,1],"block":[128,1,1]}}'
)


def kineto() -> Format:
    def write(path: Path, events: int) -> None:
        with path.open("w") as out:
            out.write('{"schemaVersion":1,"traceEvents":[')
            for i in range(1, max(events // 3, 2)):
                device, stream, at = i % 2, 7 + i % 4, i * 10
                out.write(",\n" if i > 1 else "\n")
                out.write(_OPERATOR % (i % 90, at, i, 1 << i % 8) + ",\n" + _CALL % (at, i, i) + ",\n")
                out.write(_KERNEL % (i % 200, device, stream, at + 9, device, stream, i, i))
            out.write("\n]}")

    def peer(path: Path) -> int:
        events = json.loads(path.read_bytes())["traceEvents"]
        of: dict[str, dict[int, Any]] = {"cpu_op": {}, "cuda_runtime": {}}
        for event in events:
            key = "External id" if event["cat"] == "cpu_op" else "correlation"
            if event["cat"] in of:
                of[event["cat"]][event["args"][key]] = event
        rows = []
        for event in events:
            if event["cat"] == "kernel":
                start, args = round(event["ts"] * 1000), event["args"]
                call, operator = of["cuda_runtime"].get(args["correlation"]), of["cpu_op"].get(args["External id"])
                shape = operator and operator["args"].get("Input Dims")
                rows.append((event["name"], start, start + round(event["dur"] * 1000), args["stream"], call, shape))
        rows.sort(key=lambda row: row[2])
        return len(rows)

    return Format("kineto", write, peer)


_XPLANE: dict[str, tuple[tuple[str, int, str], ...]] = {
    "Stat": (("metadata_id", 1, "int64"), ("uint64_value", 3, "uint64"), ("ref_value", 7, "uint64")),
    "Event": (("metadata_id", 1, "int64"), ("offset_ps", 2, "int64"), ("duration_ps", 3, "int64"),
              ("stats", 4, "Stat")),
    "Line": (("id", 1, "int64"), ("name", 2, "string"), ("timestamp_ns", 3, "int64"), ("events", 4, "Event")),
    "Named": (("id", 1, "int64"), ("name", 2, "string")),
    "Entry": (("key", 1, "int64"), ("value", 2, "Named")),
    "Plane": (("id", 1, "int64"), ("name", 2, "string"), ("lines", 3, "Line"), ("event_metadata", 4, "Entry"),
              ("stat_metadata", 5, "Entry")),
    "Space": (("planes", 1, "Plane"),),
}  # fmt: skip
_SINGLE = {"value"}


def _space() -> Any:
    """An empty XSpace message, of the fields above."""
    from importlib import import_module

    parts = ("descriptor_pb2", "descriptor_pool", "message_factory")
    descriptor_pb2, descriptor_pool, message_factory = (import_module(f"google.protobuf.{part}") for part in parts)
    file = descriptor_pb2.FileDescriptorProto(name="bench_xplane.proto", syntax="proto3")
    for name, fields in _XPLANE.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            added = message.field.add(name=field, number=number, label=1)
            if kind in _XPLANE:
                added.type, added.type_name, added.label = 11, f".{kind}", 1 if field in _SINGLE else 3
            else:
                added.type = {"int64": 3, "uint64": 4, "string": 9}[kind]
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Space"))()


def xplane() -> Format:
    def write(path: Path, events: int) -> None:
        space = _space()
        device, host = space.planes.add(name="/device:GPU:0"), space.planes.add(name="/host:CPU")
        lines = [device.lines.add(name=f"Stream #{i}(Kernel)") for i in range(4)]
        calls = host.lines.add(name="Host Threads/1")
        for plane in (device, host):
            for key, name in enumerate(("correlation_id", "hlo_op", "hlo_module", "jit_f"), 1):
                plane.stat_metadata.add(key=key).value.name = name
            for key in range(200):
                plane.event_metadata.add(key=key + 1).value.name = f"kernel_{key}"
        for i in range(1, events // 2):
            call = calls.events.add(metadata_id=1, offset_ps=i * 10_000_000, duration_ps=5_000_000)
            call.stats.add(metadata_id=1, uint64_value=i)
            work = lines[i % 4].events.add(metadata_id=1 + i % 200, offset_ps=i * 10_000_000 + 8, duration_ps=7_000_000)
            work.stats.add(metadata_id=1, uint64_value=i)
            work.stats.add(metadata_id=2, ref_value=4)
            work.stats.add(metadata_id=3, ref_value=4)
        path.write_bytes(space.SerializeToString())

    def peer(path: Path) -> int:
        space = _space()
        space.ParseFromString(path.read_bytes())
        calls, rows = {}, []
        for plane in sorted(space.planes, key=lambda plane: plane.name.startswith("/device:")):
            names = {entry.key: entry.value.name for entry in plane.event_metadata}
            stats = {entry.key: entry.value.name for entry in plane.stat_metadata}
            for line in plane.lines:
                for event in line.events:
                    start = line.timestamp_ns * 1000 + event.offset_ps
                    key = next((s.uint64_value for s in event.stats if stats[s.metadata_id] == "correlation_id"), 0)
                    if plane.name.startswith("/host:"):
                        calls[key] = start + event.duration_ps
                    else:
                        rows.append((names[event.metadata_id], start, start + event.duration_ps, calls.get(key)))
        rows.sort(key=lambda row: row[2])
        return len(rows)

    return Format("xplane", write, peer)


FORMATS: dict[str, Callable[[], Format]] = {
    "nsys": nsys,
    "rpd": rpd,
    "rocprof_json": rocprof_json,
    "rocprof_csv": rocprof_csv,
    "chrome": chrome,
    "kineto": kineto,
    "xplane": xplane,
}


def run_one(way: str, name: str, path: Path) -> None:
    """One measurement, as JSON on stdout."""
    form = FORMATS[name]()
    if way == "import":
        from importlib import import_module

        module = import_module(f"fusetui.importers.{form.importer}")
        begun = time.process_time()
        count = sum(batch.num_rows for batch in module.read(path, 64 << 20).batches)
    else:
        begun = time.process_time()
        count = form.peer(path)
    cpu = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"count": count, "cpu_s": cpu, "rss_mb": peak}))


def measure(name: str, path: Path, rounds: int) -> None:
    """The best round of each way, and their ratio."""
    best: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for way in ("import", "peer"):
            command = [sys.executable, __file__, "--way", way, "--file", str(path), name]
            got = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            if way not in best or got["cpu_s"] < best[way]["cpu_s"]:
                best[way] = got
    ours, theirs = best["import"], best["peer"]
    size = path.stat().st_size / 1e6
    for way, got in best.items():
        speed = got["count"] / got["cpu_s"]
        print(f"{name:14}{way:8}{size:8.1f} MB {got['count']:10,.0f} rows {got['cpu_s']:7.2f} CPU-s "
              f"{speed:11,.0f} rows/s {got['rss_mb']:7.0f} MB peak")  # fmt: skip
    print(
        f"{name:14}import/peer: CPU {ours['cpu_s'] / theirs['cpu_s']:.2f}, peak {ours['rss_mb'] / theirs['rss_mb']:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("formats", nargs="*", default=list(FORMATS))
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--way", choices=("import", "peer"))
    args = parser.parse_args()
    if args.way:
        run_one(args.way, args.formats[0], args.file)
        return
    for name in args.formats:
        if args.file:
            measure(name, args.file, args.rounds)
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "capture")
            FORMATS[name]().write(path, args.events)
            measure(name, path, args.rounds)


if __name__ == "__main__":
    main()
