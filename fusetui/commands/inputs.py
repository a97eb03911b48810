"""What the commands name: samples, captures and live sources."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from stat import S_ISFIFO, S_ISSOCK
from typing import BinaryIO

from fusetui.data import data_dir
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.source import Source, Trace

_DEVICES = ("nvml", "amdsmi", "neuron", "tt-smi", "xpu-smi", "hl-smi", "tpu")
_LIVE_WORDS = ("host", "sim", "load", "-", *_DEVICES)
_LIVE_PREFIXES = (
    "sim:",
    "load:",
    "unix:",
    "tcp:",
    "flight:",
    "grpc",
    "http:",
    "https:",
    *(f"{device}:" for device in _DEVICES),
)


def is_live(spec: str) -> bool:
    """True when `spec` names a live source rather than a capture."""
    if spec in _LIVE_WORDS or spec.startswith(_LIVE_PREFIXES):
        return True
    path = Path(spec)
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return S_ISFIFO(mode) or S_ISSOCK(mode)


def capture_path(spec: str) -> Path:
    """The file behind `spec`; `sample:NAME` is one that ships. Raises TelemetryError naming what there is."""
    if not spec.startswith("sample:"):
        return Path(spec)
    folder = data_dir("sample_traces")
    captures = [p for p in sorted(folder.iterdir()) if p.suffix in (".arrows", ".gz", ".json")]
    names = {p.name.split(".")[0]: p for p in captures}
    try:
        return names[spec.removeprefix("sample:")]
    except KeyError:
        raise TelemetryError(spec, "no such sample", "there are: " + ", ".join(names)) from None


def open_trace(specs: list[str], args: argparse.Namespace) -> Trace:
    """The captures named on the command line, as one trace."""
    from fusetui.importers.open import open_capture

    paths = [capture_path(spec) for spec in specs]
    return open_capture(paths, memory_bytes=rows_bytes(args.memory) // 2, isolate=args.isolate)


def open_live(spec: str, args: argparse.Namespace, stdin: BinaryIO | None = None) -> Source:
    """The live source named on the command line; `stdin`: what `-` reads when the keyboard took its place."""
    from fusetui.commands.access import authorization
    from fusetui.commands.followed import open_log
    from fusetui.sources.registry import open_source

    if spec.startswith("sample:"):
        raise TelemetryError(spec, "a capture, not a live source", f"open it with `fusetui replay {spec}`")
    if not is_live(spec) and (log := open_log(spec)) is not None:
        return log
    return open_source(
        spec,
        memory_bytes=queue_bytes(args.memory),
        token=getattr(args, "token", None),
        allow_remote=getattr(args, "allow_remote", False),
        overflow=getattr(args, "overflow", "block"),
        stdin=stdin,
        authorization=authorization(getattr(args, "auth_file", None)) if spec.startswith("http") else None,
        cacert=getattr(args, "cacert", None),
    )


_PROGRAM_BYTES = 160 << 20
"""What the program takes before any row: the interpreter, its libraries and the screen."""


def rows_bytes(memory_bytes: int) -> int:
    """The share of --memory for the rows and histograms of the window."""
    return max(memory_bytes - _PROGRAM_BYTES, memory_bytes // 4) * 3 // 4


def queue_bytes(memory_bytes: int) -> int:
    """The share of --memory for what a live source has read and nobody has polled yet."""
    return max(memory_bytes - _PROGRAM_BYTES, memory_bytes // 4) // 4


def why_lost(spec: str, error: str) -> str:
    """What became of a source, in one line; some already say which they are."""
    return error if error.startswith(spec) else f"{spec}: {error or 'the source was lost'}"


def say(line: str) -> None:
    """A diagnostic: standard error, never standard output."""
    print(line, file=sys.stderr)
