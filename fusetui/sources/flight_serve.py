"""The server side of Arrow Flight: a viewer that takes DoPut, a recorder that answers DoGet."""

from __future__ import annotations

import contextlib
import hmac
import os
import socket
import threading
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.flight as flight

from fusetui.sources.flight_child import problem, report
from fusetui.sources.flight_relay import answers, stamped, to_socket

HEARD: Final = "fusetui-heard"
"""An action whose body is an answer of the viewer, see `fusetui.telemetry.stamp`."""

_COME_S: Final = 10.0


class _Token(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Every call needs `authorization: Bearer <token>`."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()

    def start_call(self, info: Any, headers: dict[str, list[str | bytes]]) -> None:
        given = next(
            (value for key, values in headers.items() if key.lower() == "authorization" for value in values), ""
        )
        if not hmac.compare_digest(given.encode() if isinstance(given, str) else given, self._expected):
            report(refused=1)
            raise flight.FlightUnauthenticatedError("the token is missing or wrong")


def _middleware(config: dict[str, Any]) -> dict[str, Any]:
    return {"token": _Token(config["token"])} if config.get("token") else {}


class _Listen(flight.FlightServerBase):  # type: ignore[misc]
    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        super().__init__(config["location"], middleware=_middleware(config))

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        name = "/".join(p.decode("utf-8", "replace") for p in descriptor.path or [descriptor.command or b""])
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as viewer:
            viewer.connect(self._config["socket"])
            try:
                back = answers(viewer, writer.write)
                to_socket(reader, viewer, name, lambda: not context.is_cancelled())
                back.join()
            except OSError:
                raise flight.FlightServerError("the viewer hung up; its Source pane says why") from None


class _Offer(flight.FlightServerBase):  # type: ignore[misc]
    """One viewer at a time: a recorder sends its rows once."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._one = threading.Lock()
        self._recorder: socket.socket | None = None
        super().__init__(config["location"], middleware=_middleware(config))

    def list_flights(self, context: Any, criteria: bytes) -> Iterator[Any]:
        name = self._config["name"]
        yield flight.FlightInfo(
            pa.schema([]), flight.FlightDescriptor.for_path(name), [flight.FlightEndpoint(name, [])], -1, -1
        )

    def do_get(self, context: Any, ticket: Any) -> Any:
        wanted = ticket.ticket.decode("utf-8", "replace")
        if wanted not in ("", self._config["name"]):
            raise flight.FlightServerError(f"there is no stream of that name, only {self._config['name']!r}")
        if not self._one.acquire(blocking=False):
            raise flight.FlightUnavailableError("another viewer has it")
        try:
            recorder = self._come()
            source = pa.ipc.open_stream(recorder.makefile("rb", 1 << 20))
        except (OSError, pa.ArrowException) as error:
            self._one.release()
            raise flight.FlightUnavailableError(f"the recorder does not send ({error})") from None
        report(trouble="")
        return flight.GeneratorStream(source.schema, self._batches(source, recorder))

    def do_action(self, context: Any, action: Any) -> Iterator[Any]:
        if action.type != HEARD:
            raise flight.FlightServerError(f"no such action: {action.type}")
        recorder = self._recorder
        if recorder is not None:
            with contextlib.suppress(OSError):
                recorder.send(action.body.to_pybytes()[:4096], socket.MSG_DONTWAIT)
        return iter(())

    def _come(self) -> socket.socket:
        """The recorder's connection: it finds the socket only while somebody asks."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._config["socket"])
            door.bind(self._config["socket"])
            door.listen(1)
            door.settimeout(_COME_S)
            recorder, _ = door.accept()
            recorder.settimeout(None)
        self._recorder = recorder
        return recorder

    def _batches(self, source: Any, recorder: socket.socket) -> Iterator[Any]:
        try:
            with contextlib.suppress(StopIteration):
                while True:
                    batch, stamp = stamped(source)
                    yield (batch, stamp) if stamp else batch
        finally:
            self._recorder = None
            recorder.close()
            self._one.release()


def listen(config: dict[str, Any]) -> None:
    """Serve DoPut into the viewer's socket until the process ends."""
    _serve(_Listen(config))


def offer(config: dict[str, Any]) -> None:
    """Serve DoGet from a recorder's socket until the process ends."""
    _serve(_Offer(config))


def _serve(server: Any) -> None:
    report(port=server.port)
    try:
        server.serve()
    except flight.FlightError as error:
        report(trouble=problem(error))
