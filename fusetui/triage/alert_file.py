"""Alerts from `alerts.toml`.

    allow_hosts = ["hooks.example.com"]   # webhooks beyond loopback; none by default
    timeout = "10s"                       # of a command, and of each attempt of a webhook

    [[alert]]
    name = "prefill waits"
    rule = 'p99(queue_wait) < 5ms and imbalance < 0.3 where stream ~ "prefill"'
    over = "60s"          # how far back it looks
    for = "10s"           # breached so long before it is raised
    clear = "30s"         # held so long before it is cleared
    severity = "warn"     # or "breach"
    min_n = 100           # fewer items are no data
    class = "queueing"    # what owners.toml knows it by, with stream, core, shape, counter or group
    stream = "prefill"
    owner = "sched-team"  # in place of who owners.toml names
    command = ["notify-send", "fusetui"]
    webhook = "http://127.0.0.1:9000/alerts"

Only `name` and `rule` are needed. A rule says what should hold.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fusetui.analysis.expression.lexer import ExpressionError
from fusetui.analysis.expression.rule import Rule, parse_rule
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.text import safe_text
from fusetui.telemetry.times import parse_duration_ns
from fusetui.triage.alert import Alert, Hooks
from fusetui.triage.alert_webhook import refusal
from fusetui.triage.owners import CLASSES, SUBJECTS
from fusetui.triage.tomlfile import read_toml

MAX_ALERTS: Final = 100
MAX_CHARS: Final = 200
MAX_TIME_NS: Final = 86_400_000_000_000
_TOP: Final = ("alert", "allow_hosts", "timeout")
_TEXTS: Final = ("class", *SUBJECTS, "owner")
_TIMES: Final = ("over", "for", "clear")
_KEYS: Final = ("name", "rule", *_TIMES, "severity", "min_n", *_TEXTS, "command", "webhook")


@dataclass(frozen=True, slots=True)
class AlertFile:
    """What a file says. where: its path; allow_hosts, timeout_s: see `HookRunner`."""

    where: str = ""
    alerts: tuple[Alert, ...] = ()
    allow_hosts: frozenset[str] = frozenset()
    timeout_s: float = 10.0


def default_path() -> Path:
    """`alerts.toml` in the user's config folder."""
    config = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(config) / "fusetui" / "alerts.toml"


def load_alerts(path: str | Path | None = None) -> AlertFile:
    """The alerts of a file; None: of the config folder, none where it has no such file. Raises TelemetryError."""
    where = default_path() if path is None else Path(path)
    document = read_toml(where)
    if document is not None:
        return alerts_of(document, str(where))
    if path is None:
        return AlertFile()
    raise TelemetryError(str(where), "there is no such file", "name an alerts.toml")


def alerts_of(document: dict[str, Any], where: str) -> AlertFile:
    """The alerts of a document that was read. Raises TelemetryError naming the alert and the key."""
    for key in document:
        if key not in _TOP:
            raise TelemetryError(where, f"unknown key {key!r}", f"there are: {', '.join(_TOP)}; alerts are [[alert]]")
    tables = document.get("alert", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise TelemetryError(where, "alert is not a list of tables", "write [[alert]]")
    if len(tables) > MAX_ALERTS:
        raise TelemetryError(where, f"has {len(tables)} alerts", f"at most {MAX_ALERTS} are watched")
    hosts = frozenset(host.lower() for host in _texts(document.get("allow_hosts", []), "allow_hosts", where))
    timeout_ns = _time(document.get("timeout", "10s"), "timeout", where)
    if not timeout_ns:
        raise TelemetryError(where, "timeout is 0", "give a hook some time, like 10s")
    alerts = tuple(_alert(table, hosts, f"{where}: alert {number}") for number, table in enumerate(tables, 1))
    names = [alert.name for alert in alerts]
    for name in names:
        if names.count(name) > 1:
            raise TelemetryError(where, f"two alerts are called {name!r}", "names are what logs and hooks tell them by")
    return AlertFile(where, alerts, hosts, timeout_ns / 1e9)


def _alert(fields: dict[str, Any], hosts: frozenset[str], where: str) -> Alert:
    for key in fields:
        if key not in _KEYS:
            raise TelemetryError(where, f"unknown key {key!r}", f"there are: {', '.join(_KEYS)}")
    for key in ("name", "rule"):
        if key not in fields:
            raise TelemetryError(where, f"{key} is missing")
    texts = {key: _text(fields[key], key, where) for key in (*_TEXTS, "severity", "webhook") if key in fields}
    name = _text(fields["name"], "name", where)
    where = f"{where} ({name})"
    times = {f"{key}_ns": _time(fields[key], key, where) for key in _TIMES if key in fields}
    if times.get("over_ns") == 0:
        raise TelemetryError(where, "over is 0", "say how far back it looks, like 60s")
    of_class, severity, min_n = texts.get("class", ""), texts.get("severity", "warn"), fields.get("min_n", 0)
    if of_class and of_class not in CLASSES:
        raise TelemetryError(where, f"no class {of_class!r}", f"there are: {', '.join(CLASSES)}")
    if severity not in ("warn", "breach"):
        raise TelemetryError(where, f"severity {severity!r} is neither warn nor breach")
    if not isinstance(min_n, int) or isinstance(min_n, bool) or min_n < 0:
        raise TelemetryError(where, "min_n is not a count")
    subjects = [kind for kind in SUBJECTS if kind in texts]
    if len(subjects) > 1:
        raise TelemetryError(where, f"{' and '.join(subjects)}: an alert is about one of them")
    refused = refusal(texts["webhook"], hosts) if "webhook" in texts else ""
    if refused:
        raise TelemetryError(where, f"webhook: {refused}")
    return Alert(
        name=name,
        rule=_rule(fields["rule"], where),
        **times,
        severity="breach" if severity == "breach" else "warn",
        min_n=min_n,
        of_class=of_class,
        subject=texts[subjects[0]] if subjects else "",
        subject_kind=subjects[0] if subjects else "",
        owner=texts.get("owner", ""),
        hooks=Hooks(_argv(fields.get("command", []), where), texts.get("webhook", "")),
    )


def _rule(text: Any, where: str) -> Rule:
    if not isinstance(text, str) or not text.strip():
        raise TelemetryError(where, "rule is not a text")
    try:
        rule = parse_rule(text)
    except ExpressionError as error:
        raise TelemetryError(where, f"rule: {error.what} at {safe_text(text[error.at :], 40) or 'its end'!r}") from None
    if rule.needs_baseline:
        raise TelemetryError(where, "rule: a change needs a baseline", "`fusetui compare BEFORE AFTER` judges changes")
    return rule


def _argv(value: Any, where: str) -> tuple[str, ...]:
    # Arguments go to the program as they are: only what no argument can hold is refused.
    words = _list(value, "command", where, lambda word: len(word) <= 4096 and "\0" not in word)
    if value and not words[0].strip():
        raise TelemetryError(where, "command names no program")
    return words


def _texts(value: Any, key: str, where: str) -> tuple[str, ...]:
    return _list(value, key, where, lambda text: 0 < len(text) <= MAX_CHARS)


def _list(value: Any, key: str, where: str, fits: Callable[[str], bool]) -> tuple[str, ...]:
    fine = isinstance(value, list) and all(isinstance(item, str) and fits(item) for item in value)
    if not fine or len(value) > MAX_ALERTS:
        raise TelemetryError(where, f"{key} is not a list of texts", f'write {key} = ["one", "two"]')
    return tuple(value)


def _text(value: Any, key: str, where: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_CHARS:
        raise TelemetryError(where, f"{key} is not a text of at most {MAX_CHARS} characters")
    return safe_text(value.strip(), MAX_CHARS)


def _time(value: Any, key: str, where: str) -> int:
    if not isinstance(value, str):
        raise TelemetryError(where, f"{key} is not a text", f'write {key} = "10s"')
    try:
        found = parse_duration_ns(value)
    except ValueError as error:
        raise TelemetryError(where, f"{key}: {error}") from None
    if not 0 <= found <= MAX_TIME_NS:
        raise TelemetryError(where, f"{key} is not between 0 and a day")
    return found
