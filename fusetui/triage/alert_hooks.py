"""Hooks: a command or a webhook told of each event, in a thread of its own that nobody waits for.

A command is an argv list (never a shell) with the event as JSON on its standard input; a webhook is an HTTP POST of the
same JSON, to loopback or to a host that the alerts' file names in `allow_hosts`.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fusetui.telemetry.text import safe_text
from fusetui.triage.alert import AlertEvent
from fusetui.triage.alert_webhook import post

MAX_WAITING: Final = 100
KEPT_RESULTS: Final = 100
_END: Final = None


@dataclass(frozen=True, slots=True)
class HookResult:
    """How a hook went. hook: "command" or "webhook"; detail: why it failed, "" where it did not."""

    alert: str
    what: str
    at_ns: int
    hook: str
    ok: bool
    detail: str = ""


class HookRunner:
    """Runs the hooks of events one after another; `submit` never waits.

    timeout_s    of each command and each attempt of a webhook
    allow_hosts  hosts beyond loopback that webhooks may ask
    told         called with each result, on the runner's thread
    results      the newest; dropped: events nobody was told of because MAX_WAITING of them waited
    """

    def __init__(
        self,
        *,
        timeout_s: float = 10.0,
        allow_hosts: frozenset[str] = frozenset(),
        told: Callable[[HookResult], None] | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        self._allow_hosts = allow_hosts
        self._told = told
        self._waiting: queue.Queue[AlertEvent | None] = queue.Queue(MAX_WAITING)
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self.results: deque[HookResult] = deque(maxlen=KEPT_RESULTS)
        self.dropped = 0

    def submit(self, event: AlertEvent) -> None:
        """Have the hooks of an event run."""
        if not event.hooks.command and not event.hooks.webhook:
            return
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            self.dropped += 1
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="fusetui-hooks", daemon=True)
            self._thread.start()

    def close(self, timeout_s: float = 5.0) -> None:
        """Let what waits be run for at most timeout_s, then end; the rest is given up."""
        if self._thread is None:
            return
        until_s = time.monotonic() + timeout_s
        try:
            self._waiting.put(_END, timeout=timeout_s)
        except queue.Full:
            self._stop.set()
            return
        self._thread.join(max(0.0, until_s - time.monotonic()))
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            event = self._waiting.get()
            if event is _END:
                return
            text = json.dumps(event.as_dict(), allow_nan=False)
            if event.hooks.command:
                self._keep(event, "command", run_command(event.hooks.command, text, self._timeout_s))
            if event.hooks.webhook:
                refused = post(event.hooks.webhook, text, self._timeout_s, self._allow_hosts, self._stop)
                self._keep(event, "webhook", refused)

    def _keep(self, event: AlertEvent, hook: str, failed: str) -> None:
        result = HookResult(event.alert, event.what, event.at_ns, hook, not failed, safe_text(failed, 300))
        self.results.append(result)
        if self._told is not None:
            self._told(result)


def run_command(argv: tuple[str, ...], text: str, timeout_s: float) -> str:
    """Run argv with `text` on its standard input; why it failed, "" when it ended with 0 in time."""
    try:
        # A session of its own: a Ctrl-C for fusetui is not one for the hook, nor can it ask the terminal.
        process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
    except (OSError, ValueError) as error:
        return f"{argv[0]}: {error.strerror if isinstance(error, OSError) else error}"
    with process:
        try:
            process.communicate(f"{text}\n".encode(), timeout=timeout_s)
        except subprocess.TimeoutExpired:
            # What it began may still hold on: all of its session ends.
            os.killpg(process.pid, signal.SIGKILL)
            return f"{argv[0]}: took longer than {timeout_s:g} s and was ended"
    return "" if process.returncode == 0 else f"{argv[0]}: ended with {process.returncode}"
