"""Sources that close themselves after a test."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from arrow_producers import Open

from fusetui.sources.arrow import ArrowSource
from fusetui.sources.arrow_listen import parse_address
from fusetui.sources.spec import OpenOptions


@pytest.fixture
def open_arrow() -> Iterator[Open]:
    """`open_arrow("tcp:127.0.0.1:0", token_timeout_s=…, memory_bytes=…)`."""
    opened: list[ArrowSource] = []

    def open_(text: str, *, token_timeout_s: float = 5.0, **options: object) -> ArrowSource:
        source = ArrowSource(parse_address(text), OpenOptions(**options), token_timeout_s=token_timeout_s)  # type: ignore[arg-type]
        opened.append(source)
        return source

    yield open_
    for source in opened:
        source.close()


@pytest.fixture
def free_port() -> int:
    """A TCP port of loopback that nobody has just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number
