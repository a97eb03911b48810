"""Metrics over TLS and behind a login: who is trusted, what is sent to whom, and what a refusal says."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from http_servers import send, serving

from fusetui.cli import main
from fusetui.commands.access import authorization
from fusetui.sources.prometheus import open_spec
from fusetui.sources.prometheus_fetch import FetchError, Page, fetch, parse_target
from fusetui.sources.prometheus_socket import tls_context
from fusetui.sources.spec import OpenOptions
from fusetui.telemetry.errors import TelemetryError

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
PAGE = b"vllm:num_requests_waiting 98\n"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Signed by itself, for 127.0.0.1 only."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    return cert, key


@pytest.fixture
def server_tls(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


def get(url: str, cacert: Path | None, header: str | None = None, timeout_s: float = 5.0) -> Page:
    target, tls = parse_target(url), tls_context(str(cacert) if cacert else None)
    return fetch(target, timeout_s=timeout_s, authorization=header, allow_remote=False, tls=tls)


@needs_openssl
def test_a_page_over_tls_and_what_is_sent_along(certificate: tuple[Path, Path], server_tls: ssl.SSLContext) -> None:
    asked: list[str] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        asked.append(request.headers["Authorization"])
        send(request, PAGE)

    with serving(answer, tls=server_tls) as url:
        assert url.startswith("https://")
        assert get(url, certificate[0], "Bearer secret").text == PAGE.decode()
    assert asked == ["Bearer secret"]


@needs_openssl
def test_a_certificate_nobody_vouches_for_is_refused(server_tls: ssl.SSLContext) -> None:
    with serving(lambda r: send(r, PAGE), tls=server_tls) as url, pytest.raises(FetchError) as caught:
        get(url, None)
    assert caught.value.state == "failed"
    assert str(caught.value) == "certificate not trusted (self-signed certificate): name who signed it with --cacert"


@needs_openssl
def test_a_certificate_for_another_name_is_refused(certificate: tuple[Path, Path], server_tls: ssl.SSLContext) -> None:
    with serving(lambda r: send(r, PAGE), tls=server_tls) as url, pytest.raises(FetchError) as caught:
        get(url.replace("127.0.0.1", "localhost"), certificate[0])
    assert "certificate not trusted (Hostname mismatch" in str(caught.value)


def test_a_plain_server_asked_over_tls_says_so() -> None:
    with serving(lambda r: send(r, PAGE)) as url, pytest.raises(FetchError) as caught:
        get(url.replace("http:", "https:"), None)
    assert caught.value.state == "reconnecting"
    assert "is it http?" in str(caught.value)


@pytest.mark.parametrize("after_handshake", [False, True])
@needs_openssl
def test_a_dribble_over_tls_is_left_at_the_deadline(
    after_handshake: bool, certificate: tuple[Path, Path], server_tls: ssl.SSLContext
) -> None:
    stop = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        connection, _ = listener.accept()
        try:
            if after_handshake:
                connection = server_tls.wrap_socket(connection, server_side=True)
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while not stop.wait(0.05):
                if after_handshake:
                    connection.sendall(b"a")
        except OSError:
            pass
        finally:
            connection.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    with closing(listener):
        began_s = time.monotonic()
        with pytest.raises(FetchError) as caught:
            get(f"https://127.0.0.1:{listener.getsockname()[1]}/metrics", certificate[0], timeout_s=0.6)
        assert time.monotonic() - began_s < 3
    stop.set()
    thread.join(5)
    assert caught.value.state == "hung"
    assert str(caught.value) == "no whole answer within 0.6 s"


def test_a_file_that_holds_no_certificates(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing")
    for path in (tmp_path / "ca.pem", tmp_path / "none.pem"):
        with pytest.raises(TelemetryError, match="no file of certificates"):
            open_spec("https://127.0.0.1:1/metrics", OpenOptions(cacert=str(path)))


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("bearer abc.def\n", "Bearer abc.def"),
        ("Bearer  abc", "Bearer abc"),
        ("basic me:pass word", "Basic bWU6cGFzcyB3b3Jk"),
        ("BASIC me:", "Basic bWU6"),
    ],
)
def test_access_from_a_file_or_the_environment(text: str, header: str, tmp_path: Path) -> None:
    (tmp_path / "auth").write_text(text)
    assert authorization(str(tmp_path / "auth"), {"FUSETUI_AUTH": "bearer other"}) == header
    assert authorization(None, {"FUSETUI_AUTH": text}) == header
    assert authorization(None, {}) is None
    assert authorization(None, {"FUSETUI_AUTH": " "}) is None


@pytest.mark.parametrize(
    "text",
    ["", "zzyzx", "digest zzyzx", "bearer ", "basic zzyzx", "bearer zzyzx\nX: y", "bearer zzyzx yes", "bearer é"],
)
def test_access_that_is_not_understood_is_not_repeated(text: str, tmp_path: Path) -> None:
    (tmp_path / "auth").write_text(text)
    with pytest.raises(TelemetryError) as caught:
        authorization(str(tmp_path / "auth"), {})
    assert "zzyzx" not in str(caught.value)
    assert "bearer TOKEN" in str(caught.value)


def test_access_does_not_go_to_another_machine_in_the_clear() -> None:
    options = OpenOptions(authorization="Bearer secret", allow_remote=True)
    with pytest.raises(TelemetryError, match="would travel in the clear") as caught:
        open_spec("http://192.0.2.7:8000/metrics", options)
    assert "secret" not in str(caught.value)


@needs_openssl
def test_the_command_line(
    certificate: tuple[Path, Path], server_tls: ssl.SSLContext, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(request: BaseHTTPRequestHandler) -> None:
        allowed = request.headers["Authorization"] == "Basic bWU6c2VjcmV0"
        send(request, PAGE, status=200 if allowed else 401)

    (tmp_path / "auth").write_text("basic me:secret\n")
    access = ["--cacert", str(certificate[0]), "--auth-file", str(tmp_path / "auth")]
    with serving(answer, tls=server_tls) as url:
        assert main(["snapshot", url, "--window", "1500ms", *access]) == 0
        assert main(["snapshot", url, "--window", "1500ms", *access[:2]]) != 0
    said = capsys.readouterr()
    assert "give what it wants with --auth-file" in said.err
    assert "secret" not in said.out + said.err
