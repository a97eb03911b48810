"""alerts.toml: what is read, and every mistake in one line that names the alert and the key."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from fusetui.telemetry.errors import TelemetryError
from fusetui.triage.alert import Hooks
from fusetui.triage.alert_file import alerts_of, load_alerts

FULL = """
allow_hosts = ["hooks.example.com"]
timeout = "3s"

[[alert]]
name = "prefill waits"
rule = 'p99(queue_wait) < 5ms and imbalance < 0.3 where stream ~ "prefill"'
over = "30s"
for = "10s"
clear = "500ms"
severity = "breach"
min_n = 100
class = "queueing"
stream = "prefill"
owner = "sched-team"
command = ["notify-send", "a b"]
webhook = "https://hooks.example.com/x"

[[alert]]
name = "plain"
rule = "hit > 90%"
"""


def test_everything_is_read() -> None:
    found = alerts_of(tomllib.loads(FULL), "here")
    alert, plain = found.alerts
    assert found.allow_hosts == {"hooks.example.com"}
    assert found.timeout_s == 3.0
    assert (alert.over_ns, alert.for_ns, alert.clear_ns) == (30 * 10**9, 10 * 10**9, 500_000_000)
    assert (alert.name, alert.severity, alert.min_n, alert.of_class) == ("prefill waits", "breach", 100, "queueing")
    assert (alert.subject_kind, alert.subject, alert.owner) == ("stream", "prefill", "sched-team")
    assert alert.hooks == Hooks(("notify-send", "a b"), "https://hooks.example.com/x")
    assert len(list(alert.rule.comparisons())) == 2
    assert (plain.over_ns, plain.for_ns, plain.clear_ns) == (60 * 10**9, 10 * 10**9, 30 * 10**9)
    assert plain.hooks == Hooks()


BASE = 'name = "a"\nrule = "hit > 90%"\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1", "unknown key 'x'"),
        ("alert = 3", "alert is not a list of tables"),
        ('allow_hosts = "a"', "allow_hosts is not a list of texts"),
        ('timeout = "0s"', "timeout is 0"),
        ("timeout = 3", "timeout is not a text"),
        ('[[alert]]\nname = "a"', "alert 1: rule is missing"),
        ('[[alert]]\nrule = "hit > 90%"', "alert 1: name is missing"),
        (f"[[alert]]\n{BASE}foo = 1", "unknown key 'foo'"),
        (f'[[alert]]\n{BASE}for = "x"', "for: 'x' is not a duration"),
        (f'[[alert]]\n{BASE}over = "0s"', "over is 0"),
        (f'[[alert]]\n{BASE}over = "30h"', "not between 0 and a day"),
        (f'[[alert]]\n{BASE}severity = "loud"', "severity 'loud'"),
        (f"[[alert]]\n{BASE}min_n = -1", "min_n is not a count"),
        (f"[[alert]]\n{BASE}min_n = true", "min_n is not a count"),
        (f'[[alert]]\n{BASE}class = "nope"', "no class 'nope'"),
        (f'[[alert]]\n{BASE}stream = "a"\ncore = "b"', "an alert is about one of them"),
        (f'[[alert]]\n{BASE}command = "rm -rf x"', "command is not a list of texts"),
        (f'[[alert]]\n{BASE}command = [""]', "names no program"),
        (f'[[alert]]\n{BASE}webhook = "http://10.0.0.1/"', "name it in allow_hosts"),
        (f"[[alert]]\n{BASE}[[alert]]\n{BASE}", "two alerts are called 'a'"),
        ('[[alert]]\nname = "a"\nrule = "hit >"', "rule: expected a number"),
        ('[[alert]]\nname = "a"\nrule = "change(p99(latency)) < 10%"', "needs a baseline"),
        ("[[alert]]\nname = 3\nrule = 'x'", "name is not a text"),
        ("x = [", "not TOML"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "alerts.toml"
    path.write_text(text)
    with pytest.raises(TelemetryError) as told:
        load_alerts(path)
    assert says in str(told.value)
    assert "\n" not in str(told.value)


def test_no_file_in_the_config_folder_is_no_alerts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert load_alerts().alerts == ()
    with pytest.raises(TelemetryError, match="there is no such file"):
        load_alerts(tmp_path / "none.toml")
    (tmp_path / "fusetui").mkdir()
    (tmp_path / "fusetui" / "alerts.toml").write_text(FULL)
    assert [alert.name for alert in load_alerts().alerts] == ["prefill waits", "plain"]
