"""Foreign Flight servers and clients, plain pyarrow.flight in processes of their own: good ones and bad ones."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
from arrow_producers import batch

from fusetui.telemetry.schema import SCHEMA


class Server(flight.FlightServerBase):  # type: ignore[misc]
    """DoGet by ticket: good, wrong, half, hang, giant. `python flight_peers.py` prints the port."""

    def do_get(self, context: Any, ticket: Any) -> Any:
        name = ticket.ticket.decode()
        if name == "good":
            return flight.RecordBatchStream(pa.Table.from_batches([batch(5), batch(7, first=5)], SCHEMA))
        if name == "wrong":
            return flight.RecordBatchStream(pa.table({"x": [1, 2]}))
        if name == "half":
            return flight.RecordBatchStream(pa.RecordBatchReader.from_batches(SCHEMA, _half()))
        if name == "giant":
            rows = 90 << 20
            table = pa.table({"x": pa.array(np.zeros(rows, np.int8))})
            return flight.RecordBatchStream(table)
        threading.Event().wait(60)
        raise flight.FlightServerError("too late")


def _half() -> Iterator[pa.RecordBatch]:
    yield batch(3)
    raise RuntimeError("the recorder fell over")


def served() -> tuple[subprocess.Popen[bytes], int]:
    """The server in a process of its own, and its port."""
    process = subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def put(port: int, batches: list[pa.RecordBatch], *, token: str | None = None, path: str = "job") -> None:
    """A plain DoPut of a finished stream."""
    headers = [(b"authorization", f"Bearer {token}".encode())] if token else []
    options = flight.FlightCallOptions(headers=headers)
    with flight.connect(f"grpc://127.0.0.1:{port}") as client:
        writer, _ = client.do_put(flight.FlightDescriptor.for_path(path), batches[0].schema, options)
        with writer:
            for one in batches:
                writer.write_batch(one)


if __name__ == "__main__":
    server = Server("grpc://127.0.0.1:0")
    print(server.port, flush=True)
    server.serve()
