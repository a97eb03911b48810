"""`fusetui report` and `fusetui bundle`: figures that reproduce, exit codes, names taken out, bytes that repeat."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pyarrow as pa
import pytest

from fusetui.cli import main
from fusetui.telemetry.header import Header
from fusetui.telemetry.open import open_trace
from fusetui.telemetry.schema import build_batch
from fusetui.telemetry.writer import StreamWriter

MS = 1_000_000
EPOCH_NS = 1_772_334_641_250_000_000
CORPUS = os.environ.get("FUSETUI_CORPUS")
Run = Callable[..., tuple[int, str]]


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*words: str) -> tuple[int, str]:
        code = main(list(words))
        return code, capsys.readouterr().out

    return command


def _write(path: Path, n: int = 600, slow_from: int = 300, slow_ns: int = 40 * MS, host: str = "gpu-box-9") -> Path:
    """Requests of about 2 ms, later of 40 ms, on a host whose name and paths are told in many places."""
    latency = np.random.default_rng(3).integers(1_900_000, 2_000_000, n)
    latency[slow_from:] += slow_ns
    came = EPOCH_NS + np.arange(n) * 10 * MS
    end = np.repeat(came + latency, 2)
    batch = build_batch(
        {
            "kind": pa.array(["execution", "request"] * n),
            "name": f"load /home/alice/models/x.bin on {host}",
            "enqueue_ns": np.repeat(came, 2),
            "start_ns": end - MS,
            "end_ns": end,
            "request": np.repeat(np.arange(n), 2),
            "stream": f"{host}:decode",
            "host": host,
            "device": np.zeros(2 * n, np.int32),
            "core": np.zeros(2 * n, np.int32),
        }
    )
    header = Header(
        source="test", host=f"{host}.example.com", slo_ns=10 * MS, build={"user": "alice", "cwd": "/home/alice/run"}
    )
    with path.open("wb") as sink, StreamWriter(sink, header) as writer:
        writer.write(batch)
    return path


def _at(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


def _reproduced(report: dict[str, Any], run: Run) -> set[str]:
    """Run the command of every figure, compare, and return the commands."""
    printed: dict[str, Any] = {}
    for figure in report["figures"]:
        command = figure["command"]
        if command not in printed:
            program, *words = shlex.split(command)
            assert program == "fusetui"
            printed[command] = json.loads(run(*words)[1])
        assert _at(printed[command], figure["at"]) == figure["value"], (command, figure["at"])
    return {shlex.split(command)[1] for command in printed}


def test_every_figure_of_a_sample_is_what_its_command_prints(run: Run) -> None:
    code, out = run("report", "sample:torch-serving", "--json")
    assert code == 0
    report = json.loads(out)
    assert report["verdict"]["state"] == "breach"
    assert report["trace"]["rows"] == 12_737
    assert _reproduced(report, run) == {"snapshot", "retune", "report"}


def test_every_figure_against_a_baseline_is_what_its_command_prints(tmp_path: Path, run: Run) -> None:
    before = _write(tmp_path / "old one.arrows", slow_from=600)
    after = _write(tmp_path / "new.arrows")
    code, out = run("report", str(after), "--baseline", str(before), "--json")
    report = json.loads(out)
    assert code == 0
    assert report["comparison"]["verdict"] == "slower"
    assert "compare" in _reproduced(report, run)
    (p99,) = [m for m in report["comparison"]["moves"] if (m["of"], m["quantile"]) == ("latency", "p99")]
    assert p99["low"] <= p99["after"] / p99["before"] <= p99["high"]
    text = run("report", str(after), "--baseline", str(before))[1]
    assert "## Before and after" in text
    assert "95 % interval" in text


def test_quality_is_told_judged_and_reproduced(tmp_path: Path, run: Run) -> None:
    before, after = _write(tmp_path / "old.arrows", slow_from=600), _write(tmp_path / "new.arrows", slow_from=600)
    table = tmp_path / "my eval.csv"
    table.write_text("name,before,after\naccuracy <b>top</b>,0.80,0.79\nerror rate,0.1%,0.1%\n")
    words = ("--baseline", str(before), "--quality", str(table))
    report = json.loads(run("report", str(after), *words, "--max-quality-drop", "2%", "--json")[1])
    assert report["rollout"]["verdict"] == "go"
    named = {figure["name"]: figure["value"] for figure in report["figures"] if figure["name"].startswith("quality")}
    assert named["quality accuracy <b>top</b>, after"] == 0.79
    assert named["quality error rate, before"] == 0.001
    assert "compare" in _reproduced(report, run)
    strict = json.loads(run("report", str(after), *words, "--json")[1])
    assert (strict["rollout"]["verdict"], strict["rollout"]["go"]) == ("no go", False)
    page = run("report", str(after), *words, "--html")[1]
    assert "accuracy &lt;b&gt;top&lt;/b&gt;" in page
    assert "<b>" not in page
    hidden = run("report", str(after), *words, "--redact")[1]
    assert "my eval" not in hidden
    assert "--quality quality-1.csv" in hidden
    none = json.loads(run("report", str(after), "--baseline", str(before), "--json")[1])
    assert none["rollout"]["verdict"] == "blocked"
    assert none["rollout"]["missing"][0].startswith("quality: ")


@pytest.mark.parametrize("option", ["--quick", "--no-causes", "--no-retune"])
def test_what_takes_a_model_can_be_left_out(option: str, run: Run) -> None:
    report = json.loads(run("report", "sample:torch-serving", option, "--json")[1])
    assert (report["mapping"] is None) == (option != "--no-causes")
    assert ("not asked for" in report["attribution"]["causes"]["why"]) == (option != "--no-retune")
    commands = _reproduced(report, run)
    assert ("retune" in commands) == (option == "--no-causes")


def test_a_window_is_the_window_of_the_commands(tmp_path: Path, run: Run) -> None:
    report = json.loads(run("report", str(_write(tmp_path / "t.arrows")), "--window", "2s", "--json")[1])
    assert report["measures"]["latency_ns"]["n"] < 600
    assert all("--window 2000000000ns" in figure["command"] for figure in report["figures"])
    _reproduced(report, run)


def test_a_filter_is_the_filter_of_the_commands(tmp_path: Path, run: Run) -> None:
    report = json.loads(run("report", str(_write(tmp_path / "t.arrows")), "--filter", "latency > 10ms", "--json")[1])
    assert report["measures"]["latency_ns"]["n"] == 300
    _reproduced(report, run)


def test_slices_of_findings_hold_rows(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report = json.loads(run("report", str(_write(tmp_path / "t.arrows")), "--json")[1])
    assert report["findings"]
    for finding in report["findings"]:
        code, out = run(*shlex.split(finding["slice_command"])[1:], "--force")
        assert code == 0
        assert out.startswith("sha256:")


def test_the_form_is_by_the_ending_and_nothing_is_overwritten(tmp_path: Path, run: Run) -> None:
    trace, page = str(_write(tmp_path / "t.arrows")), tmp_path / "r.html"
    assert run("report", trace, "-o", str(page)) == (0, "")
    assert page.read_text().startswith("<!doctype html>")
    assert run("report", trace, "-o", str(page))[0] == 2
    assert run("report", trace, "-o", str(page), "--markdown", "--force")[0] == 0
    assert page.read_text().startswith("# ")
    assert run("report", trace, "-o", trace, "--force")[0] == 2


def test_exit_codes(tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path / "missing.arrows")]) == 3
    (tmp_path / "noise").write_bytes(b"\x00noise")
    assert main(["report", str(tmp_path / "noise")]) == 3
    assert capsys.readouterr().out == ""
    code, out = run("report", str(_write(tmp_path / "few.arrows", n=3, slow_from=3)))
    assert (code, "NOT ENOUGH DATA" in out) == (4, True)
    trace = str(_write(tmp_path / "t.arrows"))
    assert run("report", trace, "--filter", "nonsense")[0] == 2
    assert run("report", "host")[0] == 2
    assert run("report", trace, "--owners", str(tmp_path / "missing.toml"))[0] == 3
    assert run("bundle", str(tmp_path / "missing.arrows"), "-o", str(tmp_path / "x.zip"))[0] == 3
    assert not (tmp_path / "x.zip").exists()


def test_owners_are_named(tmp_path: Path, run: Run) -> None:
    owners = tmp_path / "owners.toml"
    owners.write_text('[[owner]]\nname = "sched-team"\n')
    report = json.loads(run("report", str(_write(tmp_path / "t.arrows")), "--owners", str(owners), "--json")[1])
    assert {one["owner"] for one in report["decisions"] if one["expected"] == "not tried"} == {"sched-team"}
    assert {one["owner"] for one in report["findings"]} == {"sched-team"}
    assert report["verdict"]["owner"] == "sched-team"


def test_nobody_is_told_with_the_lines_to_add(tmp_path: Path, run: Run) -> None:
    trace = str(_write(tmp_path / "t.arrows"))
    report = json.loads(run("report", trace, "--json")[1])
    first = report["findings"][0]
    added = f'unowned; add to owners.toml: [[owner]] with name = "TEAM" and class = "{first["bottleneck"] or "tail"}"'
    assert first["owner"] == added
    text = run("report", trace)[1]
    assert "unowned" in text
    assert text.count("- **owner**: ") >= sum(one["severity"] != "info" for one in report["findings"])


def test_owners_of_the_project_go_before_those_of_the_configuration(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = str(_write(tmp_path / "t.arrows"))
    config, below = tmp_path / "config" / "fusetui", tmp_path / "repo" / "serving"
    config.mkdir(parents=True)
    below.mkdir(parents=True)
    (tmp_path / "owners.toml").write_text('[[owner]]\nname = "above the repository"\n')
    (config / "owners.toml").write_text('[[owner]]\nname = "of the configuration"\n')
    monkeypatch.chdir(below)

    def owner() -> str:
        return str(json.loads(run("report", trace, "--json", "--quick")[1])["verdict"]["owner"])

    assert owner() == "of the configuration"
    (tmp_path / "repo" / ".git").mkdir()
    (tmp_path / "repo" / "owners.toml").write_text('[[owner]]\nname = "of the project"\n')
    assert owner() == "of the project"
    (below / "owners.toml").write_text('[[owner]]\nname = "of the folder"\n')
    assert owner() == "of the folder"


@pytest.mark.parametrize("form", ["--markdown", "--html", "--json"])
def test_redaction_leaves_no_name(tmp_path: Path, run: Run, form: str) -> None:
    folder = tmp_path / "alice-secret"
    folder.mkdir()
    out = run("report", str(_write(folder / "gpu-box-9.arrows")), form, "--redact")[1]
    for word in ("gpu-box-9", "alice", "example.com", str(tmp_path), "/home"):
        assert word not in out.lower(), word
    assert "host-1" in out
    assert "trace-1.arrows" in out
    assert out == run("report", str(folder / "gpu-box-9.arrows"), form, "--redact")[1]


def _members(path: Path) -> dict[str, bytes]:
    with ZipFile(path) as file:
        assert {entry.date_time for entry in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        return {name: file.read(name) for name in file.namelist()}


def test_a_bundle_holds_what_its_manifest_says_and_repeats(tmp_path: Path, run: Run) -> None:
    trace = _write(tmp_path / "t.arrows")
    before = trace.read_bytes()
    first, second = tmp_path / "a.zip", tmp_path / "b.zip"
    assert run("bundle", str(trace), "-o", str(first))[0] == 0
    assert run("bundle", str(trace), "-o", str(second))[0] == 0
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_mode & 0o777 == 0o600
    members = _members(first)
    manifest = json.loads(members.pop("manifest.json"))
    assert set(members) == {"report.md", "report.html", "report.json", "findings.json", "slice.arrows"}
    assert {m["name"]: m["sha256"] for m in manifest["members"]} == {
        name: sha256(data).hexdigest() for name, data in members.items()
    }
    assert manifest["trace"][0]["sha256"] == sha256(before).hexdigest()
    assert trace.read_bytes() == before
    report = json.loads(members["report.json"])
    assert json.loads(members["findings.json"])["findings"] == report["findings"]
    kept = tmp_path / "slice.arrows"
    kept.write_bytes(members["slice.arrows"])
    again = json.loads(run("snapshot", str(kept), "--json")[1])
    assert again["latency_ns"] == report["measures"]["latency_ns"]
    assert again["header"]["build"]["slice content"] == manifest["slice_content"]


def test_bookmarks_go_into_the_bundle(tmp_path: Path, run: Run) -> None:
    from fusetui.app.bookmarks import Bookmark, Bookmarks
    from fusetui.commands.replay import capture_key

    trace = _write(tmp_path / "t.arrows")
    Bookmarks(capture_key([str(trace)])).add(Bookmark(EPOCH_NS, EPOCH_NS + MS, "here <b>it</b> began"))
    assert run("bundle", str(trace), "-o", str(tmp_path / "a.zip"))[0] == 0
    members = _members(tmp_path / "a.zip")
    assert json.loads(members["bookmarks.json"])[0]["label"] == "here <b>it</b> began"
    assert b"here &lt;b&gt;it&lt;/b&gt; began" in members["report.html"]


def test_a_redacted_bundle_leaves_no_name_in_any_member(tmp_path: Path, run: Run) -> None:
    assert run("bundle", str(_write(tmp_path / "gpu-box-9.arrows")), "-o", str(tmp_path / "a.zip"), "--redact")[0] == 0
    members = _members(tmp_path / "a.zip")
    kept = tmp_path / "slice.arrows"
    kept.write_bytes(members["slice.arrows"])
    trace = open_trace(kept)
    words = {word for name in ("name", "host", "stream") for word in trace.read(0).column(name).unique().to_pylist()}
    assert words == {"load path-2 on host-1", "host-1", "host-1:decode"}
    everything = json.dumps([repr(trace.header), *(data.decode("latin-1") for data in members.values())]).lower()
    trace.close()
    for word in ("gpu-box-9", "alice", "example.com"):
        assert word not in everything, word
    assert json.loads(members["manifest.json"])["redacted"] is True


def test_screens_go_along_when_asked_for_and_are_of_the_redacted_rows(tmp_path: Path, run: Run) -> None:
    trace = str(_write(tmp_path / "gpu-box-9.arrows"))
    asked = ("bundle", trace, "-o", str(tmp_path / "a.zip"), "--redact", "--quick", "--screens")
    assert run(*asked)[0] == 0
    members = _members(tmp_path / "a.zip")
    told = {member["name"] for member in json.loads(members["manifest.json"])["members"]}
    pictures = {name: data.decode() for name, data in members.items() if name.startswith("screens/")}
    names = ("overview", "tail", "queue", "cores", "mapping", "triage")
    assert set(pictures) == {f"screens/{name}.svg" for name in names} <= told
    for picture in pictures.values():
        assert picture.startswith("<svg")
        assert "font-face" not in picture
        assert "gpu-box-9" not in picture
    shown = pictures["screens/overview.svg"].replace("&#160;", " ")
    assert "slice.arrows: overview" in shown
    assert "COMPLETION" in shown
    assert "Evidence matrix" in pictures["screens/triage.svg"].replace("&#160;", " ")


def test_the_zip_is_a_zip(tmp_path: Path, run: Run) -> None:
    assert run("bundle", "sample:torch-training", "-o", str(tmp_path / "a.zip"))[0] in (0, 4)
    assert ZipFile(BytesIO((tmp_path / "a.zip").read_bytes())).testzip() is None


@pytest.mark.skipif(not CORPUS, reason="FUSETUI_CORPUS is not set")
@pytest.mark.parametrize(
    ("name", "state"),
    [("traces/kineto/pytorch__kineto__worker0.1623143089861.pt.trace.json.gz", "warn"),
     ("traces/serving/liao4s__BurstGPT_test__detail_log_scale1000_prompt500.json", "warn")],
)  # fmt: skip
def test_every_figure_of_a_capture_is_what_its_command_prints(name: str, state: str, run: Run) -> None:
    code, out = run("report", str(Path(CORPUS or "") / name), "--json")
    assert code == 0
    report = json.loads(out)
    assert report["verdict"]["state"] == state
    _reproduced(report, run)


def test_reports_need_no_terminal_library(tmp_path: Path) -> None:
    code = (
        "import sys; from fusetui.cli import main; "
        f"main(['bundle', {str(_write(tmp_path / 't.arrows'))!r}, '-o', {str(tmp_path / 'a.zip')!r}]); "
        "sys.exit(any(name in sys.modules for name in ('textual', 'rich')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0
