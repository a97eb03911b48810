"""Sources by what a person types."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fusetui.sources.arrow import ArrowSource
from fusetui.sources.host import HostSource
from fusetui.sources.load import LoadSource
from fusetui.sources.registry import open_source, source_modules
from fusetui.sources.simulated import SimulatedSource
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.source import Source


def test_each_spec_opens_its_source(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    kinds: dict[str, type] = {
        "host": HostSource,
        "sim": SimulatedSource,
        "sim:scenario=steady,seed=3": SimulatedSource,
        "load": LoadSource,
        "load:seed=3,rate=20000": LoadSource,
        f"unix:{tmp_path}/s": ArrowSource,
        "tcp:127.0.0.1:0": ArrowSource,
        str(tmp_path / "pipe"): ArrowSource,
    }
    for spec, kind in kinds.items():
        source: Source = open_source(spec)
        assert isinstance(source, kind), spec
        assert source.transport is None
        source.close()


def test_the_parameters_arrive() -> None:
    source = open_source("load:seed=3,devices=1,cores=4")
    assert source.header.hardware == {"devices": "1 made up", "cores": "4 per device"}
    assert source.header.build == {"seed": "3"}


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("load:sede=3", "unknown parameter 'sede'; known: seed, rate"),
        ("load:rate=fast", "rate is 'fast', not a number"),
        ("load:rate=-1", "rate 1 to 2 million"),
        ("load:seed=nan", "NaN"),
        ("load:seed=inf", "infinity"),
        ("sim:sede=3", "unknown parameter 'sede'; known: scenario, seed, speed"),
        ("sim:scenario=nowhere", "nowhere: no such scenario"),
        ("sim:seed=1.5", "1.5"),
        ("sim:seed=-1", "not between 0 and"),
        ("sim:speed=0", "speed 0 is not above 0"),
        ("sim:speed=nan", "speed nan is not"),
        ("host:x=1", "unknown parameter"),
        ("tcp:0.0.0.0:0", "other machines"),
        ("gpu0", "no such source; there are"),
        ("/no/such/pipe", "no such source"),
        ("", "no such source"),
    ],
)
def test_a_wrong_spec_says_what_is_wrong(spec: str, complaint: str) -> None:
    with pytest.raises(TelemetryError, match=complaint) as caught:
        open_source(spec)
    assert "\n" not in str(caught.value)


def test_what_there_is_is_listed() -> None:
    with pytest.raises(TelemetryError) as caught:
        open_source("gpu0")
    names = [name for module in source_modules() for name in module.NAMES]
    assert f"there are {', '.join(name for name in names if '+' not in name)}, pipes and logs" in str(caught.value)
    assert len({module.SYNTAX for module in source_modules()}) == len(source_modules()) >= 5
