"""`fusetui replay --formats`."""

from __future__ import annotations

import pytest

from fusetui import cli
from fusetui.commands.formats import format_lines
from fusetui.importers.open import importers


def test_every_importer_has_a_line_of_its_own() -> None:
    lines = format_lines()
    assert len(lines) == len(set(lines)) == len(importers()) + 2
    assert all(10 < len(line) <= 160 and "\n" not in line for line in lines)


def test_the_option_prints_them_and_ends(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["replay", "--formats"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.splitlines() == format_lines()
