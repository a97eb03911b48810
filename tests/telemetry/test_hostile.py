"""No input kills, hangs or surprises the reader: it is read, or refused with one line.

The inputs run in forked children of a process of their own; FUSETUI_FUZZ sets how many mutations (default 300).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COUNT = int(os.environ.get("FUSETUI_FUZZ", "300"))
SHARDS = 6


def run(*arguments: str) -> str:
    script = Path(__file__).with_name("hostile_inputs.py")
    env = {**os.environ, "POLARS_MAX_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(script), *arguments], env=env, capture_output=True, text=True, timeout=3600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_crafted_attacks() -> None:
    assert run("crafted", "0", "0").startswith("25 inputs, 5 read in full")


@pytest.mark.parametrize("shard", range(SHARDS))
def test_mutated_captures(shard: int) -> None:
    count = -(-COUNT // SHARDS)
    out = run("fuzz", str(count), str(1000 + shard))
    total, whole = (int(part.split()[0]) for part in out.split(",")[:2])
    assert total == count
    # When all are refused the mutations do not reach the decoder and prove nothing.
    assert whole > count // 10
