"""Alerts while recording: judged every two seconds over the newest rows, logged beside the recording."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pyarrow as pa

from fusetui.telemetry.source import Source
from fusetui.telemetry.text import safe_text
from fusetui.triage.alert import Alerts
from fusetui.triage.alert_file import AlertFile
from fusetui.triage.alert_hooks import HookRunner
from fusetui.triage.alert_log import AlertLog
from fusetui.triage.alert_rows import RecentBatches
from fusetui.triage.owners import load_owners

LOOK_S: Final = 2.0


class Watch:
    """Judges the alerts of a file every LOOK_S, logs what changes and has its hooks run."""

    every_s = LOOK_S

    def __init__(self, file: AlertFile, source: Source, log: Path) -> None:
        self._source = source
        self._alerts = Alerts(file.alerts, load_owners())
        self._recent = RecentBatches(self._alerts.needs_ns)
        self._log = AlertLog(log)
        self._hooks = HookRunner(timeout_s=file.timeout_s, allow_hosts=file.allow_hosts, told=self._log.hook)
        self._now_ns: int | None = None
        self._said = ""

    def add(self, batch: pa.RecordBatch) -> None:
        self._recent.add(batch)

    def look(self) -> list[str]:
        now_ns = self._source.now_ns()
        if now_ns is None:
            return []
        self._now_ns = max(now_ns, self._now_ns or now_ns)
        lines = []
        for event in self._alerts.look(self._recent.batches, self._source.header, self._now_ns):
            self._log.append(event)
            self._hooks.submit(event)
            lines.append(safe_text(f"alert {event.alert} {event.what}: {event.says}", 500))
        if self._log.failed != self._said:
            self._said = self._log.failed
            lines.append(self._said)
        return [line for line in lines if line]

    def close(self) -> None:
        self._hooks.close()
