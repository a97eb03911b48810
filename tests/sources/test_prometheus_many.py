"""Several servers in one view: rows of each under its own address, and one that is gone holds up no other."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any

import pytest
from http_servers import send, serving

from fusetui.sources.prometheus import open_spec
from fusetui.sources.prometheus_many import ManyServers
from fusetui.sources.spec import OpenOptions
from fusetui.telemetry.errors import TelemetryError


def told(source: ManyServers, wanted: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and len({row["host"] for row in rows}) < wanted:
        rows += [row for batch in source.poll(0.1) for row in batch.to_pylist()]
    return rows


def test_each_row_names_its_server_and_a_dead_one_is_told() -> None:
    with (
        serving(lambda r: send(r, b"vllm:num_requests_waiting 98\n")) as one,
        serving(lambda r: send(r, b'DCGM_FI_DEV_POWER_USAGE{gpu="3"} 68.5\n')) as two,
    ):
        spec = f"{one},{two},http://127.0.0.1:9/metrics#every=0.2,window=1"
        source = open_spec(spec, OpenOptions())
        assert isinstance(source, ManyServers)
        with closing(source):
            rows = told(source, 2)
            while source.health().producers[2].state == "waiting":  # they are not all asked at once
                time.sleep(0.01)
            rows += [row for batch in source.poll(0.0) for row in batch.to_pylist()]
            assert {(row["host"], row["name"], row["value"], row["device"]) for row in rows} == {
                (one.split("/")[2], "requests waiting", 98.0, None),
                (two.split("/")[2], "power", 68.5, 3),
            }
            health = source.health()
            assert source.header.build == {"engine": "DCGM exporter, vLLM"}
        assert (health.name, health.state, health.detail) == ("3 servers", "live", "2 of 3 live")
        assert health.rows >= len(rows)
        states = {p.name: p.state for p in health.producers}
        assert states == {one: "live", two: "live", "http://127.0.0.1:9/metrics": "reconnecting"}
        assert health.last_error.startswith("http://127.0.0.1:9/metrics: no answer")
        assert sum(p.rows for p in health.producers) == health.rows
    assert source.health().state == "ended"


def test_none_that_answers_is_not_live() -> None:
    source = open_spec("http://127.0.0.1:9/a,http://127.0.0.1:9/b", OpenOptions())
    with closing(source):
        deadline = time.monotonic() + 10
        while source.health().state == "waiting" and time.monotonic() < deadline:
            time.sleep(0.01)
        assert source.health().state == "reconnecting"
        assert source.now_ns() is None


@pytest.mark.parametrize(
    "spec",
    [
        "http://127.0.0.1:9/a,http://127.0.0.1:9/a",
        ",".join(f"http://127.0.0.1:{n}/" for n in range(1, 70)),
        "http://127.0.0.1:9/a,http://192.0.2.1/b",
    ],
)
def test_servers_that_cannot_be_meant(spec: str) -> None:
    with pytest.raises(TelemetryError):
        open_spec(spec, OpenOptions())
