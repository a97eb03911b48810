"""How long planning takes: every block, a 40-operator stack and wide graphs, fresh and after a change of hardware.

    python tests/bench/bench_plan.py [--repeat 15]

Prints medians of CPU and wall milliseconds for all four policies together, and the peak of Python's allocations.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import time
import tracemalloc
from collections.abc import Callable

from fusetui.accelerator.blocks import blocks, build_block
from fusetui.accelerator.blocks.builder import Builder
from fusetui.accelerator.blocks.parts import mlp
from fusetui.accelerator.constants import Constants, default_constants
from fusetui.accelerator.graph import Graph
from fusetui.accelerator.hardware import Hardware
from fusetui.accelerator.plan import _legal, _workload, make_plans
from fusetui.accelerator.presets import load_hardware


def stack() -> Graph:
    """Forty operators: five norm - MLP - residual layers."""
    b = Builder("stack", {"tokens": 1024, "hidden": 4096, "inner": 11008}, "bf16")
    x = b.tensor("x", ("tokens", "hidden"))
    for i in range(5):
        h = b.norm(f"norm{i}", x, "hidden", rms=True)
        h = b.elementwise(f"scale{i}", h)
        x = b.elementwise(f"residual{i}", mlp(b, h, gated=True, bias=False, prefix=f"{i}."), x, cost_class="add")
    return b.graph()


def heads(count: int) -> Graph:
    """`count` products of one input, each with two operators after it, added up: more down-sets than can be swept."""
    b = Builder(f"{count} heads", {"m": 1024, "n": 1024, "k": 1024}, "bf16")
    x = b.tensor("x", ("m", "k"))
    total = ""
    for i in range(count):
        h = b.matmul(f"product{i}", x, b.weight(f"w{i}", "k", "n"), ("m", "n"))
        h = b.elementwise(f"second{i}", b.elementwise(f"first{i}", h))
        total = b.elementwise(f"sum{i}", total, h, cost_class="add") if total else h
    return b.graph()


def fan(count: int) -> Graph:
    """`count` values of one input, added up."""
    b = Builder(f"fan of {count}", {"m": 1024, "n": 1024}, "bf16")
    x = b.tensor("x", ("m", "n"))
    total = x
    for i in range(count):
        total = b.elementwise(f"sum{i}", total, b.elementwise(f"value{i}", x), cost_class="add")
    return b.graph()


def measure(run: Callable[[], object], repeat: int) -> tuple[float, float]:
    """Median (CPU, wall) milliseconds."""
    cpu, wall = [], []
    for _ in range(repeat):
        c, w = time.process_time(), time.perf_counter()
        run()
        cpu.append(time.process_time() - c)
        wall.append(time.perf_counter() - w)
    return statistics.median(cpu) * 1e3, statistics.median(wall) * 1e3


def first_plan(make: Callable[[], Graph], hw: Hardware, constants: Constants) -> None:
    """Plan a graph as if nothing like it had been planned before."""
    _legal.cache_clear()
    _workload.cache_clear()
    make_plans(make(), hw, constants, "bf16")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=15)
    repeat = parser.parse_args().repeat
    hw = load_hardware("H100")
    constants = default_constants(hw, "bf16")
    slower = [dataclasses.replace(hw, dram_bytes_per_s=hw.dram_bytes_per_s * (1 - i / 100)) for i in range(repeat + 1)]
    makers: dict[str, Callable[[], Graph]] = {b.name: (lambda name=b.name: build_block(name)) for b in blocks()}
    print(f"{'block':<22}{'operators':>10}{'fresh cpu':>11}{'wall':>8}{'replan cpu':>12}{'wall':>8}  ms")
    wide: dict[str, Callable[[], Graph]] = {
        "fan of 12": lambda: fan(12),
        "fan of 40": lambda: fan(40),
        "10 heads": lambda: heads(10),
        "20 heads": lambda: heads(20),
    }
    for name, make in (makers | {"stack": stack} | wide).items():
        graph, changes = make(), iter(slower * 2)
        fresh = measure(lambda make=make: first_plan(make, hw, constants), repeat)
        make_plans(graph, hw, constants, "bf16")
        again = measure(lambda g=graph, c=changes: make_plans(g, next(c), constants, "bf16"), repeat)
        print(f"{name:<22}{len(graph.operators):>10}{fresh[0]:>11.1f}{fresh[1]:>8.1f}{again[0]:>12.1f}{again[1]:>8.1f}")
    tracemalloc.start()
    first_plan(stack, hw, constants)
    print(f"peak of allocations for the stack: {tracemalloc.get_traced_memory()[1] / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
