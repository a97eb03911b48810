"""`fusetui record` as a service: stopped, killed and started again in one folder, with alerts beside it."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest

from fusetui.commands.limits import Amount, keep_limits, retention, rotation, segment_limits
from fusetui.emit import Producer
from fusetui.telemetry.folder import folder_segments
from fusetui.telemetry.open import open_trace
from fusetui.telemetry.retention import Keep
from fusetui.telemetry.schema import build_batch

RECORD = [sys.executable, "-m", "fusetui.cli", "record"]


def eventually(check: Callable[[], bool], limit_s: float = 30.0) -> bool:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if check():
            return True
        time.sleep(0.02)
    return False


class Service:
    """One recorder at a time on a socket, into one folder."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.address = f"unix:{folder}/s"
        self.recording = folder / "r"
        self._options = options

    def start(self) -> subprocess.Popen[str]:
        command = [*RECORD, self.address, "-o", f"{self.recording}/", *self._options]
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def written(self) -> int:
        return sum(path.stat().st_size for path in folder_segments(self.recording).values())

    def numbers(self) -> list[int]:
        trace = open_trace(self.recording)
        found: list[int] = []
        for at in range(len(trace.index().rows)):
            found += pc.drop_null(trace.read(at).column("request")).to_pylist()
        return found


class Counting:
    """A producer whose rows are numbered without a gap."""

    def __init__(self, address: str) -> None:
        self._out = Producer(address, source="counting", close_s=20.0)
        self.made = 0

    def send(self, rows: int) -> None:
        now = time.time_ns() + np.arange(rows)
        number = np.arange(self.made, self.made + rows)
        self._out.write_batch(
            build_batch(
                {
                    "kind": "execution",
                    "name": "k",
                    "enqueue_ns": now - 9,
                    "start_ns": now,
                    "end_ns": now + 5,
                    "request": number,
                }
            )
        )
        self.made += rows

    @property
    def sent(self) -> int:
        return self._out.sent

    @property
    def dropped(self) -> int:
        return self._out.dropped

    def close(self) -> None:
        self._out.close()


@pytest.fixture
def service(tmp_path: Path) -> Callable[..., Service]:
    return lambda *options: Service(tmp_path, *options)


def test_nothing_is_lost_over_two_sigterms_while_rows_keep_coming(service: Callable[..., Service]) -> None:
    made = service("--rotate", "64KiB")
    producer = Counting(made.address)
    for turn in range(3):
        recorder = made.start()
        before = producer.sent
        while producer.sent < before + 25_000:
            producer.send(500)
            time.sleep(0.05)
        if turn == 2:
            producer.close()
        recorder.send_signal(signal.SIGTERM)
        for _ in range(20):
            if turn < 2:
                producer.send(100)
                time.sleep(0.02)
        _, said = recorder.communicate(timeout=30)
        assert recorder.returncode == 0, said
        assert "not written 0" in said
    assert producer.dropped == 0
    assert sorted(made.numbers()) == list(range(producer.made))
    trace = open_trace(made.recording)
    assert list(trace.notes) == []
    assert len(folder_segments(made.recording)) > 3


def test_a_kill_costs_a_second_at_most_and_the_next_start_goes_on(service: Callable[..., Service]) -> None:
    made = service()
    producer = Counting(made.address)
    recorder = made.start()
    producer.send(1000)
    # Written within a second although the batch is far from full.
    assert eventually(lambda: bool(folder_segments(made.recording)) and made.written() > 8_000)
    recorder.kill()
    recorder.communicate(timeout=30)
    assert made.numbers() == list(range(1000))
    recorder = made.start()
    producer.send(1000)
    assert eventually(lambda: len(folder_segments(made.recording)) == 2)
    producer.close()
    recorder.send_signal(signal.SIGTERM)
    _, said = recorder.communicate(timeout=30)
    assert recorder.returncode == 0
    assert "000000.arrows: was not ended; kept up to its last whole batch, 0 bytes cut" in said
    assert made.numbers() == list(range(2000))


def test_two_recorders_do_not_share_a_folder(service: Callable[..., Service], tmp_path: Path) -> None:
    made = service()
    recorder = made.start()
    assert eventually((made.recording / ".fusetui.lock").exists)
    time.sleep(0.2)
    second = subprocess.run(
        [*RECORD, "host", "-o", str(made.recording)], capture_output=True, text=True, timeout=60, check=False
    )
    recorder.terminate()
    recorder.communicate(timeout=30)
    assert second.returncode == 3
    assert f"the recorder with process id {recorder.pid} records there" in second.stderr
    assert "Traceback" not in second.stderr


def test_keep_needs_a_folder(tmp_path: Path) -> None:
    done = subprocess.run(
        [*RECORD, "host", "-o", str(tmp_path / "a.arrows"), "--keep", "3"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "-o FOLDER/" in done.stderr) == (2, True)


def test_alerts_are_logged_beside_the_recording_and_run_their_hooks(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    rules = tmp_path / "alerts.toml"
    rules.write_text(
        '[[alert]]\nname = "waits"\nrule = "p99(queue_wait) < 1ns"\nover = "5s"\nfor = "0s"\n'
        f'command = ["sh", "-c", "cat > {told}"]\n'
    )
    command = [*RECORD, "load:rate=2000", "-o", f"{tmp_path}/r/", "--alerts", str(rules), "--for", "8s"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    assert "alert waits raised: p99(queue_wait)" in done.stderr
    logged = [json.loads(line) for line in (tmp_path / "r" / "alerts.jsonl").read_text().splitlines()]
    assert [(line["alert"], line["what"]) for line in logged] == [("waits", "raised")]
    assert json.loads(told.read_text())["says"] == logged[0]["says"]
    assert len(open_trace(tmp_path / "r").index().rows) > 0


def test_alerts_that_cannot_be_read_stop_the_start(tmp_path: Path) -> None:
    done = subprocess.run(
        [*RECORD, "host", "-o", f"{tmp_path}/r/", "--alerts", str(tmp_path / "none.toml")],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert "there is no such file" in done.stderr


@pytest.mark.parametrize(
    ("text", "amount"),
    [("256MB", Amount("bytes", 256 << 20)), ("10min", Amount("ns", 600 * 10**9)), ("1h", Amount("ns", 3600 * 10**9)),
     ("2M", Amount("bytes", 2 << 20)), ("2m", Amount("ns", 120 * 10**9))],
)  # fmt: skip
def test_rotation_is_a_size_or_a_time(text: str, amount: Amount) -> None:
    assert rotation(text) == amount


@pytest.mark.parametrize("text", ["10", "0s", "1KB", "10 parsecs", "", "-1h"])
def test_rotations_that_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        rotation(text)


def test_the_smallest_limit_of_a_kind_counts_and_the_rest_are_defaults() -> None:
    assert segment_limits([rotation("10min"), rotation("5min")]) == (256 << 20, 300.0)
    assert segment_limits([rotation("1MB")]) == (1 << 20, 3600.0)
    assert keep_limits([retention("2GB"), retention("24h"), retention("100"), retention("50")]) == Keep(
        50, 2 << 30, 86_400 * 10**9
    )
    assert keep_limits([]).everything
    with pytest.raises(argparse.ArgumentTypeError):
        retention("0")


def test_a_recorder_without_metrics_or_alerts_does_not_load_them() -> None:
    code = (
        "import sys; import fusetui.commands.record; "
        "print([m for m in sys.modules if m in ('psutil', 'http.server', 'fusetui.triage.alert', 'textual')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
