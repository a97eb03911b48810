"""Servers that listen on this machine, from the kernel's tables alone: what a port or a program's name suggests."""

from __future__ import annotations

import ipaddress
import os
import re
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from fusetui.telemetry.text import safe_text

_MAX_BYTES: Final = 8 << 20
_MAX_HANDLES: Final = 50_000
_LISTEN: Final = "0A"

_PORTS: Final = {
    8000: ("vLLM, or another serving engine", "/metrics"),
    8002: ("Triton metrics", "/metrics"),
    8080: ("a serving engine (TGI, llama.cpp)", "/metrics"),
    8082: ("Ascend NPU-Exporter", "/metrics"),
    8431: ("libtpu metrics (gRPC)", ""),
    9400: ("DCGM exporter", "/metrics"),
    5000: ("AMD device exporter", "/metrics"),
    30000: ("SGLang", "/metrics"),
    41611: ("Gaudi exporter", "/metrics"),
}
"""Default ports. A guess from the number alone, so it is said to be one."""

_PROGRAMS: Final = (
    ("vllm", "vLLM"),
    ("sglang", "SGLang"),
    ("tritonserver", "Triton"),
    ("text-generation", "TGI"),
    ("llama-server", "llama.cpp"),
    ("trtllm-serve", "TensorRT-LLM"),
    ("lmdeploy", "LMDeploy"),
    ("dcgm-exporter", "DCGM exporter"),
    ("npu-exporter", "Ascend NPU-Exporter"),
)
"""What a command line contains -> what it then is."""


class Listener(NamedTuple):
    """Something that may have metrics. path: "" when fusetui has no way to read them."""

    host: str
    port: int
    what: str
    told: str
    path: str


def listeners(root: Path) -> list[Listener]:
    """Known servers on loopback, by port; a program's name counts more than its port."""
    inodes: dict[int, tuple[str, str]] = {}
    for table in ("tcp", "tcp6"):
        for line in _lines(root / "proc/net" / table):
            for host, port, inode in _listening(line):
                inodes.setdefault(port, (host, inode))
    programs = _programs(root, {inode for _, inode in inodes.values()})
    found = []
    for port, (host, inode) in sorted(inodes.items()):
        command = programs.get(inode, "")
        named = next((what for word, what in _PROGRAMS if word in command), "")
        guess, path = _PORTS.get(port, ("", "/metrics"))
        if named:
            # Triton serves its metrics at a port of their own.
            elsewhere = named == "Triton" and port != 8002
            found.append(Listener(host, port, named, f"port {port}, by its command", "" if elsewhere else path))
        elif guess:
            by = f" of {command.split()[0]}" if command else ""
            found.append(Listener(host, port, guess, safe_text(f"port {port}{by}, a guess by its number", 200), path))
    return found


def sockets(root: Path) -> list[str]:
    """Unix sockets with fusetui in their name that somebody listens on."""
    found = set()
    for line in _lines(root / "proc/net/unix"):
        fields = line.split(None, 7)
        if len(fields) == 8 and fields[3] == "00010000" and "fusetui" in fields[7]:
            found.add(fields[7].strip())
    return sorted(found)


def _listening(line: str) -> Iterator[tuple[str, int, str]]:
    """(host to reach it by, port, inode) when the line is of a listener reachable on loopback."""
    fields = line.split()
    if len(fields) < 10 or fields[3] != _LISTEN:
        return
    match = re.fullmatch(r"([0-9A-F]{8}|[0-9A-F]{32}):([0-9A-F]{4})", fields[1])
    if match is None:
        return
    # Each 32-bit word is printed in the machine's byte order.
    words = [bytes.fromhex(match[1][at : at + 8]) for at in range(0, len(match[1]), 8)]
    address = ipaddress.ip_address(b"".join(word[::-1] if sys.byteorder == "little" else word for word in words))
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    if address.is_unspecified:
        yield "127.0.0.1", int(match[2], 16), fields[9]
    elif address.is_loopback:
        yield f"[{address}]" if address.version == 6 else str(address), int(match[2], 16), fields[9]


def _programs(root: Path, inodes: set[str]) -> dict[str, str]:
    """Socket inode -> command line, of processes that may be looked at."""
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    found: dict[str, str] = {}
    for pid, target in islice(_handles(root / "proc"), _MAX_HANDLES):
        inode = wanted.get(target)
        if inode is not None and inode not in found:
            raw = _read(root / "proc" / pid / "cmdline")[:4096]
            found[inode] = safe_text(raw.replace("\0", " ").strip(), 500)
    return found


def _handles(proc: Path) -> Iterator[tuple[str, str]]:
    for pid in _listed(proc):
        if pid.isdigit():
            for handle in _listed(proc / pid / "fd"):
                try:
                    yield pid, os.readlink(proc / pid / "fd" / handle)
                except OSError:
                    continue


def _lines(path: Path) -> list[str]:
    return _read(path).splitlines()[1:]


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode(errors="replace")
    except OSError:
        return ""


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
