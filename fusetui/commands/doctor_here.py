"""What doctor says of this installation: extras, terminal, configuration files, versions."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from fusetui import __version__
from fusetui.telemetry.text import safe_text

EXTRAS: Final = (
    ("nvidia", "pynvml", "nvidia-ml-py>=12.535", "fusetui live nvml"),
    ("amd", "amdsmi", "amdsmi>=6.3,<8", "fusetui live amdsmi"),
    ("tpu", "tpu_info", "tpu-info>=0.4", "fusetui live tpu"),
    ("onnx", "onnx", "onnx>=1.17,<2", "fusetui plan MODEL.onnx"),
)
"""Name of the extra, the module it brings, what it installs, what it is for."""

_PACKAGES: Final = ("textual", "rich", "numpy", "polars", "pyarrow", "psutil", "msgspec")
_MAX_FILES: Final = 1000
_MAX_FILE_BYTES: Final = 1 << 20


def extras(has_module: Callable[[str], bool]) -> list[dict[str, Any]]:
    """The optional packages, each with the line that installs it into this very Python."""
    python = shlex.quote(sys.executable or "python3")
    return [
        {
            "name": name,
            "installed": has_module(module),
            "install": f"{python} -m pip install {shlex.quote(requirement)}",
            "for": use,
        }
        for name, module, requirement, use in EXTRAS
    ]


def terminal_facts(environ: Mapping[str, str]) -> dict[str, Any]:
    """What the terminal says it can do; columns and rows are None without one."""
    from fusetui.app.run import choose_glyphs

    size = _size()
    encoding = (getattr(sys.__stderr__, "encoding", None) or "unknown").lower()
    term = safe_text(environ.get("TERM", ""), 60) or "TERM is not set"
    notes = []
    if size is None:
        notes.append("no terminal here: live, replay and the bare fusetui need one; snapshot and record do not")
    elif size.columns < 80 or size.lines < 24:
        notes.append("smaller than 80 x 24: panes are left out")
    if term == "dumb":
        notes.append("TERM=dumb cannot draw a screen")
    if "utf" not in encoding:
        notes.append("no UTF-8: set LANG=C.UTF-8, or stay with --glyphs ascii")
    return {
        "term": term,
        "columns": size.columns if size else None,
        "rows": size.lines if size else None,
        "colours": colours(environ),
        "encoding": encoding,
        "glyphs": choose_glyphs(None, environ).name,
        "notes": notes,
    }


def colours(environ: Mapping[str, str]) -> str:
    """The colour depth that the environment announces."""
    if "NO_COLOR" in environ:
        return "no colours (NO_COLOR)"
    term = environ.get("TERM", "")
    if environ.get("COLORTERM", "").lower() in ("truecolor", "24bit") or term.endswith("-direct"):
        return "16 million colours"
    if "256color" in term:
        return "256 colours"
    return "no colours" if term in ("", "dumb") else "16 colours"


def config_facts(environ: Mapping[str, str]) -> dict[str, Any]:
    """The configuration files there are, and one line for each thing wrong with them."""
    home = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".config")
    folder = Path(home) / "fusetui"
    files = _files(folder)
    problems = [problem for file in files for problem in _problems(folder / file)]
    return {
        "folder": safe_text(str(folder), 300),
        "files": [safe_text(file, 200) for file in files],
        "problems": [safe_text(problem, 400) for problem in problems],
    }


def version_facts() -> dict[str, str | None]:
    """fusetui, Python, the system and the packages it stands on; None where one tells no version."""
    found: dict[str, str | None] = {
        "fusetui": __version__,
        "python": platform.python_version(),
        platform.system().lower() or "system": platform.release(),
    }
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found


def _size() -> os.terminal_size | None:
    for stream in (sys.__stderr__, sys.__stdout__, sys.__stdin__):
        try:
            if stream is not None:
                return os.get_terminal_size(stream.fileno())
        except (OSError, ValueError):
            continue
    return None


def _files(folder: Path) -> list[str]:
    """Paths below the configuration folder, two folders deep."""
    try:
        found = [path for pattern in ("*", "*/*") for path in folder.glob(pattern) if path.is_file()]
    except OSError:
        return []
    return sorted(str(path.relative_to(folder)) for path in found[:_MAX_FILES])


def _problems(path: Path) -> list[str]:
    """What the part of fusetui that reads the file says of it."""
    from fusetui.accelerator.errors import AcceleratorError
    from fusetui.app.themes import ThemeFileError
    from fusetui.telemetry.errors import TelemetryError

    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            return [f"{path}: over 1 MiB, not looked at"]
        return _read_as_used(path)
    except (AcceleratorError, TelemetryError, ThemeFileError) as error:
        return [str(error)]
    except (OSError, ValueError, RecursionError) as error:
        return [f"{path}: cannot be read ({error})"]


def _read_as_used(path: Path) -> list[str]:
    """Read the file as the part of fusetui that uses it does; raises what that raises."""
    from fusetui.accelerator.constants import load_constants
    from fusetui.accelerator.presets import load_hardware
    from fusetui.app.actions import ACTIONS
    from fusetui.app.keymap import load_keymap
    from fusetui.app.themes import read_theme
    from fusetui.triage.owners import load_owners

    if path.name == "keys.toml":
        return load_keymap(path, ACTIONS)[1]
    if path.name == "owners.toml":
        load_owners(path)
    elif path.parent.name == "hardware" and path.suffix == ".toml":
        load_hardware(str(path))
    elif path.parent.name == "themes" and path.suffix == ".toml":
        read_theme(path)
    elif path.parent.name == "constants" and path.suffix == ".json":
        tables = json.loads(path.read_text())
        dtypes = {t.get("dtype") for t in tables if isinstance(t, dict)} if isinstance(tables, list) else set()
        named = sorted(dtype for dtype in dtypes if isinstance(dtype, str))
        for dtype in named or (None,):
            load_constants(path, dtype)
    return []
