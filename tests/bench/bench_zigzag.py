"""Our tile search beside ZigZag's, in one sitting: time to search, cycles and DRAM bytes of the same layers.

    python -m venv Z && Z/bin/pip install zigzag-dse six
    python tests/bench/bench_zigzag.py Z/bin/python [--lpf 6]

Both are told of the accelerator that ZigZag ships as tpu_like: 32 x 32 MACs, 2 MiB of on-chip memory, 8 bytes per cycle
to DRAM, 8-bit operands. Prints ZigZag's numbers, ours, and ratios.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from fusetui.accelerator.constants import Constants, default_constants
from fusetui.accelerator.hardware import Hardware, LaunchCosts
from fusetui.accelerator.matmul import price_matmuls

# (M, N, K)
LAYERS = {
    "GEMM 1024^3": (1024, 1024, 1024),
    "BERT QKV": (512, 2304, 768),
    "BERT QK^T, one head": (512, 512, 64),
    "LLaMA o_proj, 256 tokens": (256, 4096, 4096),
    "LLaMA o_proj, decode": (1, 4096, 4096),
}
SIDE, SRAM, DRAM_BYTES_PER_CYCLE, CLOCK = 32, 2 << 20, 8, 1e9

_THEIRS = """
import json, sys, tempfile, time, pathlib, zigzag
from zigzag.api import get_hardware_performance_zigzag
m, n, k, lpf = map(int, sys.argv[1:])
layer = {
    "id": 0, "name": "layer", "operator_type": "Conv",
    "equation": "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]",
    "dimension_relations": ["ix=1*ox+1*fx", "iy=1*oy+1*fy"],
    "loop_dims": ["B", "K", "C", "OY", "OX", "FY", "FX"], "loop_sizes": [1, n, k, 1, m, 1, 1],
    "operand_precision": {"W": 8, "I": 8, "O": 16, "O_final": 8}, "operand_source": {"I": 0, "W": 0},
}
inputs = pathlib.Path(zigzag.__file__).parent / "inputs"
began = time.perf_counter()
answer = get_hardware_performance_zigzag(
    [layer], str(inputs / "hardware/tpu_like.yaml"), str(inputs / "mapping/tpu_like.yaml"), opt="latency",
    dump_folder=tempfile.mkdtemp(), lpf_limit=lpf, loma_show_progress_bar=False,
)
took = time.perf_counter() - began
words = 0
for cost, _ in answer[-1]:
    for operand, levels in cost.memory_word_access.items():
        top = levels[-1]
        words += sum(getattr(top, "data", top).values()) if hasattr(getattr(top, "data", top), "values") else sum(top)
print(json.dumps({"cycles": float(answer[1]), "dram_bytes": float(words) * 8, "seconds": took}))
"""


def described() -> tuple[Hardware, Constants]:
    """The same accelerator as a device of ours, at its peak rates and without start times."""
    hw = Hardware(
        name="tpu_like", title="", kind="systolic", cores=1, clock_hz=CLOCK,
        matrix_flops={"int8": 2 * SIDE * SIDE * CLOCK}, vector_flops={"fp32": SIDE * CLOCK},
        sram_bytes_per_core=SRAM, dram_bytes=1 << 34, dram_bytes_per_s=DRAM_BYTES_PER_CYCLE * CLOCK,
        mma={"int8": (1, SIDE, SIDE)}, launch=LaunchCosts(0.0, 0.0, 0.0, 0.0),
    )  # fmt: skip
    constants = default_constants(hw, "int8")
    fields = [f.name for f in dataclasses.fields(constants)]
    ideal = {name: 0.0 for name in fields if name.endswith("_ns")}
    ideal |= {name: 1.0 for name in fields if name.startswith("eta_")}
    ideal |= {"overlap": 64.0}  # the slowest resource decides, as there
    ideal |= {name: np.inf for name in fields if name == "cast_eta"}  # operands come in 8 bits
    return hw, dataclasses.replace(constants, **ideal)  # type: ignore[arg-type]


def theirs(python: Path, shape: tuple[int, int, int], lpf: int) -> dict[str, float]:
    """One search in a process of its own; import time is not counted."""
    command = [str(python), "-c", _THEIRS, *map(str, shape), str(lpf)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        sys.exit(f"ZigZag failed: {(done.stderr.strip() or 'no message').splitlines()[-1]}")
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def ours(shape: tuple[int, int, int], repeat: int = 9) -> dict[str, float]:
    """The median of several searches."""
    hw, constants = described()
    seconds = []
    for _ in range(repeat):
        began = time.perf_counter()
        price = price_matmuls(hw, constants, 1, *shape, dtype="int8")
        seconds.append(time.perf_counter() - began)
    return {
        "cycles": float(price.time_ns[0]) * CLOCK / 1e9,
        "dram_bytes": float(price.dram_bytes[0]),
        "seconds": statistics.median(seconds),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("python", type=Path, help="of an environment with zigzag-dse and six")
    parser.add_argument("--lpf", type=int, default=6)
    args = parser.parse_args()
    probe = [str(args.python), "-c", "import zigzag.api"]
    if not args.python.is_file() or subprocess.run(probe, capture_output=True, check=False).returncode:
        sys.exit(f"{args.python}: not a Python with zigzag-dse and six; see the head of this script")
    print(f"{'layer':<26}{'ZigZag s':>9}{'ours ms':>9}{'ratio':>8}{'cycles':>11}{'ours/':>7}{'DRAM MB':>9}{'ours/':>7}")
    faster = []
    for name, shape in LAYERS.items():
        their, our = theirs(args.python, shape, args.lpf), ours(shape)
        faster.append(their["seconds"] / our["seconds"])
        print(
            f"{name:<26}{their['seconds']:>9.2f}{our['seconds'] * 1e3:>9.2f}{faster[-1]:>8.0f}{their['cycles']:>11.0f}"
            f"{our['cycles'] / their['cycles']:>7.2f}{their['dram_bytes'] / 1e6:>9.2f}"
            f"{our['dram_bytes'] / their['dram_bytes']:>7.2f}"
        )
    print(f"ours is {np.median(faster):.0f} times as fast (median)")


if __name__ == "__main__":
    main()
