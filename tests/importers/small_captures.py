"""Small files of many formats, laid out as their tools write them."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

_TT_HEAD = (
    "OP CODE", "OP TYPE", "GLOBAL CALL COUNT", "DEVICE ID", "DEVICE ARCH", "ATTRIBUTES", "CORE COUNT",
    "AVAILABLE WORKER CORE COUNT", "HOST START TS", "HOST END TS", "HOST DURATION [ns]", "DEVICE FW START CYCLE",
    "DEVICE FW END CYCLE", "OP TO OP LATENCY [ns]", "DEVICE FW DURATION [ns]", "DEVICE KERNEL DURATION [ns]",
    "DEVICE KERNEL DURATION PER CORE MIN [ns]", "DEVICE KERNEL DURATION PER CORE MAX [ns]",
    "DEVICE KERNEL DURATION PER CORE AVG [ns]",
)  # fmt: skip
_TT_TAIL = ("METAL TRACE ID", "METAL TRACE REPLAY SESSION ID", "PM IDEAL [ns]")


def tt_header(padded: bool, inputs: int = 2) -> list[str]:
    """The columns of an operation report, of the generation with padded sizes or the one before."""
    suffix = "_PAD[LOGICAL]" if padded else ""
    sizes = [
        column
        for i in range(inputs)
        for column in (*(f"INPUT_{i}_{d}{suffix}" for d in "WZYX"), f"INPUT_{i}_LAYOUT", f"INPUT_{i}_DATATYPE")
    ]
    return [*_TT_HEAD, *sizes, *_TT_TAIL]


def tt_report(rows: list[dict[str, Any]], padded: bool = True) -> bytes:
    """An operation report; a row gives columns by name, the others are empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, tt_header(padded), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def tt_operation(name: str, host: int, cycle: int, cycles: int, mhz: int, **more: Any) -> dict[str, Any]:
    """One operation: host times in ns, device times in cycles; its kernel is 100 ns shorter than its firmware."""
    took = cycles * 1000 // mhz
    return {
        "OP CODE": name, "OP TYPE": "tt_dnn_device", "DEVICE ID": 0, "DEVICE ARCH": "blackhole", "CORE COUNT": 20,
        "AVAILABLE WORKER CORE COUNT": 110, "ATTRIBUTES": "{'dim': 'CN'; 'of': 'A, B'}", "HOST START TS": host,
        "HOST END TS": host + 50, "HOST DURATION [ns]": 50, "DEVICE FW START CYCLE": cycle,
        "DEVICE FW END CYCLE": cycle + cycles, "DEVICE FW DURATION [ns]": took,
        "DEVICE KERNEL DURATION [ns]": took - 100, "OP TO OP LATENCY [ns]": 7, **more,
    }  # fmt: skip


TT_DEVICE_COLUMNS = (
    "PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, run host ID, trace id, "
    "trace id counter, zone name, type, source line, source file, meta data"
)


def tt_device_log(zones: list[tuple[int, int, int, str, str, int, int]], mhz: int = 1350) -> bytes:
    """A device log of (slot, x, y, processor, zone, begin, end); begins and ends of a processor nested as given."""
    lines = [f"ARCH: blackhole, CHIP_FREQ[MHz]: {mhz}, Max Compute Cores: 140", TT_DEVICE_COLUMNS]
    for slot, x, y, risc, zone, begin, end in zones:
        for at, kind in ((begin, "ZONE_START"), (end, "ZONE_END")):
            lines.append(f'{slot},{x},{y},{risc},51,{at},0,1024,,,{zone},{kind},12,/a/b.cc,{{"a";"b"}}')
    return "\n".join(lines).encode() + b"\n"


def et_node(number: int, name: str, shapes: list[Any], types: list[str], **attributes: Any) -> dict[str, Any]:
    """A node as schema 1.1.0-chakra.0.0.4 has it."""
    return {
        "id": number, "name": name, "ctrl_deps": 1,
        "inputs": {"values": [[1, 2, 0, 4, 4, "cuda:0"]] * len(shapes), "shapes": shapes, "types": types},
        "outputs": {"values": [], "shapes": [], "types": []},
        "attrs": [{"name": key, "type": "any", "value": value} for key, value in {"tid": 3, **attributes}.items()],
    }  # fmt: skip


def et_trace(nodes: list[dict[str, Any]]) -> bytes:
    top = {"schema": "1.1.0-chakra.0.0.4", "pid": 7, "time": "2026-01-02 03:04:05", "start_ts": 1000}
    return json.dumps({**top, "nodes": nodes, "finish_ts": 1068}).encode()


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: int | bytes) -> bytes:
    """A protobuf field: a varint, or bytes behind their length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def chakra_trace(nodes: list[bytes]) -> bytes:
    head = field(2, field(1, b"schema") + field(29, b"1.0.2-chakra.0.0.4"))
    return b"".join(_varint(len(message)) + message for message in (head, *nodes))


def chakra_node(number: int, name: str, kind: int, **numbers: int) -> bytes:
    """A node; `start` and `took` in us, other numbers are attributes."""
    times = b"".join(field(n, numbers.pop(key)) for key, n in (("start", 6), ("took", 7)) if key in numbers)
    more = b"".join(
        field(10, field(1, key.encode()) + field(27 if key.startswith("is_") else 9, value))
        for key, value in numbers.items()
    )
    return field(1, number) + field(2, name.encode()) + field(3, kind) + times + more


def loadgen_trace(samples: list[tuple[str, int, int]], origin: str = "1796028096247910.250") -> bytes:
    """A LoadGen trace of (due us, issue delay ns, latency ns): Chrome's layout, but no JSON."""
    lines = ['{"name":"SampleLoop","ph":"X","pid":7,"tid":7,"ts":8.5,"dur":1.0,"args":{}}']
    lines += [
        f'{{"name":"Sample","cat":"default","ph":"b","pid":7,"id":{i},"ts":{due},"args":{{"sample_seq":{i},"query_seq":{i},'
        f'"sample_idx":3,"issue_start_ns":{issued},"complete_ns":{done}}}}}'
        for i, (due, issued, done) in enumerate(samples)
    ]
    lines.append('{"name":"LogDetail","ph":"X","pid":7,"tid":7,"ts":9.9,"dur":0.1,"args":{"key":""sut_name""}}')
    tail = f'{{"name":"LastTrace"}}\n],\n"displayTimeUnit":"ns",\n"otherData":{{\n"ts":{origin},\n"version":"1"\n}}\n}}'
    return ('{"traceEvents":[\n' + ",\n".join(lines) + ",\n" + tail).encode()


def mllog(key: str, value: Any, time_ms: float, event: str = "POINT_IN_TIME") -> str:
    entry = {"key": key, "value": value, "time_ms": time_ms, "event_type": event, "metadata": {"is_error": False}}
    return f":::MLLOG {json.dumps(entry)}"


VLLM_LOG = b"""(APIServer pid=1) INFO 12-31 23:59:50 [api_server.py:1] Starting
(EngineCore pid=9) INFO 12-31 23:59:51 [x.py:3] - Mode: FULL_AND_PIECEWISE
(EngineCore pid=9) INFO 12-31 23:59:51 [x.py:3] - Capture sizes: [1, 2, 4, 8]
(APIServer pid=1) INFO 12-31 23:59:55 [loggers.py:127] Engine 003: Avg prompt throughput: 16.5 tokens/s, \
Avg generation throughput: 9.8 tokens/s, Running: 51 reqs, Waiting: 117 reqs, GPU KV cache usage: 99.5%, \
Prefix cache hit rate: 70.0%
| Unpadded Tokens | Padded Tokens | Num Paddings | Runtime Mode | Count |
| 6               | 8             | 2            | FULL         | 31    |
| 8               | 8             | 0            | FULL         | 4     |
| 415             | 415           | 0            | NONE         | 1     |
INFO 01-01 00:00:05 metrics.py:455] Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 24.1 tokens/s, \
Running: 1 reqs, Swapped: 0 reqs, Pending: 2 reqs, GPU KV cache usage: 0.2%, CPU KV cache usage: 0.0%.
"""

SGLANG_LOG = b"""[2025-05-27 20:14:37] INFO:     127.0.0.1:54504 - "POST /v1" 200 OK
[2025-05-27 20:14:38 TP0] Prefill batch. #new-seq: 1, #new-token: 115, #cached-token: 351, token usage: 0.02, \
#running-req: 0, #queue-req: 0,
[2025-05-27 20:14:38 TP0] Decode batch. #running-req: 18, #token: 16384, token usage: 0.5, cuda graph: False, \
gen throughput (token/s): 2520.18, #queue-req: 3
[2025-05-27 20:14:39] Decode batch, #running-req: 4, #token: 501, token usage: 0.25, cuda graph: True, \
gen throughput (token/s): 65.75, #queue-req: 0,
"""


def sglang_requests(requests: list[dict[str, Any]]) -> bytes:
    lines = [{"request_parameters": '{"text": "hi {there}"}', "id": "x", **request} for request in requests]
    return "\n".join(map(json.dumps, lines)).encode()


KERNEL_DETAILS = b'''Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),\
Duration(us),Wait Time(us),Block Num,Input Shapes,Input Data Types,aic_cube_fops
0,4294967295,1,7,aclnnMatmul_MatMulV2,MatMulV2,dynamic,AI_CORE,1774670741777000.123\t,420.5,0.02,24,\
"""2,4096;4096,512""",DT_BF16;DT_BF16,67108864
0,4294967295,2,7,aclnnAdd,Add,dynamic,AI_VECTOR_CORE,1774670741777421.623\t,9.3,1,8,"""2,4096;""",FLOAT;FLOAT,N/A
1,N/A,N/A,N/A,hcom_allReduce__1,hcom,N/A,HCCL,1774670741777431,100,0,0,N/A,N/A,N/A
'''
