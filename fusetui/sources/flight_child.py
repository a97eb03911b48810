"""The process that speaks Arrow Flight, in place of the viewer or recorder that started it.

A process of its own because pyarrow's Flight server can neither refuse a message for its size nor drop a peer that
says nothing: here both cost a child that can be ended. It also keeps gRPC out of the viewer. What it takes in goes on
over a Unix socket, where every guard on foreign input stands.

    python -m fusetui.sources.flight_child < configuration

The configuration is one line of JSON; when standard input ends, the process ends. It reports in lines of JSON on
standard output: {"port": N} once it is ready, {"trouble": "…"} as things are ("": all well), {"refused": 1}.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
from typing import Any, Final

from fusetui.telemetry.text import safe_text

CHILD_MEMORY_BYTES: Final = 8 << 30
"""Address space, of which Arrow and gRPC set far more aside than they use."""

EXIT_MISSING: Final = 4
EXIT_REFUSED: Final = 3


def report(**fields: object) -> None:
    """Tell the parent."""
    line = json.dumps(fields) + "\n"
    with _lock:
        sys.stdout.write(line)
        sys.stdout.flush()


def problem(error: BaseException) -> str:
    """What Flight says went wrong, without its debugging context."""
    text = str(error).partition(" gRPC client debug context")[0].partition(". Detail: ")[0]
    text = text.removesuffix(", with message: .").strip()
    if text == "Flight cancelled call":
        return "the call broke off: a message over 66 MiB, or the server is gone"
    text = text.removeprefix("Flight returned unavailable error, with message: ")
    if text.startswith("failed to connect"):
        return f"nobody answers there ({text.rstrip('.').rpartition(': ')[2]})"
    return safe_text(text.strip() or type(error).__name__, 300)


_lock = threading.Lock()


def _die_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> int:
    """Take the configuration and do as it says, until standard input ends."""
    config: dict[str, Any] = json.loads(sys.stdin.readline())
    threading.Thread(target=_die_with_parent, daemon=True).start()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = CHILD_MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(hard, CHILD_MEMORY_BYTES)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        from fusetui.sources import flight_ask, flight_serve
    except ImportError as error:
        report(trouble=f"Arrow Flight is not in this pyarrow ({error}); install one that has it")
        return EXIT_MISSING
    modes = {
        "listen": flight_serve.listen,
        "offer": flight_serve.offer,
        "ask": flight_ask.ask,
        "push": flight_ask.push,
    }
    try:
        modes[config["mode"]](config)
    except (OSError, ValueError, RuntimeError) as error:
        report(trouble=problem(error))
        return EXIT_REFUSED
    return 0


if __name__ == "__main__":
    # Threads of gRPC that wait for a peer would keep the process from ending.
    os._exit(main())
