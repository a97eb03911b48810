"""Logs followed while they grow: every line once, whatever is done to the file, and at the time it was written."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fusetui.cli import main
from fusetui.importers.follow import lines_of
from fusetui.sources.log_follow import LogSource
from fusetui.sources.log_follow_tail import MAX_LINE, Tail
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.gate import Gate

NOON_S = 1_796_040_000  # 2026-11-30 12:00:00 UTC


def vllm(at: str, running: int, year: str = "") -> bytes:
    return (
        f"(APIServer pid=1) INFO {year}{at} [loggers.py:127] Engine 000: Avg prompt throughput: 16.5 tokens/s, "
        f"Avg generation throughput: 9.8 tokens/s, Running: {running} reqs, Waiting: 7 reqs, "
        "GPU KV cache usage: 99.5%, Prefix cache hit rate: 70.0%\n"
    ).encode()


TABLE = (
    b"| Unpadded Tokens | Padded Tokens | Num Paddings | Runtime Mode | Count |\n"
    b"| 6               | 8             | 2            | FULL         | 31    |\n"
    b"| 415             | 415           | 0            | NONE         | 2     |\n"
)


def write(path: Path, text: bytes, at_s: int = NOON_S, mode: str = "ab") -> None:
    with path.open(mode) as file:
        file.write(text)
    os.utime(path, (at_s, at_s))


def rows(source: LogSource) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for batch in source.poll(0.0):
        kept, dropped = Gate(batch.schema, "test").conform(batch, "test")
        assert dropped == 0
        found += kept.to_pylist()
    return found


def running(found: list[dict[str, Any]]) -> list[float]:
    return [row["value"] for row in found if row["name"] == "running requests"]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "vllm.log"
    write(path, b"INFO starting\n" + vllm("11-30 12:00:00", 51))
    return path


def test_a_vllm_log_is_read_from_its_end_on(log: Path) -> None:
    with closing(LogSource(str(log), lines_of)) as source:
        found = rows(source)
        assert running(found) == [51.0]
        assert {row["end_ns"] for row in found} == {NOON_S * 10**9}
        assert rows(source) == []
        write(log, b"GET /v1 200\n" + vllm("11-30 12:00:10", 52) + TABLE, NOON_S + 10)
        found = rows(source)
        assert running(found) == [52.0]
        steps = [(r["value"], r["mapping"], r["shape"]) for r in found if r["name"] == "engine steps"]
        assert steps == [(31.0, "adapted", "tokens=6 padded=8"), (2.0, "fallback", "tokens=415")]
        assert {row["end_ns"] for row in found} == {(NOON_S + 10) * 10**9}
        health = source.health()
        assert (health.state, health.detail, health.bad_rows) == ("live", "vLLM engine log", 0)
        assert source.header.build["server"] == "vLLM"
        assert (source.header.source, source.header.clock) == ("vllm", "epoch")
    assert source.health().state == "ended"


@pytest.mark.parametrize(
    ("at", "year"),
    [
        ("11-30 12:00:00", ""),
        ("11-30 12:00:00", "2026-"),
        ("11-30 17:45:00", "2026-"),  # Kathmandu
        ("11-30 04:00:00", ""),
        ("12-01 02:00:00", "2026-"),
    ],
)
def test_times_of_any_zone_stand_where_the_line_was_written(at: str, year: str, tmp_path: Path) -> None:
    write(tmp_path / "log", vllm(at, 1, year), NOON_S + 2)
    with closing(LogSource(str(tmp_path / "log"), lines_of)) as source:
        assert {row["end_ns"] for row in rows(source)} == {NOON_S * 10**9}


def test_a_backlog_is_placed_by_its_last_line(tmp_path: Path) -> None:
    hour = b"".join(vllm(f"11-30 11:{minute:02}:00", minute) for minute in range(60))
    write(tmp_path / "log", hour + vllm("11-30 12:00:00", 60))
    with closing(LogSource(str(tmp_path / "log"), lines_of)) as source:
        found = rows(source)
    assert running(found) == [float(n) for n in range(61)]
    assert min(row["end_ns"] for row in found) == (NOON_S - 3600) * 10**9


def test_an_sglang_log_and_its_requests(tmp_path: Path) -> None:
    decode = (
        b"[2026-11-30 12:00:0%d TP0] Decode batch. #running-req: 18, token usage: 0.5, cuda graph: %s, #queue-req: 3\n"
    )
    write(tmp_path / "log", decode % (0, b"True"))
    with closing(LogSource(str(tmp_path / "log"), lines_of)) as source:
        assert {(r["name"], r["value"]) for r in rows(source)} >= {("decode graph", 1.0), ("pending requests", 3.0)}
        write(tmp_path / "log", decode % (1, b"False"))
        assert [r["mapping"] for r in rows(source) if r["name"] == "decode graph"] == ["fallback"]
    line = b'{"request_parameters": "{}", "e2e_latency": %g, "request_finished_ts": %d, "prompt_tokens": 9}\n'
    write(tmp_path / "requests", line % (0.5, NOON_S))
    with closing(LogSource(str(tmp_path / "requests"), lines_of)) as source:
        told = rows(source)
        write(tmp_path / "requests", b"{broken\n" + line % (2.0, NOON_S + 3), NOON_S + 9_000)
        told += rows(source)
        assert source.health().bad_rows == 1
        assert source.health().missing == ()
    assert [(r["kind"], r["request"], r["end_ns"] - r["enqueue_ns"], r["end_ns"]) for r in told] == [
        ("request", 0, 500_000_000, NOON_S * 10**9),
        ("request", 1, 2_000_000_000, (NOON_S + 3) * 10**9),
    ]


def rename(log: Path) -> None:
    log.rename(log.with_suffix(".1"))


def copy_and_truncate(log: Path) -> None:
    log.write_bytes(b"")


@pytest.mark.parametrize(("turn", "told"), [(rename, "1 times rotated"), (copy_and_truncate, "1 times emptied")])
def test_a_rotated_log_goes_on(turn: Callable[[Path], None], told: str, log: Path) -> None:
    with closing(LogSource(str(log), lines_of)) as source:
        assert running(rows(source)) == [51.0]
        turn(log)
        write(log, vllm("11-30 12:00:20", 53), NOON_S + 20)
        assert running(rows(source)) == [53.0]
        assert source.health().detail == f"vLLM engine log, {told}"


def test_what_is_written_after_the_rename_and_before_the_new_file_is_kept(log: Path) -> None:
    with closing(LogSource(str(log), lines_of)) as source:
        rows(source)
        rename(log)
        assert rows(source) == []
        assert source.health().state == "live"
        write(log.with_suffix(".1"), vllm("11-30 12:00:10", 52)[:-1], NOON_S + 10)  # its newline never comes
        assert rows(source) == []
        write(log, vllm("11-30 12:00:20", 53), NOON_S + 20)
        assert running(rows(source)) == [52.0, 53.0]


def test_zeros_before_the_text_of_an_emptied_file_are_no_text(log: Path) -> None:
    with closing(LogSource(str(log), lines_of)) as source:
        rows(source)
        log.write_bytes(b"")
        assert rows(source) == []
        with log.open("r+b") as file:
            file.seek(5000)
            file.write(vllm("11-30 12:00:30", 54))
        assert running(rows(source)) == [54.0]


def test_a_log_that_says_nothing_yet_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"")
    with closing(LogSource(str(path), lines_of)) as source:
        assert source.poll(0.01) == ()
        assert (source.health().state, source.health().detail) == ("waiting", "nothing in it")
        write(path, b"loading weights\n")
        assert rows(source) == []
        assert source.health().detail == "no line that is known yet: vLLM and SGLang logs are followed"
        assert source.now_ns() is None
        write(path, vllm("11-30 12:00:00", 1))
        assert running(rows(source)) == [1.0]


def test_a_line_without_end_is_left_out_and_memory_stays_small(log: Path) -> None:
    with closing(LogSource(str(log), lines_of)) as source:
        rows(source)
        for _ in range(40):
            write(log, b"x" * 100_000)
            assert rows(source) == []
        assert len(source._tail._rest) <= MAX_LINE
        write(log, b"\n" + vllm("11-30 12:00:10", 52), NOON_S + 10)
        assert running(rows(source)) == [52.0]
        assert source.health().bad_rows == 1


def test_only_the_end_of_a_long_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    lines = [vllm(f"11-30 11:{n // 60:02}:{n % 60:02}", n) for n in range(3600)]
    path.write_bytes(b"".join(lines))
    tail = Tail(str(path), backlog_bytes=len(lines[-1]) * 3 + 10)
    assert tail.read() == b"".join(lines[-3:])
    assert not tail.in_backlog
    assert tail.read() == b""
    tail.close()


@pytest.mark.parametrize("seed", range(5))
def test_every_line_comes_once_however_it_is_written(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    path, text, seen = tmp_path / "log", b"", b""
    path.write_bytes(b"")
    tail = Tail(str(path))
    for n in range(60):
        piece = b"line %d %s\n" % (n, b"y" * chance.randrange(2000))
        cut = chance.randrange(len(piece))
        for part in (piece[:cut], piece[cut:]):
            with path.open("ab") as file:
                file.write(part)
            if chance.random() < 0.5:
                seen += tail.read()
        text += piece
        if chance.random() < 0.1:
            path.rename(tmp_path / f"log.{n}")
            path.write_bytes(b"")
            seen += tail.read()
            seen += tail.read()
    while more := tail.read():
        seen += more
    tail.close()
    assert seen == text


def test_closing_wakes_a_poll_and_a_missing_log_is_one_line(log: Path, tmp_path: Path) -> None:
    source = LogSource(str(log), lines_of)
    rows(source)
    source.close()
    began_s = time.monotonic()
    assert source.poll(5.0) == ()
    assert time.monotonic() - began_s < 2
    with pytest.raises(TelemetryError, match="cannot be read"):
        LogSource(str(tmp_path / "none"), lines_of)


def test_the_command_line_follows_a_log(log: Path, tmp_path: Path) -> None:
    os.utime(log)
    out = tmp_path / "out.arrows"
    assert main(["record", str(log), "-o", str(out), "--for", "500ms"]) == 0
    assert out.stat().st_size > 0
