"""How fast the what-if screen answers: key press to moved plan, and how late the event loop gets meanwhile.

Run it alone: python tests/bench/bench_whatif.py [KEYS]. It prints ms, no pass or fail.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "app"))
from fake_feed import feed_of
from shell_app import make_app

STEP_S = 0.005


async def main(keys: int) -> None:
    """Turn knobs on a fake replay and time the answers."""
    os.environ.setdefault("XDG_STATE_HOME", tempfile.mkdtemp())
    app = make_app(feed_of("playing"), Path(tempfile.mkdtemp()), hz=2)
    answers: list[float] = []
    delays: list[float] = []
    model: list[float] = []
    cpu: list[float] = []

    async def probe() -> None:
        while True:
            began_s = time.monotonic()
            await asyncio.sleep(STEP_S)
            delays.append(time.monotonic() - began_s - STEP_S)

    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("8")
        await pilot.pause(2.0)
        pane = app.base_screen.panes[1]
        watch = asyncio.create_task(probe())
        for number in range(keys):
            before = pane._canvas.codes.tobytes()
            began_s, began_cpu_s = time.monotonic(), time.process_time()
            app.post_message(_key("plus" if number // 4 % 2 == 0 else "minus"))
            while pane._canvas.codes.tobytes() == before and time.monotonic() - began_s < 2:
                await asyncio.sleep(0.001)
            answers.append(time.monotonic() - began_s)
            cpu.append(time.process_time() - began_cpu_s)
            model.append(app.board.answer.took_ms / 1e3)
            await asyncio.sleep(0.1)
        watch.cancel()
    _print("key press to moved plan", answers)
    _print("event loop late by", delays)
    _print("of it the model", model)
    _print("CPU, key to moved plan", cpu)


def _key(name: str) -> object:
    from textual import events

    return events.Key(name, None)


def _print(what: str, seconds: list[float]) -> None:
    p50, p95, worst = np.quantile(np.array(seconds) * 1e3, [0.5, 0.95, 1.0])
    print(f"{what:<24}p50 {p50:.0f} ms  p95 {p95:.0f} ms  max {worst:.0f} ms  n {len(seconds)}")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 40))
