"""Mistakes on the command line and outputs that go away: one line each, and the exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fusetui.cli import main


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("foo", "fusetui: argument COMMAND: invalid choice: 'foo'; see fusetui --help"),
        ("repaly x", "fusetui: argument COMMAND: invalid choice: 'repaly', did you mean replay?; see fusetui --help"),
        (
            "snapshot x --jsn",
            "fusetui snapshot: not understood: --jsn, did you mean --json?; see fusetui snapshot --help",
        ),
        ("snapshot x y", "fusetui snapshot: not understood: y; see fusetui snapshot --help"),
        ("snapshot", "fusetui snapshot: the following arguments are required: source; see fusetui snapshot --help"),
        (
            "replay x --glyphs dots",
            "fusetui replay: argument --glyphs: invalid choice: 'dots' (choose from 'braille', 'block', 'ascii'); "
            "see fusetui replay --help",
        ),
    ],
)
def test_a_mistake_is_one_line_that_names_the_command_and_where_to_read_on(
    words: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    told = capsys.readouterr().err.replace(
        "(choose from braille, block, ascii)", "(choose from 'braille', 'block', 'ascii')"
    )
    assert told == f"{line}\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_an_output_without_room_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "fusetui.cli", "themes"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.returncode == 3
    assert done.stderr == "fusetui: standard output: cannot be written (No space left on device)\n"


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (
            ["record", "sample:torch-serving", "-o", "{tmp}/r/"],
            3,
            "fusetui: sample:torch-serving: a capture, not a live source; "
            "open it with `fusetui replay sample:torch-serving`",
        ),
        (
            ["record", "{tmp}/t.json", "-o", "{tmp}/r/"],
            3,
            "fusetui: {tmp}/t.json: Chrome trace (JSON): a capture, no log that grows; "
            "open it with `fusetui replay {tmp}/t.json`",
        ),
        (
            ["slice", "sample:torch-serving", "-o", "{tmp}/s.parquet"],
            2,
            "fusetui: {tmp}/s.parquet: a slice is an Arrow stream: name it .arrows, "
            "then `fusetui export` makes the others",
        ),
        (
            ["report", "sample:torch-serving", "--quality", "q.csv"],
            2,
            "fusetui: --quality q.csv: quality is compared with that before; give --baseline TRACE too",
        ),
        (
            ["compare", "sample:torch-serving", "sample:torch-serving", "--quality", "{tmp}/q.csv"],
            3,
            "fusetui: {tmp}/q.csv: cannot be read (No such file or directory)",
        ),
        (
            ["check", "sample:torch-serving", "--guard", "{tmp}/g.toml"],
            2,
            "fusetui: {tmp}/g.toml: cannot be read (No such file or directory); name a TOML file with rules = ['…']",
        ),
    ],
)
def test_what_cannot_be_done_is_told_with_what_to_do_instead(
    words: list[str], code: int, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.json").write_text('[{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1.0, "dur": 2.0}]')
    assert main([word.replace("{tmp}", str(tmp_path)) for word in words]) == code
    assert capsys.readouterr().err == line.replace("{tmp}", str(tmp_path)) + "\n"
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]


def test_a_server_that_is_not_there_is_a_lost_source_and_its_reason_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = "http://127.0.0.1:1/metrics"
    assert main(["snapshot", target, "--window", "1s", "--json"]) == 5
    told = capsys.readouterr().err
    assert told.startswith(f"fusetui: {target}: ")
    assert told.count(target) == 1
    assert "refused" in told


def test_lists_and_notes_keep_within_a_wide_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--list"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 120


@pytest.mark.parametrize("words", [["snapshot", "sample:torch-serving"], ["plan"]])
def test_a_narrow_encoding_gets_question_marks_and_no_traceback(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fusetui.cli", *words],
        env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()
    if words == ["snapshot", "sample:torch-serving"]:
        assert b"imbalance    ? 0.02" in done.stdout


def test_calibrate_writes_over_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("op,dtype,latency_us,batch,m,n,k\n")
    assert main(["calibrate", str(rows), "--hardware", "H100", "-o", str(rows), "--force"]) == 2
    assert capsys.readouterr().err == f"fusetui: {rows} is the capture itself, which is never written to\n"
    (tmp_path / "h.json").write_text("kept")
    assert main(["calibrate", str(rows), "--hardware", "H100", "-o", str(tmp_path / "h.json")]) == 2
    assert capsys.readouterr().err == f"fusetui: {tmp_path / 'h.json'} exists; use --force to overwrite it\n"
    assert (tmp_path / "h.json").read_text() == "kept"


def test_a_quick_report_calls_no_share_a_cause(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "sample:torch-serving", "--quick"]) == 0
    quick = capsys.readouterr().out
    assert "what p99 is made of: █ time share\n" in quick
    assert "| share, with what waits behind it |" in quick
    assert "cause share" not in quick
