"""libtpu's counters: messages as libtpu sends them, in the units and on the chips they are of."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from fusetui.sources.registry import open_source
from fusetui.sources.tpu import TpuProbe
from fusetui.telemetry.errors import TelemetryError


def one_of(name: str, **field: Any) -> SimpleNamespace:
    """A message with one field of a oneof set; the others read as they do when they are not."""
    unset = {"as_int": 0, "as_double": 0.0, "as_string": "", "int_attr": 0, "string_attr": ""}
    empty = SimpleNamespace(attributes=[])
    (key,) = field
    return SimpleNamespace(
        **{**unset, "kvlist_attr": empty, **field}, WhichOneof=lambda asked: key if asked == name else ""
    )


def chip(number: int) -> SimpleNamespace:
    return SimpleNamespace(value=one_of("attr", int_attr=number))


def ordinal(text: str) -> SimpleNamespace:
    listed = [SimpleNamespace(key="device_ordinal", value=one_of("attr", string_attr=text))]
    return SimpleNamespace(value=one_of("attr", kvlist_attr=SimpleNamespace(attributes=listed)))


def gauge(where: SimpleNamespace, **value: Any) -> SimpleNamespace:
    return SimpleNamespace(attribute=where, gauge=one_of("value", **value))


def runs(where: SimpleNamespace, counts: list[int], mean: float, finite: int = 4) -> SimpleNamespace:
    buckets = SimpleNamespace(num_finite_buckets=finite, growth_factor=2.0, scale=100.0)
    options = SimpleNamespace(exponential_buckets=buckets)
    told = SimpleNamespace(count=sum(counts), mean=mean, bucket_counts=counts, bucket_options=options)
    return SimpleNamespace(attribute=where, distribution=told)


ANSWERS: dict[str, Iterable[Any]] = {
    "tpu.runtime.tensorcore.dutycycle.percent": [gauge(chip(0), as_double=42.5), gauge(chip(1), as_double=140.0)],
    "tpu.runtime.hbm.memory.usage.bytes": [gauge(chip(0), as_int=1 << 30)],
    "hlo.queue.size.gauge": [gauge(ordinal("3"), as_int=7), gauge(ordinal("x"), as_string="no")],
    # below 100 µs, to 200, to 400, to 800, to 1600, beyond
    "hlo.execution.timing.distribution.microseconds": [runs(ordinal("0"), [0, 0, 190, 8, 0, 2], 333.0)],
}


def values(probe: TpuProbe) -> dict[tuple[str, int | None], tuple[float, str]]:
    probe.open()
    return {(r.name, r.device): (r.value, r.unit) for r in probe.read().readings}


def test_every_metric_in_its_unit_on_its_chip() -> None:
    probe = TpuProbe(ask=lambda name: ANSWERS.get(name, ()))
    found = values(probe)
    assert found == {
        ("tensorcore busy", 0): (42.5, "%"),
        ("memory used", 0): (float(1 << 30), "B"),
        ("programs queued", 3): (7.0, ""),
        ("program run n", 0): (200.0, ""),
        ("program run mean", 0): (pytest.approx(333e-6), "s"),
        ("program run p50 lo", 0): (pytest.approx(200e-6), "s"),
        ("program run p50 hi", 0): (pytest.approx(400e-6), "s"),
        ("program run p95 lo", 0): (pytest.approx(200e-6), "s"),
        ("program run p95 hi", 0): (pytest.approx(400e-6), "s"),
        ("program run p99 lo", 0): (pytest.approx(400e-6), "s"),
        ("program run p99 hi", 0): (pytest.approx(800e-6), "s"),
    }
    assert "tpu.runtime.hbm.utilization.percent: this libtpu does not tell" in probe.missing()


def test_beyond_the_last_bucket_there_is_no_upper_end() -> None:
    found = values(
        TpuProbe(ask=lambda name: [runs(chip(0), [0, 0, 0, 0, 0, 3], 5e6)] if name.startswith("hlo.ex") else ())
    )
    assert found["program run p95 lo", 0] == (pytest.approx(1600e-6), "s")
    assert ("program run p95 hi", 0) not in found
    assert ("program run p99 lo", 0) not in found


@pytest.mark.parametrize("counts", [[], [0, 0, 0]])
def test_nothing_ran(counts: list[int]) -> None:
    assert values(TpuProbe(ask=lambda name: [runs(chip(0), counts, 0.0)] if name.startswith("hlo.ex") else ())) == {}


def test_no_program_uses_the_tpu() -> None:
    def ask(name: str) -> Iterable[Any]:
        raise ConnectionError("libtpu on port 8431: unavailable; is a program using the TPU?")

    probe = TpuProbe(ask=ask)
    probe.open()
    sample = probe.read()
    assert sample.readings == []
    assert sample.problem == "libtpu on port 8431: unavailable; is a program using the TPU?"
    assert probe.missing() == ()


def test_without_the_package_and_with_a_wrong_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("grpc", "tpu_info", "tpu_info.proto"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(TelemetryError, match="tpu: the package tpu-info is missing; pip install tpu-info"):
        open_source("tpu")
    with pytest.raises(TelemetryError, match="out of range"):
        open_source("tpu:port=0")
    with pytest.raises(TelemetryError, match="unknown parameter 'host'"):
        open_source("tpu:host=1")
