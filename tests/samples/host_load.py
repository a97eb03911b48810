"""The load behind `sample_traces/host-load.arrows`: six busy processes on a small machine for 15 of 45 seconds.

fusetui record host -o host-load.arrows --for 45s &
python tests/samples/host_load.py
"""

import multiprocessing
import time


def spin(seconds: float) -> None:
    """Keep a CPU busy."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(i * i for i in range(20_000))


if __name__ == "__main__":
    time.sleep(15)
    workers = [multiprocessing.Process(target=spin, args=(15,)) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
