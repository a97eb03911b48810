"""The server side of Arrow Flight: a viewer that takes DoPut, a recorder that answers DoGet."""

from __future__ import annotations

import contextlib
import hmac
import io
import os
import socket
import threading
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.flight as flight

from fusetui.sources.flight_child import problem, report
from fusetui.sources.flight_relay import Begun, answers, stamped, to_socket

EXCHANGE: Final = "fusetui-exchange"
"""Among the actions of a server whose DoExchange streams with stamps and takes answers."""

_COME_S: Final = 10.0
_LAST_ANSWER_S: Final = 4.0


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
        begun = Begun(reader)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as viewer:
            viewer.connect(self._config["socket"])
            try:
                back = answers(viewer, writer.write)
                to_socket(begun, viewer, name, lambda: not context.is_cancelled())
                back.join()
            except OSError:
                raise flight.FlightServerError("the viewer hung up; its Source pane says why") from None


class _Offer(flight.FlightServerBase):  # type: ignore[misc]
    """One viewer at a time: a recorder sends its rows once."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._one = threading.Lock()
        super().__init__(config["location"], middleware=_middleware(config))

    def list_flights(self, context: Any, criteria: bytes) -> Iterator[Any]:
        name = self._config["name"]
        yield flight.FlightInfo(
            pa.schema([]), flight.FlightDescriptor.for_path(name), [flight.FlightEndpoint(name, [])], -1, -1
        )

    def do_get(self, context: Any, ticket: Any) -> Any:
        """For any Flight client: the rows alone."""
        recorder, file, source = self._come(ticket.ticket)

        def batches() -> Iterator[pa.RecordBatch]:
            with self._serving(recorder, file), contextlib.suppress(StopIteration):
                while True:
                    yield stamped(source)[0]

        return flight.RecordBatchStream(pa.RecordBatchReader.from_batches(source.schema, batches()))

    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """For a viewer of ours: the rows with their stamps one way, its answers the other."""
        recorder, file, source = self._come(b"/".join(descriptor.path))
        with self._serving(recorder, file):
            writer.begin(source.schema)
            threading.Thread(target=_hand_back, args=(reader, recorder), daemon=True).start()
            with contextlib.suppress(StopIteration):
                while True:
                    writer.write_with_metadata(*stamped(source))
            # The call must last until the recorder has heard what came, and hangs up.
            recorder.settimeout(_LAST_ANSWER_S)
            with contextlib.suppress(TimeoutError):
                recorder.recv(1)

    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        return [(EXCHANGE, "DoExchange with the path of a stream gives its rows with stamps, and takes answers")]

    def _come(self, name: bytes) -> tuple[socket.socket, io.IOBase, Any]:
        """The recorder's connection, which it finds only while somebody asks. Raises FlightError."""
        if name.decode("utf-8", "replace") not in ("", self._config["name"]):
            raise flight.FlightServerError(f"there is no stream of that name, only {self._config['name']!r}")
        if not self._one.acquire(blocking=False):
            raise flight.FlightUnavailableError("another viewer has it")
        try:
            recorder = self._accept()
            file = recorder.makefile("rb", 1 << 20)
            source = pa.ipc.open_stream(file)
        except (OSError, pa.ArrowException) as error:
            self._one.release()
            raise flight.FlightUnavailableError(f"the recorder does not send ({error})") from None
        report(trouble="")
        return recorder, file, source

    def _accept(self) -> socket.socket:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._config["socket"])
            door.bind(self._config["socket"])
            door.listen(1)
            door.settimeout(_COME_S)
            recorder, _ = door.accept()
        recorder.settimeout(None)
        return recorder

    @contextlib.contextmanager
    def _serving(self, recorder: socket.socket, file: io.IOBase) -> Iterator[None]:
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                recorder.shutdown(socket.SHUT_RDWR)
            file.close()
            recorder.close()
            self._one.release()


def _hand_back(reader: Any, recorder: socket.socket) -> None:
    """Answers of the viewer to the recorder; a viewer that goes ends the connection."""
    with contextlib.suppress(StopIteration, OSError, pa.ArrowException):
        while True:
            heard = reader.read_chunk().app_metadata
            if heard is not None:
                recorder.sendall(heard.to_pybytes())
    with contextlib.suppress(OSError):
        recorder.shutdown(socket.SHUT_RDWR)


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
