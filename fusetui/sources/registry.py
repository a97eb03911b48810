"""The live sources there are. A source is one module of this package with NAMES, SYNTAX and open_spec."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import fusetui.sources
from fusetui.sources.spec import OpenOptions, Overflow
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.source import Source


class SourceModule(Protocol):
    """NAMES: what specs begin with, before a colon; SYNTAX: how to write them, and what comes of it."""

    NAMES: tuple[str, ...]
    SYNTAX: str

    def open_spec(self, spec: str, options: OpenOptions) -> Source:
        """Raises TelemetryError."""
        ...


def source_modules() -> list[SourceModule]:
    """Every source in this package; modules whose name has an underscore are parts of one."""
    found = [importlib.import_module(f"fusetui.sources.{info.name}") for info in _modules() if "_" not in info.name]
    return [cast(SourceModule, module) for module in found if hasattr(module, "open_spec")]


def open_source(
    spec: str,
    *,
    memory_bytes: int = 128 << 20,
    overflow: Overflow = "block",
    token: str | None = None,
    allow_remote: bool = False,
    stdin: BinaryIO | None = None,
    authorization: str | None = None,
    cacert: str | None = None,
) -> Source:
    """Open a live source by what a person typed: `host`, `sim:rate=20000`, `-`, `unix:/path`, `tcp:host:port`, a pipe.

    memory_bytes  what it may hold of batches not yet polled; the others: see OpenOptions
    Errors: TelemetryError; for a spec that means nothing it lists what there is.
    """
    options = OpenOptions(memory_bytes, overflow, token, allow_remote, stdin, authorization, cacert)
    modules = source_modules()
    name = spec.partition(":")[0]
    for module in modules:
        if name in module.NAMES:
            return module.open_spec(spec, options)
    if spec and Path(spec).exists():
        path_module = next(module for module in modules if "-" in module.NAMES)
        return path_module.open_spec(spec, options)
    names = ", ".join(name for module in modules for name in module.NAMES if "+" not in name)
    raise TelemetryError(spec, "no such source", f"there are {names}, pipes and logs; see fusetui doctor")


def _modules() -> list[pkgutil.ModuleInfo]:
    return list(pkgutil.iter_modules(fusetui.sources.__path__))
