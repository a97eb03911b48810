"""Hooks and the log: a command without a shell, a webhook on loopback only, neither ever waited for."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from fusetui.triage import alert_webhook
from fusetui.triage.alert import AlertEvent, Hooks
from fusetui.triage.alert_hooks import MAX_WAITING, HookResult, HookRunner, run_command
from fusetui.triage.alert_log import AlertLog
from fusetui.triage.alert_webhook import post, refusal

NOBODY: frozenset[str] = frozenset()
EVENT = AlertEvent("slow", "raised", 3, 1, "epoch", "warn", "team", "p50(latency) < 5ms", "p50(latency) 9 ms, n 50")


class Server(HTTPServer):
    """Answers with `codes`, one after another, the last for ever; keeps what was posted."""

    codes: list[int]
    bodies: list[dict[str, Any]]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        self.server.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        code = self.server.codes.pop(0) if len(self.server.codes) > 1 else self.server.codes[0]
        self.send_response(code)
        self.send_header("Location", "http://192.0.2.1/")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(alert_webhook, "WAITS_S", (0.01, 0.01))
    found = Server(("127.0.0.1", 0), Handler)
    found.codes, found.bodies = [204], []
    thread = threading.Thread(target=found.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


def address(server: Server) -> str:
    return f"http://127.0.0.1:{server.server_port}/x"


def told(server: Server, codes: list[int]) -> str:
    server.codes = codes
    return post(address(server), json.dumps(EVENT.as_dict()), 2.0, NOBODY, threading.Event())


def test_a_webhook_gets_the_event(server: Server) -> None:
    assert told(server, [204]) == ""
    assert server.bodies == [EVENT.as_dict()]


def test_what_may_pass_is_tried_again_what_is_refused_is_not(server: Server) -> None:
    assert told(server, [503, 200]) == ""
    assert told(server, [500]) == "answered 500; tried 3 times"
    assert told(server, [404]) == "answered 404"
    assert len(server.bodies) == 2 + 3 + 1


def test_a_redirect_is_not_followed(server: Server) -> None:
    assert told(server, [302]) == "answered 302"
    assert len(server.bodies) == 1


def test_no_proxy_is_asked(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://192.0.2.1:1")
    assert told(server, [200]) == ""


def test_nobody_there_is_said_after_the_tries(server: Server) -> None:
    assert "tried 3 times" in post("http://127.0.0.1:9/", "{}", 0.5, NOBODY, threading.Event())


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("http://127.0.0.1:1/a", ""),
        ("http://127.9.9.9/a", ""),
        ("https://[::1]:2/a", ""),
        ("http://localhost/a", ""),
        ("https://hooks.example.com/a", ""),
        ("https://evil.example.com/a", "evil.example.com is not loopback"),
        ("http://127.0.0.1.example.com/", "not loopback"),
        ("http://0.0.0.0/", "not loopback"),
        ("http://10.0.0.1/", "not loopback"),
        ("http://me:secret@localhost/", "name and password"),
        ("file:///etc/passwd", "not an http"),
        ("ftp://localhost/", "not an http"),
        ("http://[::1/", "not an address"),
        ("http://localhost:99999/", "not an address"),
        ("", "not an http"),
    ],
)
def test_only_loopback_and_named_hosts_are_asked(where: str, why: str) -> None:
    refused = refusal(where, frozenset({"hooks.example.com"}))
    assert why in refused
    assert bool(refused) == bool(why)


def test_a_command_gets_json_and_no_shell(tmp_path: Path) -> None:
    out = tmp_path / "out"
    code = "import sys; open(sys.argv[1], 'w').write(sys.argv[2] + sys.stdin.read())"
    assert run_command((sys.executable, "-c", code, str(out), "$HOME;`id`"), '{"a": 1}', 10.0) == ""
    assert out.read_text() == '$HOME;`id`{"a": 1}\n'


def test_a_command_that_fails_says_so(tmp_path: Path) -> None:
    assert run_command((str(tmp_path / "none"),), "{}", 5.0).endswith("No such file or directory")
    assert run_command((sys.executable, "-c", "raise SystemExit(3)"), "{}", 10.0).endswith("ended with 3")
    assert run_command(("a\0b",), "{}", 5.0).startswith("a")


def test_a_command_that_reads_nothing_is_fine() -> None:
    assert run_command((sys.executable, "-c", "pass"), "x" * 1_000_000, 10.0) == ""


def test_a_command_that_hangs_is_ended_with_all_it_began(tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    child = f"import time, pathlib; time.sleep(3); pathlib.Path({str(alive)!r}).write_text('x')"
    code = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}]); time.sleep(60)"
    began = time.monotonic()
    assert "took longer than 1 s" in run_command((sys.executable, "-c", code), "{}", 1.0)
    assert time.monotonic() - began < 20
    time.sleep(3.5)
    assert not alive.exists()


def test_nobody_waits_for_a_hook_and_what_is_too_much_is_counted() -> None:
    runner = HookRunner(timeout_s=20.0)
    slow = replace(EVENT, hooks=Hooks((sys.executable, "-c", "import time; time.sleep(20)")))
    began = time.monotonic()
    for _ in range(MAX_WAITING + 50):
        runner.submit(slow)
    assert time.monotonic() - began < 1.0
    assert 49 <= runner.dropped <= 50
    began = time.monotonic()
    runner.close(0.2)
    assert time.monotonic() - began < 5.0


def test_what_waits_is_told_before_the_end(tmp_path: Path, server: Server) -> None:
    results: list[HookResult] = []
    runner = HookRunner(told=results.append)
    runner.submit(replace(EVENT, hooks=Hooks((sys.executable, "-c", "raise SystemExit(1)"), address(server))))
    runner.submit(EVENT)  # has no hooks
    runner.close(20.0)
    assert [(one.hook, one.ok) for one in results] == [("command", False), ("webhook", True)]
    assert len(server.bodies) == 1


def test_the_log_only_grows(tmp_path: Path) -> None:
    log = AlertLog(tmp_path / "alerts" / "a.jsonl")
    log.append(EVENT)
    log.hook(HookResult("slow", "raised", 3, "webhook", ok=True))
    log.hook(HookResult("slow", "raised", 3, "webhook", ok=False, detail="answered 500"))
    AlertLog(log.path).append(replace(EVENT, what="cleared", at_ns=9))
    lines = [json.loads(line) for line in log.path.read_text().splitlines()]
    assert [(line["what"], line["at_ns"]) for line in lines] == [("raised", 3), ("webhook failed", 3), ("cleared", 9)]
    assert log.failed == ""
    assert log.path.stat().st_mode & 0o777 == 0o600


def test_a_log_that_cannot_be_written_says_so_and_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    log = AlertLog(tmp_path / "file" / "a.jsonl")
    log.append(EVENT)
    assert "cannot be written" in log.failed
