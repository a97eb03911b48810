"""What this machine offers to watch, found by looking only: nothing is connected to, started, loaded or woken."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from fusetui.sources.discovery_devices import Device, devices
from fusetui.sources.discovery_ports import listeners, sockets
from fusetui.telemetry.text import safe_text

ROOT: Final = Path("/")


class Offer(NamedTuple):
    """One thing to watch.

    ready    nothing is in the way of `command`
    detail   how it was recognised, and what is in the way when it is not ready
    command  how to watch it; "" when fusetui cannot
    """

    kind: str
    name: str
    ready: bool
    detail: str
    command: str

    @property
    def source(self) -> str:
        """What `command` watches, as `fusetui live` takes it; "" when fusetui cannot."""
        return shlex.split(self.command)[-1] if self.command else ""


def offers(
    root: Path = ROOT,
    *,
    has_module: Callable[[str], bool],
    find_command: Callable[[str], str | None] = shutil.which,
    environ: Mapping[str, str],
) -> list[Offer]:
    """Everything found, most specific first: devices, serving ports, sockets, and what is always there."""
    found = [_device(device, has_module, find_command) for device in devices(root)]
    urls = []
    for port in listeners(root):
        url = f"http://{port.host}:{port.port}{port.path}" if port.path else ""
        urls += [url] if url else []
        found.append(Offer("port", port.what, bool(url), port.told, f"fusetui live {url}" if url else ""))
    if len(urls) > 1:
        told = "each a host of its own in one view"
        found.append(Offer("port", "all of these together", True, told, f"fusetui live {','.join(urls)}"))
    taken = sockets(root)
    found += [Offer("socket", safe_text(path, 200), False, "a fusetui listens here already", "") for path in taken]
    folder = environ.get("XDG_RUNTIME_DIR") or "/tmp"
    socket = shlex.quote(safe_text(f"unix:{folder.rstrip('/')}/fusetui.sock", 200))
    found.append(
        Offer("socket", "producers of Arrow telemetry", True, "nobody needs to run yet", f"fusetui live {socket}")
    )
    has_proc = (root / "proc/stat").exists()
    told = "CPUs, run-queue waits, pressure" if has_proc else "CPUs and memory; no /proc, so no waits"
    found.append(Offer("host", "this machine", True, told, "fusetui live host"))
    found.append(Offer("sim", "a simulated accelerator", True, "from the model, no device needed", "fusetui live sim"))
    return found


def _device(device: Device, has_module: Callable[[str], bool], find_command: Callable[[str], str | None]) -> Offer:
    family = device.family
    missing = ""
    if not device.nodes:
        missing = "no device node: the driver is not loaded, or the device not passed to this container"
    elif not device.readable:
        missing = "the device nodes are not yours to open"
    elif device.asleep:
        missing = "asleep: looking would wake it"
    elif not family.source:
        missing = family.remedy
    elif family.module and not has_module(family.module):
        missing = f"the package {family.module} is missing"
    elif family.tool and find_command(family.tool) is None:
        missing = f"{family.tool} is not on PATH"
    detail = f"{device.told}; {missing}" if missing else device.told
    command = f"fusetui live {family.source}" if family.source else ""
    return Offer("device", f"{device.number} {family.name}", not missing, detail, command)
