"""A small real model server that streams its own telemetry: how `sample_traces/torch-serving.arrows` was made.

    fusetui record unix:/tmp/fusetui.sock -o torch-serving.arrows &
    python tests/samples/torch_serving.py unix:/tmp/fusetui.sock --seconds 45

Needs PyTorch. Two worker threads, each pinned to a CPU, serve a transformer block from one queue per phase. A
request is one prefill and some decode steps; every step waits in the queue like any other work. Prompts are padded
to the next compiled bucket; longer ones take the generic path in chunks. From second 20 to 28 arrivals come in
bursts of long prompts.
"""

from __future__ import annotations

import argparse
import os
import platform
import queue
import random
import threading
import time
from dataclasses import dataclass, replace

import torch
from torch import nn

from fusetui.emit import Producer
from fusetui.telemetry.header import Header

WIDTH = 192
BUCKETS = (32, 64, 128)
PLAN = "buckets-32-64-128"


@dataclass
class Step:
    """One piece of work in the queue: a prefill or one decode step of a request."""

    request: int
    phase: str
    tokens: int
    steps_left: int
    arrived_ns: int
    enqueue_ns: int
    first_start_ns: int = 0


def mapping_of(tokens: int) -> tuple[str, int]:
    """What the plan does with a prompt: (mapping, tokens run)."""
    for bucket in BUCKETS:
        if tokens <= bucket:
            return ("planned" if tokens == bucket else "adapted"), bucket
    return "fallback", tokens


def run_model(block: nn.Module, mapping: str, tokens: int) -> None:
    """The work itself; the generic path goes through the prompt in chunks of 16."""
    if mapping == "fallback":
        for begin in range(0, tokens, 16):
            block(torch.randn(1, min(16, tokens - begin) + begin, WIDTH))
    else:
        block(torch.randn(1, tokens, WIDTH))


class OpenRequests:
    """Requests that have not finished: told once a second, so that waiting work is visible."""

    def __init__(self) -> None:
        self._open: dict[int, Step] = {}
        self._told_s = 0.0

    def begin(self, step: Step) -> None:
        """A request arrived."""
        self._open[step.request] = step

    def end(self, step: Step) -> None:
        """It finished."""
        del self._open[step.request]

    def tell(self, producer: Producer) -> None:
        """Send what is open, at most once a second."""
        if time.monotonic() - self._told_s < 1.0:
            return
        self._told_s = time.monotonic()
        for step in list(self._open.values()):
            producer.request(
                "generate",
                start_ns=step.first_start_ns or None,
                end_ns=None,
                enqueue_ns=step.arrived_ns,
                request=step.request,
                stream="prefill",
            )


def worker(core: int, work: queue.PriorityQueue, producer: Producer, block: nn.Module, opened: OpenRequests) -> None:
    """Serve steps on one CPU; decode goes before prefill."""
    os.sched_setaffinity(threading.get_native_id(), {core})
    while True:
        _, _, step = work.get()
        if step is None:
            return
        mapping, tokens = mapping_of(step.tokens) if step.phase == "prefill" else ("planned", 1)
        start_ns = time.time_ns()
        with torch.inference_mode():
            run_model(block, mapping, tokens)
        end_ns = time.time_ns()
        step.first_start_ns = step.first_start_ns or start_ns
        shape = f"b=1 t={step.tokens} d={WIDTH} f32"
        producer.execution(
            f"{step.phase} block",
            start_ns=start_ns,
            end_ns=end_ns,
            enqueue_ns=step.enqueue_ns,
            stream=step.phase,
            device=0,
            core=core,
            request=step.request,
            plan=PLAN,
            mapping=mapping,
            shape=shape,
            batch=1,
        )
        if step.steps_left:
            left = step.steps_left - 1
            put(work, replace(step, phase="decode", steps_left=left, enqueue_ns=end_ns))
        else:
            opened.end(step)
            producer.request(
                "generate",
                start_ns=step.first_start_ns,
                end_ns=end_ns,
                enqueue_ns=step.arrived_ns,
                request=step.request,
                stream="prefill",
                shape=shape,
            )


def put(work: queue.PriorityQueue, step: Step | None, last: bool = False) -> None:
    """Decode first, then first come first served; `None` ends a worker once all else is done."""
    rank = 9 if last else 0 if step is not None and step.phase == "decode" else 1
    work.put((rank, time.monotonic_ns(), step))


def main() -> None:
    """Send requests for a while."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--seconds", type=float, default=45)
    parser.add_argument("--rate", type=float, default=16.0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    chance = random.Random(0)
    block = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, batch_first=True, dropout=0.0).eval()
    work: queue.PriorityQueue = queue.PriorityQueue()
    opened = OpenRequests()
    cores = sorted(os.sched_getaffinity(0))[:2]
    with Producer(
        args.address,
        source="torch-serving",
        header=Header(
            source="torch-serving",
            hardware={"device 0": f"{platform.machine()} CPU", "cores": str(len(cores))},
            build={"torch": torch.__version__, "python": platform.python_version()},
            plans={PLAN: f"one block of width {WIDTH}, prompts padded to " + ", ".join(map(str, BUCKETS))},
            slo_ns=200_000_000,
        ),
    ) as producer:
        threads = [threading.Thread(target=worker, args=(c, work, producer, block, opened)) for c in cores]
        for thread in threads:
            thread.start()
        begun = time.monotonic()
        number = 0
        producer.mark("load starts")
        burst = False
        while (age := time.monotonic() - begun) < args.seconds:
            if burst != (20 <= age < 28):
                burst = not burst
                producer.mark("burst begins" if burst else "burst ends")
            for _ in range(chance.choice((2, 3, 4)) if burst else 1):
                tokens = chance.choice((96, 128, 150, 200)) if burst else chance.choice((24, 32, 32, 50, 64, 100, 128))
                now_ns = time.time_ns()
                step = Step(number, "prefill", tokens, chance.randint(4, 24), now_ns, now_ns)
                opened.begin(step)
                put(work, step)
                number += 1
            opened.tell(producer)
            producer.counter("requests waiting", work.qsize(), unit="requests")
            time.sleep(chance.expovariate(args.rate * (0.5 if burst else 1.0)))
        while work.qsize():
            opened.tell(producer)
            time.sleep(0.2)
        for _ in threads:
            put(work, None, last=True)
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    main()
