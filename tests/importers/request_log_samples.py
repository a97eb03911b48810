"""Small request logs of our own, one per format, as bytes."""

from __future__ import annotations

import json

AZURE = b"""TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,4808,10
2023-11-16 18:17:04.0319600,3180,8
2023-11-16 18:17:05,110,27
"""
AZURE_T0 = 1_700_158_623_979_960_000

MOONCAKE = b"".join(
    json.dumps({"timestamp": ms, "input_length": tokens, "output_length": out, "hash_ids": [0, 1]}).encode() + b"\n"
    for ms, tokens, out in ((27000, 6758, 500), (27003, 12, 3), (30000, 900, 44))
)

BURSTGPT_1 = b"""Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45,GPT-4,1087,230,1317,API log
46,GPT-4,50,0,50,API log
"""

BURSTGPT_3 = b"""Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
100.0,1722ac82,43,GPT-4,906,446,1352,Conversation log
161.0,,2,ChatGPT,36,29,65,API log
162.0,,30,ChatGPT,36,0,36,API log
"""


def _record(
    number: int, done_s: float, took_s: float, first_s: float, tokens: int, characters: int
) -> dict[str, object]:
    return {
        "event_id": number, "out_len": characters, "in_len": tokens, "first_chunk_time": first_s,
        "total_chunk_time": took_s, "record_time": done_s, "GPU_utilization": 40,
    }  # fmt: skip


# In order of completion: request 1 came later and was done earlier.
DETAIL = json.dumps({"1": _record(1, 1003.5, 1.5, 0.5, 100, 7), "0": _record(0, 1004.0, 3.0, 0.25, 476, 409)}).encode()

SCHEDULER = b"timestamp,prompt_throughput,generation_throughput,num_running,num_swapped,num_pending,"
SCHEDULER += b"""gpu_kvcache_usage,cpu_kvcache_usage
1000.5,3.5,1.25,0,0,0,0.0,0.0
1001.5,3.5,1.25,1,0,4,12.5,0.0
"""

GPU = json.dumps(
    {
        str(i): {"monitor_id": i, "record_time": at, "GPU_used_mem": 512, "GPU_total_mem": 1024, "GPU_utilization": use}
        for i, (at, use) in enumerate(((1000.75, 0), (1001.25, 74)))
    }
).encode()

ALL = {
    "azure_llm": AZURE,
    "mooncake": MOONCAKE,
    "burstgpt": BURSTGPT_3,
    "burstgpt_detail": DETAIL,
    "burstgpt_scheduler": SCHEDULER,
    "burstgpt_gpu": GPU,
}
