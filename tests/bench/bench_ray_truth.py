"""Ray Serve on loopback, watched live, against what its clients measured: `python tests/bench/bench_ray_truth.py`.

Ray must be installed. A deployment sleeps 65 ms for nine requests of ten, 150 ms for eight of a hundred and 300 ms for
the rest; Poisson clients note when they asked and were answered. The live source's window takes in all of it, so that
its counts must be the number of requests, and the clients' nearest-rank quantiles must lie inside the brackets of the
proxy's latency (a replica's leaves the router out, and a busy machine adds what no server sees: the way to the proxy).
"""

from __future__ import annotations

import sys
import threading
import time
import urllib.request
from contextlib import closing
from socket import create_server
from typing import Any

import numpy as np

from fusetui.sources.registry import open_source

REQUESTS, RATE = 300, 10.0
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
ROWS = ("e2e", "replica latency")


def free_port() -> int:
    with create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def serve(metrics_port: int, http_port: int) -> Any:
    """Ray with one deployment; returns the module, to shut it down."""
    import ray
    from ray import serve as ray_serve

    ray.init(
        num_cpus=2,
        include_dashboard=False,
        _metrics_export_port=metrics_port,
        _system_config={"metrics_report_interval_ms": 1000},
        logging_level="ERROR",
        log_to_driver=False,
    )

    @ray_serve.deployment(num_replicas=1, max_ongoing_requests=100)
    class Model:
        async def __call__(self, request: Any) -> str:
            import asyncio

            await asyncio.sleep(float(request.query_params["s"]))
            return "done"

    ray_serve.start(http_options={"host": "127.0.0.1", "port": http_port})
    ray_serve.run(Model.bind())
    return ray


def ask(url: str, sleep_s: float, took_s: list[float]) -> None:
    began_s = time.perf_counter()
    with urllib.request.urlopen(f"{url}?s={sleep_s}", timeout=60) as answer:
        answer.read()
    took_s.append(time.perf_counter() - began_s)


def load(url: str) -> list[float]:
    """All requests, open loop; returns what each took."""
    chance = np.random.default_rng(1)
    sleeps = chance.choice([0.065, 0.15, 0.3], REQUESTS, p=[0.9, 0.08, 0.02])
    took_s: list[float] = []
    clients = []
    for sleep_s, gap_s in zip(sleeps, chance.exponential(1 / RATE, REQUESTS), strict=True):
        time.sleep(gap_s)
        clients.append(threading.Thread(target=ask, args=(url, float(sleep_s), took_s)))
        clients[-1].start()
    for client in clients:
        client.join()
    return took_s


def latest(source: Any, seconds: float, rows: dict[str, float]) -> None:
    """Poll, keeping the newest value of each counter."""
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        for batch in source.poll(0.2):
            found = [row for row in batch.to_pylist() if row["kind"] == "counter"]
            for name in [name for name in rows if name.endswith((" lo", " hi"))]:
                del rows[name]
            rows.update({row["name"]: row["value"] for row in found})


def judge(rows: dict[str, float], took_s: list[float]) -> int:
    wrong = 0
    values = np.sort(took_s)
    truth = {label: float(values[int(np.ceil(q * len(values) - 1e-9)) - 1]) for label, q in QUANTILES.items()}
    for row in ROWS:
        name = next((name.removesuffix(" n") for name in rows if name.startswith(row) and name.endswith(" n")), None)
        if name is None:
            print(f"{row}: NOT THERE")
            wrong += 1
            continue
        n = int(rows[f"{name} n"])
        print(f"{name}: n {n}, the clients' {len(took_s)}{'' if n == len(took_s) else ' WRONG'}")
        wrong += n != len(took_s)
        for label, value in truth.items():
            lo, hi = rows.get(f"{name} {label} lo", np.nan), rows.get(f"{name} {label} hi", np.inf)
            inside = lo < value <= hi
            wrong += not inside and row == ROWS[0]
            said = "inside" if inside else "OUTSIDE" if row == ROWS[0] else "longer: the router is not in it"
            print(f"  {label} in ({lo:g}, {hi:g}] s, the clients' {value:.4f} s {said}")
    return wrong


def main() -> None:
    metrics_port, http_port = free_port(), free_port()
    ray = serve(metrics_port, http_port)
    url = f"http://127.0.0.1:{http_port}/"
    rows: dict[str, float] = {}
    warm: list[float] = []
    ask(url, 0.065, warm)  # its series appear with the first request
    time.sleep(8)
    with closing(open_source(f"http://127.0.0.1:{metrics_port}/metrics#every=5,window=3600")) as source:
        latest(source, 7, rows)
        watching = threading.Thread(target=latest, args=(source, REQUESTS / RATE + 15, rows))
        watching.start()
        took_s = load(url)
        watching.join()
        health = source.health()
    ray.shutdown()
    print(f"{health.detail}, {health.bytes_in:,} bytes; waiting and running at the end:", end=" ")
    print({name: value for name, value in rows.items() if name.startswith("requests ")})
    wrong = judge(rows, took_s)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
