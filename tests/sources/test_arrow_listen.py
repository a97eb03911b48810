"""Addresses as typed, and the sockets made for them."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from fusetui.sources.arrow_listen import Address, Listener, parse_address
from fusetui.telemetry.errors import TelemetryError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("-", Address("stdin")),
        ("stdin", Address("stdin")),
        ("unix:/run/x.sock", Address("unix", "/run/x.sock")),
        ("tcp:127.0.0.1:9999", Address("tcp", host="127.0.0.1", port=9999)),
        ("tcp:localhost:0", Address("tcp", host="localhost", port=0)),
        ("tcp:[::1]:7", Address("tcp", host="::1", port=7)),
        ("/tmp/pipe", Address("path", "/tmp/pipe")),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not a path"),
        ("unix:", "no socket path"),
        ("unix:/" + "x" * 200, "over 103 bytes"),
        ("tcp:9999", "no host and port"),
        ("tcp:127.0.0.1", "no host and port"),
        ("tcp:127.0.0.1:http", "not a port"),
        ("tcp:127.0.0.1:65536", "not a port"),
        ("tcp:127.0.0.1:²", "not a port"),
        ("tcp:::1:99", "brackets"),
    ],
)
def test_wrong_addresses_say_what_is_wrong(text: str, complaint: str) -> None:
    with pytest.raises(TelemetryError, match=complaint):
        parse_address(text)


def test_a_unix_socket_is_ours_alone_and_removed_on_close(tmp_path: Path) -> None:
    path = tmp_path / "s"
    before = os.umask(0o022)
    os.umask(before)
    listener = Listener(Address("unix", str(path)))
    mode = path.stat().st_mode
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600
    now = os.umask(before)
    assert now == before
    listener.close()
    assert not path.exists()


def test_a_dead_servers_socket_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()
    listener = Listener(Address("unix", str(path)))
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    listener.close()


def test_a_live_servers_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s"
    first = Listener(Address("unix", str(path)))
    with pytest.raises(TelemetryError, match="another program listens there"):
        Listener(Address("unix", str(path)))
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    first.close()


def test_another_servers_socket_survives_our_close(tmp_path: Path) -> None:
    path = tmp_path / "s"
    first = Listener(Address("unix", str(path)))
    path.unlink()
    other = path.with_name("keep")
    second = Listener(Address("unix", str(path)))
    os.link(path, other)
    first.close()
    assert path.exists()
    second.close()
    assert not path.exists()


def test_a_file_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("data")
    with pytest.raises(TelemetryError, match="not a socket"):
        Listener(Address("unix", str(path)))
    assert path.read_text() == "data"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TelemetryError, match="cannot listen"):
        Listener(Address("unix", str(tmp_path / "no" / "s")))


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
@pytest.mark.parametrize(("token", "allow"), [(None, False), ("secret", False), (None, True), ("", True)])
def test_wider_than_loopback_needs_permission_and_a_token(host: str, token: str | None, allow: bool) -> None:
    with pytest.raises(TelemetryError, match="other machines could send here"):
        Listener(Address("tcp", host=host), token=token, allow_remote=allow)


def test_wider_than_loopback_with_both() -> None:
    listener = Listener(Address("tcp", host="0.0.0.0"), token="secret", allow_remote=True)
    assert listener.address.port > 0
    listener.close()


def test_a_taken_port() -> None:
    first = Listener(Address("tcp", host="127.0.0.1"))
    with pytest.raises(TelemetryError, match="cannot listen"):
        Listener(first.address)
    first.close()
