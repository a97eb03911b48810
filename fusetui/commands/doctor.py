"""`fusetui doctor`: what there is to watch here and how, and what is in the way. It only looks, and always succeeds."""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import os
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fusetui.commands.doctor_here import config_facts, extras, terminal_facts, version_facts
from fusetui.sources.discovery import ROOT, offers

_WIDTH = 100


def run(args: argparse.Namespace) -> int:
    """Print what was found, as text or JSON; 0 whatever that is."""
    found = examine()
    # A name found on the machine may not be printable in this encoding.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    if args.json:
        print(json.dumps(found, indent=2, allow_nan=False))
    else:
        for line in lines(found):
            print(line)
    return 0


def examine(root: Path = ROOT, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Everything found, ready for JSON. root: where /dev, /proc and /sys are."""
    return {
        "offers": [offer._asdict() for offer in offers(root, has_module=has_module, environ=environ)],
        "extras": extras(has_module),
        "terminal": terminal_facts(environ),
        "config": config_facts(environ),
        "versions": version_facts(),
    }


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The findings as text: what can be watched first, with the command."""
    ready = [offer for offer in found["offers"] if offer["ready"]]
    yield "to watch"
    width = max((len(offer["command"]) for offer in ready), default=0)
    for offer in ready:
        yield from _folded(f"  {offer['command']:{width}}  ", f"{offer['name']}: {offer['detail']}")
    hindered = [offer for offer in found["offers"] if not offer["ready"]]
    if hindered:
        yield "found, but"
        for offer in hindered:
            then = f"; then {offer['command']}" if offer["command"] else ""
            yield from _folded("  ", f"{offer['name']}: {offer['detail']}{then}")
    yield "extras"
    for extra in found["extras"]:
        yield f"  {extra['name']:8} {'there' if extra['installed'] else extra['install']}  ({extra['for']})"
    terminal = found["terminal"]
    size = f"{terminal['columns']} x {terminal['rows']}" if terminal["columns"] else "size not known"
    yield "terminal"
    yield f"  {terminal['term']}, {size}, {terminal['colours']}, {terminal['encoding']}, glyphs {terminal['glyphs']}"
    yield from (f"  {note}" for note in terminal["notes"])
    yield "configuration"
    yield f"  {found['config']['folder']}: {', '.join(found['config']['files']) or 'no files'}"
    for problem in found["config"]["problems"]:
        yield from _folded("  ! ", problem)
    yield "versions"
    yield from _folded("  ", ", ".join(f"{name} {version}" for name, version in found["versions"].items()))


def _folded(lead: str, text: str) -> list[str]:
    indent = " " * min(len(lead), 30)
    # Commands in a text stay whole, so that they can be copied.
    return textwrap.wrap(
        text, _WIDTH, initial_indent=lead, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def has_module(name: str) -> bool:
    """Whether a package is installed, without importing it."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
