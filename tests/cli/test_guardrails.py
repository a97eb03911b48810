"""`fusetui check` and `fusetui compare`: exit codes, forms, guard files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fusetui.cli import main

_CORPUS = os.environ.get("FUSETUI_CORPUS")
SERVING = "sample:torch-serving"


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        (["count > 10"], 0),
        (["p95(latency) < 100s", "hit > 0"], 0),
        (["p50(latency) < 1ns"], 1),
        (["p50(latency) < 1ns", "p99.9(latency) < 1s"], 1),
        (["p99.9(latency) < 1000s"], 4),
        (["count > 10", "p99(queue_wait) < 1s where stream = nowhere"], 4),
        (["p99 < 5ms"], 2),
        (["change(p50(latency)) < 5%"], 2),
        ([], 2),
    ],
)
def test_check_answers_by_its_exit_code(rules: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [part for rule in rules for part in ("--rule", rule)]
    assert main(["check", SERVING, *arguments]) == code
    if code == 2:
        assert capsys.readouterr().out == ""


def test_unreadable_is_three(tmp_path: Path) -> None:
    broken = tmp_path / "broken.arrows"
    broken.write_bytes(b"ARROW nothing")
    assert main(["check", str(broken), "--rule", "count > 0"]) == 3
    assert main(["check", str(tmp_path / "none"), "--rule", "count > 0"]) == 3
    assert main(["compare", SERVING, str(broken)]) == 3


def test_a_lost_source_is_five(monkeypatch: pytest.MonkeyPatch) -> None:
    from fusetui.commands import check
    from fusetui.telemetry.header import Header
    from fusetui.telemetry.source import SourceHealth

    class Lost:
        header = Header()

        def poll(self, timeout_s: float) -> list[object]:
            return []

        def health(self) -> SourceHealth:
            return SourceHealth(name="x", state="lost", last_error="the producer went away")

        def close(self) -> None:
            pass

    monkeypatch.setattr(check, "open_live", lambda spec, args: Lost())
    assert main(["check", "sim", "--rule", "count >= 0", "--window", "100ms"]) == 5


def test_a_live_source_is_judged_after_its_window(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "sim:seed=1", "--rule", "count(executions) > 0", "--window", "400ms"]) == 0
    assert "HOLDS" in capsys.readouterr().out


def test_check_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", SERVING, "--rule", "p50(latency) < 1ns where stream ~ '*'", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["exit"] == 1
    (rule,) = found["rules"]
    (part,) = rule["comparisons"]
    assert (part["measure"], part["op"], part["limit"], part["verdict"]) == ("p50(latency)", "<", 1.0, "breached")
    assert part["low"] <= part["value"] <= part["high"]
    assert part["where"] == ["stream ~ '*'"]


def test_junit_and_github(capsys: pytest.CaptureFixture[str]) -> None:
    rules = ["--rule", "p50(latency) < 1ns", "--rule", "count > 0", "--rule", "p99.9(latency) < 1000s"]
    assert main(["check", SERVING, *rules, "--junit"]) == 1
    suite = ElementTree.fromstring(capsys.readouterr().out.split("\n", 1)[1])
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert [case.get("name") for case in suite][1] == "count > 0"
    assert main(["check", SERVING, "--rule", "share(fallback) < 0%", "--rule", "count > 0", "--github"]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("::error title=fusetui%3A breached in sample%3Atorch-serving::share(fallback) < 0%25%0A")
    assert second.startswith("::notice title=")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("rules = 3", "rules is a list"),
        ("min_n = -1", "min_n is a whole number"),
        ("min_n = true", "min_n is a whole number"),
        ("limits = []", "no setting 'limits'"),
        ("rules = [", "not TOML"),
        ("rules = ['p99 < 1']", "p99 needs what it is of"),
    ],
)
def test_a_broken_guard_is_usage(tmp_path: Path, text: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    guard = tmp_path / "guard.toml"
    guard.write_text(text)
    assert main(["check", SERVING, "--guard", str(guard)]) == 2
    assert told in capsys.readouterr().err
    assert main(["check", SERVING, "--guard", str(tmp_path / "none.toml")]) == 2


def test_min_n_of_a_guard_and_of_the_command_line(tmp_path: Path) -> None:
    guard = tmp_path / "guard.toml"
    guard.write_text("min_n = 100000\nrules = ['p50(latency) < 100s']\n")
    assert main(["check", SERVING, "--guard", str(guard)]) == 4
    assert main(["check", SERVING, "--guard", str(guard), "--min-n", "10"]) == 0


def test_the_same_capture_is_no_change(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", SERVING, SERVING]) == 0
    assert "NO CHANGE SEEN" in capsys.readouterr().out
    assert main(["compare", SERVING, SERVING, "--json"]) == 0
    (made,) = json.loads(capsys.readouterr().out)["compared"]
    assert made["verdict"] == "no change seen"
    assert all(move["ratio"] == 1.0 for move in made["moves"] if move["ratio"])


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--max-p50-regress", "1000%"], 0),
        (["--max-p99-regress", "0.01%"], 4),
        (["--max-p50-regress", "1000%", "--min-n", "1000000"], 4),
        (["--rule", "change(count) = 0"], 0),
        (["--rule", "change(count) > 0"], 1),
        (["--rule", "p50(latency) < 1ns"], 1),
        (["--junit"], 2),
        (["--filter", "core ="], 2),
    ],
)
def test_compare_answers_by_its_exit_code(options: list[str], code: int) -> None:
    assert main(["compare", SERVING, SERVING, *options]) == code


@pytest.mark.parametrize(("after", "code", "told"), [("0.80", 4, "BLOCKED"), ("0.60", 1, "NO GO")])
def test_with_quality_the_rollout_is_the_answer(
    tmp_path: Path, after: str, code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "q.csv"
    table.write_text(f"name,before,after\naccuracy,0.80,{after}\n")
    assert main(["compare", SERVING, SERVING, "--quality", str(table)]) == code
    assert f"rollout: {told}: " in capsys.readouterr().out
    assert main(["compare", SERVING, SERVING]) == 0
    assert "rollout: BLOCKED: missing " in capsys.readouterr().out
    assert main(["compare", SERVING, SERVING, "--quality", str(tmp_path / "none.csv")]) == 3


def test_owners_stand_at_what_does_not_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    owners = tmp_path / "owners.toml"
    owners.write_text(
        '[[owner]]\nname = "sched"\nclass = "queueing"\n[[owner]]\nname = "pre"\nclass = "queueing"\nstream = "pre*"\n'
    )
    rules = ["--rule", "p50(queue_wait) < 1ns", "--rule", "p50(service) < 1ns", "--rule", "count > 0",
             "--rule", "p50(queue_wait) < 1ns where stream ~ 'pre'"]  # fmt: skip
    assert main(["check", SERVING, *rules, "--owners", str(owners)]) == 1
    lines = capsys.readouterr().out.splitlines()
    told = [line.strip() for line in lines if line.strip().startswith("owner: ")]
    added = 'owner: unowned; add to owners.toml: [[owner]] with name = "TEAM" and class = "compute"'
    assert told[:3] == ["owner: sched", added, "owner: pre"]
    assert main(["check", SERVING, *rules, "--owners", str(owners), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["rules"][0]["owner"] == "sched"
    assert main(["compare", SERVING, SERVING, *rules, "--owners", str(owners)]) == 1
    assert "owner: pre" in capsys.readouterr().out
    assert main(["check", SERVING, *rules, "--owners", str(tmp_path / "none.toml")]) == 3


def test_what_was_judged_is_said_in_120_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", SERVING, SERVING, "--filter", "request < 30"]) == 0
    out = capsys.readouterr().out
    assert "p50 NO CHANGE SEEN; p95, p99 not judged: needs n ≥ 60, 300, have 30 and 30" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 120


def test_compare_takes_captures() -> None:
    assert main(["compare", "sim", SERVING]) == 2
    with pytest.raises(SystemExit) as stopped:
        main(["compare", SERVING, SERVING, "--max-p99-regress", "ten"])
    assert stopped.value.code == 2


def test_compare_as_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", SERVING, SERVING, "--markdown", "--rule", "count > 0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "### Guardrails" in lines
    tables = [line for line in lines if line.startswith("|")]
    assert len(tables) > 10
    assert "| count \\> 0 | holds | count 740, n 740 |  |" in tables


@pytest.mark.skipif(not _CORPUS, reason="FUSETUI_CORPUS is not set")
def test_fusion_of_real_captures(capsys: pytest.CaptureFixture[str]) -> None:
    """onnxruntime without and with its optimiser: 8 kernels a run become 6, and faster at the same size."""
    folder = Path(_CORPUS or "") / "traces/local/ort"
    assert (
        main(["compare", str(folder / "ort_conv_off_mixed.json"), str(folder / "ort_conv_all_mixed.json"), "--json"])
        == 0
    )
    (made,) = json.loads(capsys.readouterr().out)["compared"]
    totals = {row["measure"]: (row["before"]["value"], row["after"]["value"]) for row in made["totals"]}
    assert totals["count(executions)"] == (24 * 8, 24 * 6)
    assert sum(row["launches"]["after"] for row in made["kernels"]) == 6
    assert made["alike"][0]["high"] < 1.0


@pytest.mark.skipif(not _CORPUS, reason="FUSETUI_CORPUS is not set")
def test_recompiles_of_real_captures(capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(_CORPUS or "") / "traces/local/torch"
    static, dynamic = (str(folder / f"torch_changing_shapes_{how}.json.gz") for how in ("static", "dynamic"))
    assert main(["compare", static, dynamic, "--rule", "change(count(recompiles)) <= -50%"]) == 0
    assert "count(recompiles)" in capsys.readouterr().out
    assert main(["compare", dynamic, static, "--rule", "change(count(recompiles)) <= 0%"]) == 1
