"""The programs of this folder run by hand: what they import must exist when nobody runs them."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from pathlib import Path

import pytest

PROGRAMS = sorted(Path(__file__).parent.glob("bench_*.py"))


def missing(program: Path) -> list[str]:
    """The names of fusetui that a program imports and that are not there."""
    absent = []
    for node in ast.walk(ast.parse(program.read_text())):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("fusetui"):
            continue
        module = str(node.module)
        try:
            loaded = importlib.import_module(module)
        except ModuleNotFoundError:
            absent.append(module)
            continue
        for name in (alias.name for alias in node.names):
            if hasattr(loaded, name):
                continue
            if not hasattr(loaded, "__path__") or importlib.util.find_spec(f"{module}.{name}") is None:
                absent.append(f"{module}.{name}")
    return absent


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_a_program_imports_what_exists(program: Path) -> None:
    assert missing(program) == []


def test_a_name_that_is_gone_is_found(tmp_path: Path) -> None:
    program = tmp_path / "bench_gone.py"
    program.write_text("from fusetui.app.canvas import Canvas, Gone\nfrom fusetui.nowhere import x\n")
    assert missing(program) == ["fusetui.app.canvas.Gone", "fusetui.nowhere"]
