"""`fusetui stream --to`: telemetry leaves this machine only where that was asked for."""

from __future__ import annotations

import pytest

from fusetui.cli import main


@pytest.mark.parametrize("target", ["tcp:192.0.2.1:9000", "grpc://192.0.2.1:9000/run"])
def test_another_machine_needs_a_word(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stream", "sim", "--to", target, "--for", "1s"]) == 3
    said = capsys.readouterr().err
    assert said.startswith(f"fusetui: {target.split('/run')[0]}")
    assert said.count("\n") == 1


def test_a_host_that_is_none_is_said_to_be_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stream", "sim", "--to", "tcp:no such host:9000", "--for", "1s"]) == 3
    assert "unknown host" in capsys.readouterr().err
