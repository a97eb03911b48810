"""What a command may import: quick answers stay quick, headless commands never load the application."""

import json
import subprocess
import sys

import pytest

HEAVY = {"textual", "rich", "polars", "pyarrow", "numpy"}


def modules_after(code: str) -> set[str]:
    """Top-level modules loaded by `code` in a fresh interpreter."""
    script = f"import sys, json, contextlib, io\n{code}\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return {name.split(".")[0] for name in json.loads(done.stderr.splitlines()[-1])}


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_version_and_help_import_nothing_heavy(flag: str) -> None:
    code = f"from fusetui.cli import main\nwith contextlib.suppress(SystemExit): main(['{flag}'])"
    assert not HEAVY & modules_after(code)


def test_headless_commands_never_load_the_application() -> None:
    code = (
        "from fusetui.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()): main(['snapshot', 'sim:seed=1', '--window', '300ms'])"
    )
    loaded = modules_after(code)
    assert "pyarrow" in loaded
    assert not {"textual", "rich"} & loaded
