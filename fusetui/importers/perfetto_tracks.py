"""Track descriptors of a Perfetto trace: names of tracks, threads and processes by the track's number."""

from __future__ import annotations

from typing import Final

from fusetui.importers.chrome_tracks import Tracks
from fusetui.importers.protowire import LENGTH, VARINT
from fusetui.telemetry.tracknames import is_requests

_UUID, _NAME, _PROCESS, _THREAD, _PARENT, _COUNTER, _STATIC_NAME = 1, 2, 3, 4, 5, 8, 10
_MOST: Final = 1 << 16
_DEPTH: Final = 16

Message = list[tuple[int, int, int, bytes]]
"""(number, wire type, number value, content) of each field of a message."""


class Descriptors:
    """What the descriptors said, and the code of each track in `tracks`."""

    def __init__(self, tracks: Tracks) -> None:
        self._tracks = tracks
        self._names: dict[int, str] = {}
        self._parents: dict[int, int] = {}
        self._processes: dict[int, int] = {}

    def take(self, message: Message, parsed: dict[int, Message]) -> None:
        """One descriptor; `parsed` has the fields of its process and thread."""
        numbers = {number: value for number, wire, value, _ in message if wire == VARINT}
        texts = {number: content for number, wire, _, content in message if wire == LENGTH}
        uuid = numbers.get(_UUID, 0)
        if len(self._names) >= _MOST:
            return
        name = _text(texts.get(_NAME) or texts.get(_STATIC_NAME))
        for kind, label in ((_PROCESS, 6), (_THREAD, 5)):
            if kind not in texts:
                continue
            inner = parsed.get(kind, [])
            pid = next((value for number, wire, value, _ in inner if (number, wire) == (1, VARINT)), 0)
            own = _text(next((content for number, _, _, content in inner if number == label), None))
            tid = next((value for number, wire, value, _ in inner if (number, wire) == (2, VARINT)), 0)
            self._processes[uuid] = pid
            if kind == _PROCESS:
                self._tracks.rename("process_name", pid, None, own or name)
            name = name or own or (f"thread {tid}" if kind == _THREAD else "")
        if _PARENT in numbers:
            self._parents[uuid] = numbers[_PARENT]
        self._names[uuid] = name
        self._tracks.rename("thread_name", self.process(uuid), uuid, name)

    def process(self, uuid: int) -> int:
        """The process a track belongs to, 0 when nobody says."""
        for _ in range(_DEPTH):
            if uuid in self._processes:
                return self._processes[uuid]
            if uuid not in self._parents:
                break
            uuid = self._parents[uuid]
        return 0

    def serves(self, uuid: int) -> bool:
        """Whether an export of ours put requests on a track."""
        return is_requests(self._tracks.process_name(self.process(uuid)))

    def name(self, uuid: int) -> str:
        """The name of a track, "" when it has none."""
        return self._names.get(uuid, "")

    def code(self, uuid: int) -> int:
        """The track's code in `tracks`."""
        return self._tracks[(self.process(uuid), uuid)]


def _text(raw: bytes | None) -> str:
    return (raw or b"")[:4096].decode("utf-8", "replace")
