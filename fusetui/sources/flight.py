"""Arrow Flight as a live source: `grpc://host:port/name` asks a server, `flight:host:port` takes what is put.

Both end in the viewer's own Unix socket, so that guards, counts, clocks and back-pressure are those of
`fusetui.sources.arrow`; Flight itself runs in a child process (see `fusetui.sources.flight_child` for why).
"""

from __future__ import annotations

from typing import Final

from fusetui.sources.arrow import ArrowSource
from fusetui.sources.arrow_crowd import Crowd
from fusetui.sources.arrow_input import ListenInput
from fusetui.sources.arrow_listen import Address, Listener
from fusetui.sources.arrow_queue import BatchQueue
from fusetui.sources.flight_address import SCHEMES, FlightAddress, check_reach, parse_flight
from fusetui.sources.flight_door import Folder, Mode, open_door
from fusetui.sources.spec import OpenOptions
from fusetui.telemetry.errors import TelemetryError

NAMES: Final = ("flight", *SCHEMES)
SYNTAX: Final = "grpc://host:port/name, flight:host:port: Arrow Flight, asked for or listened to"


class FlightInput:
    """Feeds the queue from a Flight child until closed."""

    def __init__(self, address: FlightAddress, options: OpenOptions, crowd: Crowd, queue: BatchQueue) -> None:
        """Raises TelemetryError."""
        self._crowd = crowd
        self._refused = 0
        self._folder = Folder()
        self._inside = ListenInput(Listener(Address("unix", self._folder.socket)), crowd, queue)
        mode: Mode = "listen" if address.scheme == "listen" else "ask"
        where = self._folder.socket
        try:
            self._door = open_door(mode, address, where, token=options.token, allow_remote=options.allow_remote)
        except TelemetryError:
            self._inside.close()
            self._folder.remove()
            raise

    @property
    def address(self) -> FlightAddress:
        return self._door.address

    @property
    def done(self) -> bool:
        return self._inside.done or (self._door.ended and not self._inside.busy)

    @property
    def trouble(self) -> str:
        while self._refused < self._door.refused:
            self._refused += 1
            self._crowd.refuse()
        return self._door.trouble

    def finish(self) -> None:
        self._inside.finish()

    def close(self) -> None:
        self._door.close()
        self._inside.close()
        self._folder.remove()


def open_spec(spec: str, options: OpenOptions) -> ArrowSource:
    """`grpc://host:port[/name]` or `flight:host:port`."""
    address = parse_flight(spec)
    if address.scheme != "listen":
        check_reach(address, options.allow_remote)
    return ArrowSource(None, options, feed=lambda crowd, queue: FlightInput(address, options, crowd, queue))
