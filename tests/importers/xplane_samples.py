"""Small XPlane profiles written by hand."""

from __future__ import annotations

from collections.abc import Sequence

from protobuf_samples import content, number

STATS = {"correlation_id": 1, "hlo_op": 2, "hlo_module": 3, "program_id": 4, "step_num": 5, "device_ordinal": 6}
BEGAN_NS = 1_770_000_000_000_000_000


def stat(name: str, value: int | str, refs: dict[str, int]) -> bytes:
    if isinstance(value, str):
        return content(4, number(1, STATS[name]) + number(7, refs.setdefault(value, 100 + len(refs))))
    return content(4, number(1, STATS[name]) + number(3, value))


class PlaneText:
    """A plane as it is being written."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._names: dict[str, int] = {}
        self._refs: dict[str, int] = {}
        self._lines: list[bytes] = []

    def line(self, name: str, events: Sequence[tuple[str, int, int, dict[str, int | str]]], base_ns: int = 0) -> None:
        """Events as (name, offset ps, duration ps, statistics)."""
        body = number(1, len(self._lines)) + content(2, name) + number(3, base_ns)
        for event, offset, took, stats in events:
            key = self._names.setdefault(event, 1 + len(self._names))
            encoded = number(1, key) + number(2, offset) + number(3, took)
            encoded += b"".join(stat(what, value, self._refs) for what, value in stats.items())
            body += content(4, encoded)
        self._lines.append(body)

    def encoded(self, **facts: int | str) -> bytes:
        body = number(1, 1) + content(2, self._name) + b"".join(content(3, line) for line in self._lines)
        for name, key in self._names.items():
            body += content(4, number(1, key) + content(2, number(1, key) + content(2, name)))
        own = {name: 50 + i for i, name in enumerate(facts)}
        for name, key in {**STATS, **self._refs, **own}.items():
            body += content(5, number(1, key) + content(2, number(1, key) + content(2, name)))
        for name, value in facts.items():
            encoded = content(5, value) if isinstance(value, str) else number(3, value)
            body += content(6, number(1, own[name]) + encoded)
        return content(1, body)


def profile() -> bytes:
    """Two kernels of one device with their launches, a third without, a step, and when it began."""
    gpu, host = PlaneText("/device:GPU:2"), PlaneText("/host:CPU")
    module: dict[str, int | str] = {"hlo_op": "fusion.1", "hlo_module": "jit_f", "program_id": 7}
    gpu.line(
        "Stream #5(Kernel)",
        [
            ("first", 30_000_400, 5_000_000, {"correlation_id": 11, **module}),
            ("second", 40_000_500, 2_000_000, {"correlation_id": 12}),
            ("orphan", 50_000_000, 1_499, {"correlation_id": 99}),
        ],
        base_ns=1000,
    )
    gpu.line("XLA Ops", [("derived", 30_000_000, 5_000_000, module)])
    host.line(
        "Host Threads/1",
        [
            ("hipModuleLaunchKernel", 10_000_000, 4_000_000, {"correlation_id": 11}),
            ("hipLaunchKernel", 20_000_000, 3_000_000, {"correlation_id": 12}),
            ("$python call", 0, 90_000_000, {}),
            ("train", 5_000_000, 20_000_000, {"step_num": 4}),
        ],
        base_ns=500,
    )
    facts = gpu.encoded(device_vendor="AMD", core_count=304, memory_size=192 << 30)
    start = PlaneText("Task Environment").encoded(profile_start_time=BEGAN_NS)
    return PlaneText("/host:metadata").encoded(jax_version="0.9") + facts + host.encoded() + start + content(4, "node7")
