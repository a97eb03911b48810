"""The client side of Arrow Flight: a viewer that asks with DoGet, a recorder that sends with DoPut."""

from __future__ import annotations

import io
import os
import socket
import threading
import time
from typing import Any, Final

import pyarrow as pa
import pyarrow.flight as flight

from fusetui.sources.flight_child import problem, report
from fusetui.sources.flight_relay import Begun, answers, stamped, to_socket
from fusetui.sources.flight_serve import EXCHANGE
from fusetui.telemetry.guard import DEFAULT_LIMITS

_AGAIN_S: Final = (0.2, 0.5, 1.0, 2.0)
_MESSAGE_BYTES: Final = DEFAULT_LIMITS.message + DEFAULT_LIMITS.metadata
_ERRORS: Final = (flight.FlightError, pa.ArrowException, OSError)


def ask(config: dict[str, Any]) -> None:
    """A stream into the viewer's socket, again whenever it breaks; a plain one that ends whole is over."""
    report(port=0)
    attempt = 0
    while True:
        try:
            client, options = _connect(config)
            with client:
                report(trouble=f"asked for {config['name']!r}, nothing has come yet")
                exchanges = _exchanges(client, options)
                _take(client, options, exchanges, config)
            if not exchanges:
                report(trouble="", ended=True)
                threading.Event().wait()
            report(trouble="the stream has ended; waiting for the next")
            attempt = 0
        except _ERRORS as error:
            report(trouble=problem(error))
        time.sleep(_AGAIN_S[min(attempt, len(_AGAIN_S) - 1)])
        attempt += 1


def _exchanges(client: Any, options: Any) -> bool:
    """Whether the server is a recorder of ours; others may not know actions at all."""
    try:
        return any(action.type == EXCHANGE for action in client.list_actions(options))
    except (NotImplementedError, flight.FlightServerError):
        return False


def _take(client: Any, options: Any, exchanges: bool, config: dict[str, Any]) -> None:
    if exchanges:
        writer, reader = client.do_exchange(flight.FlightDescriptor.for_path(config["name"]), options)
    else:
        writer, reader = None, client.do_get(flight.Ticket(config["name"].encode()), options)
    try:
        begun = Begun(reader)
        report(trouble="")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as viewer:
            viewer.connect(config["socket"])
            back = answers(viewer, writer.write_metadata) if writer is not None else None
            to_socket(begun, viewer, config["name"], lambda: True)
            if back is not None:
                back.join()
    finally:
        reader.cancel()


def push(config: dict[str, Any]) -> None:
    """DoPut of whatever comes to the socket, one connection after the other."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        old = os.umask(0o177)
        door.bind(config["socket"])
        os.umask(old)
        door.listen(1)
        report(port=0)
        while True:
            recorder, _ = door.accept()
            with recorder:
                try:
                    with recorder.makefile("rb", 1 << 20) as file:
                        _give(file, recorder, config)
                    report(trouble="")
                except _ERRORS as error:
                    report(trouble=problem(error))


def _give(file: io.IOBase, recorder: socket.socket, config: dict[str, Any]) -> None:
    client, options = _connect(config)
    with client:
        source = pa.ipc.open_stream(file)
        descriptor = flight.FlightDescriptor.for_path(config["name"] or "fusetui")
        writer, heard = client.do_put(descriptor, source.schema, options)
        report(trouble="")
        back = threading.Thread(target=_hand_back, args=(heard, recorder), daemon=True)
        back.start()
        try:
            while True:
                batch, stamp = stamped(source)
                if stamp:
                    writer.write_with_metadata(batch, stamp)
                else:
                    writer.write_batch(batch)
        except StopIteration:
            writer.done_writing()
            back.join()
        finally:
            writer.close()


def _hand_back(heard: Any, recorder: socket.socket) -> None:
    """Answers of the viewer to the recorder, and its hanging up too."""
    try:
        while (line := heard.read()) is not None:
            recorder.sendall(line.to_pybytes())
    except _ERRORS as error:
        report(trouble=problem(error))
    finally:
        try:
            recorder.shutdown(socket.SHUT_RDWR)
        except OSError:
            report(trouble="the recorder hung up")


def _connect(config: dict[str, Any]) -> tuple[Any, Any]:
    """A client, and the options of its calls."""
    client = flight.connect(config["location"], generic_options=[("grpc.max_receive_message_length", _MESSAGE_BYTES)])
    token = config.get("token")
    headers = [(b"authorization", f"Bearer {token}".encode())] if token else []
    return client, flight.FlightCallOptions(headers=headers)
