"""owners.toml: the last rule that fits decides; mistakes name their key."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import CASES
from triage_rows import snapshot

from fusetui.telemetry.errors import TelemetryError
from fusetui.triage.finding import Finding, Slice
from fusetui.triage.judge import triage
from fusetui.triage.owners import Owners, load_owners


def _load(folder: Path, text: str) -> Owners:
    path = folder / "owners.toml"
    path.write_text(text, encoding="utf-8")
    return load_owners(path)


def _finding(**fields: object) -> Finding:
    return Finding("queueing/tail", "s", "warn", Slice(0, 1), **fields)  # type: ignore[arg-type]


def test_the_last_rule_that_fits_decides(tmp_path: Path) -> None:
    owners = _load(
        tmp_path,
        """
        [[owner]]
        name = "everybody"
        [[owner]]
        name = "sched"
        class = "queueing"
        [[owner]]
        name = "prefill"
        class = "queueing"
        stream = "prefill*"
        [[owner]]
        name = "bert"
        plan = "bert-*"
        class = "fall*"
        """,
    )
    on_prefill = _finding(bottleneck="queueing", subject="prefill-2", subject_kind="stream")
    assert owners.owned(on_prefill).owner == "prefill"
    assert owners.owned(_finding(bottleneck="queueing", subject="prefill-2", subject_kind="core")).owner == "sched"
    assert owners.owned(_finding(topic="source")).owner == "everybody"
    assert owners.owned(_finding(bottleneck="fallback"), ("gpt", "bert-base")).owner == "bert"
    assert owners.owned(_finding(bottleneck="fallback"), ("gpt",)).owner == "everybody"


def test_triage_says_who(tmp_path: Path) -> None:
    owners = _load(tmp_path, '[[owner]]\nname = "place\\u202ement"\nclass = "imbalance"\ncore = "0/7"\n')
    found = triage(snapshot(CASES["slow_replica"]().batches), owners=owners)
    assert found.first is not None
    assert found.first.owner == "place·ment"


def test_nobody_where_there_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert load_owners() == Owners()
    (tmp_path / "fusetui").mkdir()
    (tmp_path / "fusetui" / "owners.toml").write_text('[[owner]]\nname = "me"\n')
    assert load_owners().owned(_finding()).owner == "me"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[owners]]\nname = 'x'\n", "unknown key 'owners'"),
        ("owner = 3\n", "owner is not a list of tables"),
        ("owner = [3]\n", "owner is not a list of tables"),
        ("[[owner]]\nclass = 'queueing'\n", "owner 1: name is missing"),
        ("[[owner]]\nname = 'x'\n[[owner]]\nname = 'x'\nstreem = 'y'\n", "owner 2: unknown key 'streem'"),
        ("[[owner]]\nname = 7\n", "owner 1: name is not a text"),
        ("[[owner]]\nname = 'x'\nclass = 'queuing'\n", "class 'queuing' fits none"),
        ("[[owner]]\nname = 'x'\nplan = ''\n", "plan is not a text"),
        (f"[[owner]]\nname = '{'x' * 300}'\n", "name is over 200 characters"),
        ("[[owner]\n", "not TOML"),
    ],
)
def test_mistakes_name_their_key(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(TelemetryError, match=r"owners\.toml") as caught:
        _load(tmp_path, text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match="there is no such file"):
        load_owners(tmp_path / "none.toml")
    with pytest.raises(TelemetryError, match="cannot be read"):
        load_owners(tmp_path)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(TelemetryError, match="not UTF-8"):
        load_owners(tmp_path / "bytes.toml")
    (tmp_path / "large.toml").write_bytes(b"#" * (1 << 20) + b"##")
    with pytest.raises(TelemetryError, match="limit of 1 MiB"):
        load_owners(tmp_path / "large.toml")
