"""The thread behind a device source: losses counted, ends and failures told, the pace kept."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from fusetui.sources.device_rows import DeviceReading, Sample
from fusetui.sources.device_source import DeviceSource, pause_s
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header


class Script:
    """A probe that gives what it was written to give, then ends or raises."""

    name = "script"
    cautions = ("nothing proved",)

    def __init__(self, samples: Sequence[Sample], *, streams: bool = True, last: TelemetryError | None = None) -> None:
        self._samples = list(samples)
        self.streams = streams
        self._last = last
        self.closed = threading.Event()
        self.stopped = False

    def open(self) -> Header:
        return Header(source="script", hardware={"device 0": "T4", "device 1": "T4", "device 2": "L4"})

    def read(self) -> Sample | None:
        if self._samples:
            return self._samples.pop(0)
        if self._last is not None:
            raise self._last
        return None

    def missing(self) -> Sequence[str]:
        return ("fan: not told",)

    def stop(self) -> None:
        self.stopped = True

    def close(self) -> None:
        self.closed.set()


def sample(value: float, problem: str = "") -> Sample:
    return Sample([DeviceReading("power", value, "W", 0)], [], problem)


def finished(probe: Script) -> DeviceSource:
    source = DeviceSource(probe)
    assert probe.closed.wait(10)
    for thread in threading.enumerate():
        if thread.name == "ask script":
            thread.join(10)
    return source


def test_what_came_before_the_end_is_still_given() -> None:
    source = finished(Script([sample(1), Sample(), sample(2)]))
    batches = source.poll(0)
    assert [batch.column("value").to_pylist() for batch in batches] == [[1.0], [2.0]]
    health = source.health()
    assert (health.state, health.rows, health.batches, health.detail) == ("ended", 2, 2, "2 x T4, L4")
    assert health.missing == ("nothing proved", "fan: not told")
    assert source.now_ns() == batches[-1].column("end_ns")[0].as_py()
    source.close()


def test_a_failure_says_why_and_a_problem_goes_when_the_next_look_is_good() -> None:
    source = finished(Script([sample(1, "device 0: busy")]))
    assert source.health().last_error == "device 0: busy"
    source = finished(Script([sample(1, "device 0: busy"), sample(2)]))
    assert source.health().last_error == ""
    source = finished(Script([sample(1)], last=TelemetryError("script", "gone", "plug it in")))
    assert (source.health().state, source.health().last_error) == ("failed", "script: gone; plug it in")
    source.close()
    assert source.health().state == "ended"


def test_batches_nobody_polls_are_dropped_oldest_first_and_counted() -> None:
    source = finished(Script([sample(value) for value in range(300)]))
    health = source.health()
    assert (health.batches, health.rows, health.dropped_batches, health.dropped_rows) == (300, 300, 44, 44)
    values = [batch.column("value")[0].as_py() for batch in source.poll(0)]
    assert values == [float(value) for value in range(44, 300)]


@pytest.mark.parametrize(("spent_s", "pause"), [(0.0, 1.0), (0.25, 0.75), (0.9, 0.5), (5.0, 0.5)])
def test_a_polled_device_is_never_asked_without_a_pause(spent_s: float, pause: float) -> None:
    assert pause_s(1.0, spent_s) == pause


def test_closing_stops_the_probe() -> None:
    probe = Script([sample(1)] * 1000, streams=False)
    source = DeviceSource(probe, 3600)
    assert len(source.poll(10)) == 1
    source.close()
    assert probe.stopped
    assert probe.closed.wait(10)
    assert source.health().state == "ended"
