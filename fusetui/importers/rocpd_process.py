"""The tables of one process in a rocpd database as device work, calls and marks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fusetui.importers.devicework import DeviceWork, Ints
from fusetui.importers.rocprof_tables import key_of
from fusetui.importers.rows import Rows
from fusetui.importers.sqlitefile import Database
from fusetui.telemetry.text import safe_text

_EVENT: Final = np.dtype([("id", "i8"), ("stack", "i8"), ("category", "i8")])
_TIME: Final = np.dtype([("id", "i8"), ("value", "i8")])
_TRACK: Final = ("tid", "agent_id", "queue_id", "stream_id")
_MOST: Final = 1 << 16  # agents, tracks, threads, queues


class RocpdProcess:
    """One process; the text of its tables' names after `rocpd_event` is `suffix`, its number in the capture `number`.

    host, version, devices  of the machine, the schema, the devices; "" or nothing where not told
    counted                 values of hardware counters
    """

    def __init__(self, db: Database, suffix: str, number: int, found: DeviceWork) -> None:
        self._db, self._suffix, self._number, self._found = db, suffix, number, found
        self._agents: dict[int, tuple[int, bool]] = {}
        self.devices: dict[str, str] = {}
        facts = dict(self._rows("rocpd_metadata", ("tag", "value")))
        self.version = str(facts.get("schema_version", ""))
        self.host = next((str(name) for (name,) in self._rows("rocpd_info_node", ("hostname",)) if name), "")
        pid = next((pid for (pid,) in self._rows("rocpd_info_process", ("pid",))), number)
        self._prefix, self._thread = f"{pid}/" if number else "", f"thread {pid}/"
        self.counted = sum(n for (n,) in self._count("rocpd_pmc_event"))
        self._take_agents()

    def take(self, memory_bytes: int) -> None:
        """All of it."""
        self._events = self._whole("rocpd_event", _EVENT, ("id", "stack_id", "category_id"), memory_bytes)
        self._times = self._whole("rocpd_timestamp", _TIME, ("id", "value"), memory_bytes)
        self._tracks = {row[0]: row[1:] for row in self._rows("rocpd_track", ("id", *_TRACK))}
        self._take_dispatches()
        self._take_copies()
        self._take_regions()

    def _table(self, name: str) -> str:
        return f"{name}{self._suffix}"

    def _rows(self, table: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
        """A few rows of a table, None in columns that it has not."""
        have = self._db.tables.get(self._table(table), frozenset())
        if columns[0] not in have:
            return []
        picks = ", ".join(f'"{c}"' if c in have else "null" for c in columns)
        return self._db.rows(f'select {picks} from "{self._table(table)}"', limit=_MOST)

    def _count(self, table: str) -> list[tuple[int]]:
        name = self._table(table)
        return self._db.rows(f'select count(*) from "{name}"') if name in self._db.tables else []

    def _whole(self, table: str, dtype: np.dtype[Any], columns: tuple[str, ...], memory_bytes: int) -> Any:
        """A table in order of its first column, as rows of `dtype`."""
        rows = Rows(dtype, memory_bytes)
        for chunk in self._db.chunks(self._table(table), columns, order=columns[0]):
            rows.add(**dict(zip(dtype.names or (), chunk, strict=True)))
        return rows.table()

    def _take_agents(self) -> None:
        columns = ("id", "type", "absolute_index", "product_name", "model_name", "name")
        for number, kind, index, *names in self._rows("rocpd_info_agent", columns):
            device = index if isinstance(index, int) and 0 <= index < 1 << 31 else -1
            if isinstance(number, int):
                self._agents[number] = (device, kind == "GPU")
            if kind == "GPU" and device >= 0:
                self.devices[f"device {device}"] = safe_text(next((str(n) for n in names if n), "GPU"), 200)

    def _chunks(self, table: str, columns: tuple[str, ...]) -> Iterator[tuple[Ints, Ints, Ints, dict[str, Ints]]]:
        """Begin, end and event of rows, and further columns; those that a track has instead come from it."""
        table = self._table(table)
        have = self._db.tables.get(table, frozenset())
        times = ("start", "end") if "start" in have else ("start_id", "end_id")
        wanted = (*times, "event_id", "track_id", *columns)
        for start, end, event, track, *more in self._db.chunks(table, wanted):
            found = dict(zip(columns, more, strict=True))
            if "track_id" in have:
                found |= {name: self._of_track(track, name) for name in columns if name in _TRACK and name not in have}
            if times[0] == "start_id":
                start, end = self._time(start), self._time(end)
            yield start, end, event, found

    def _of_track(self, tracks: Ints, column: str) -> Ints:
        at = _TRACK.index(column)
        different, index = np.unique(tracks, return_inverse=True)
        values = [self._tracks.get(track, (None,) * len(_TRACK))[at] for track in different.tolist()]
        return np.array([v if type(v) is int else -1 for v in values], np.int64)[index]

    def _time(self, ids: Ints) -> Ints:
        return _beside(self._times, "value", ids, absent=-2)

    def _keys(self, events: Ints) -> Ints:
        return key_of(self._number, _beside(self._events, "stack", events, absent=0))

    def _take_dispatches(self) -> None:
        names = self._symbols()
        for start, end, event, more in self._chunks("rocpd_kernel_dispatch", ("agent_id", "queue_id", "kernel_id")):
            self._found.add_work(
                start,
                end,
                correlation=self._keys(event),
                device=self._devices(more["agent_id"]),
                stream=self._streams(more["queue_id"], ""),
                name=self._names(more["kernel_id"], names, "kernel"),
            )

    def _symbols(self) -> dict[int, str]:
        columns = ("id", "display_name", "kernel_name")
        rows = self._rows("rocpd_info_kernel_symbol", columns)
        return {row[0]: str(row[1] or row[2]) for row in rows if type(row[0]) is int and (row[1] or row[2])}

    def _take_copies(self) -> None:
        columns = ("name_id", "dst_agent_id", "src_agent_id", "stream_id")
        for start, end, event, more in self._chunks("rocpd_memory_copy", columns):
            target, source = (
                self._devices(more["dst_agent_id"], gpu=True),
                self._devices(more["src_agent_id"], gpu=True),
            )
            self._found.add_work(
                start,
                end,
                correlation=self._keys(event),
                device=np.where(target >= 0, target, source),
                stream=self._streams(more["stream_id"], "copies "),
                name=self._names(more["name_id"], self._strings(more["name_id"]), "copy"),
            )

    def _take_regions(self) -> None:
        markers = self._marker_categories()
        for start, end, event, more in self._chunks("rocpd_region", ("name_id", "tid")):
            marked = np.isin(_beside(self._events, "category", event, absent=-1), markers)
            name = self._names(more["name_id"], self._strings(more["name_id"]), "call")
            thread = self._found.streams.codes([f"{self._thread}{tid}" for tid in more["tid"].tolist()])
            called = ~marked
            self._found.add_calls(start[called], end[called], correlation=self._keys(event[called]))
            self._found.add_host(start[called], end[called], thread=thread[called], name=name[called])
            if marked.any():
                texts = self._messages(event[marked])
                told = [texts.get(e) for e in event[marked].tolist()]
                own = [
                    self._found.names[text] if text else int(code)
                    for text, code in zip(told, name[marked], strict=True)
                ]
                self._found.add_marks(start[marked], end[marked], name=np.array(own, np.int32), stream=thread[marked])

    def _marker_categories(self) -> list[int]:
        by_name = self._rows("rocpd_info_category", ("id", "name"))
        if not by_name and "string" in self._db.tables.get(self._table("rocpd_string"), ()):
            sql = f"select id, string from \"{self._table('rocpd_string')}\" where string like 'MARKER\\_%' escape '\\'"
            by_name = self._db.rows(sql)
        return [number for number, name in by_name if type(number) is int and str(name).upper().startswith("MARKER")]

    def _messages(self, events: Ints) -> dict[int, str]:
        """What markers say, by event."""
        found: dict[int, str] = {}
        for event, text in self._db.texts(self._table("rocpd_event"), "id", "extdata", events.tolist()).items():
            try:
                told = json.loads(text)
            except (ValueError, RecursionError):
                continue
            if isinstance(told, dict) and isinstance(told.get("message"), str):
                found[event] = told["message"]
        return found

    def _devices(self, agents: Ints, *, gpu: bool = False) -> Ints:
        """Device of each agent, -1 where it is not known or, with `gpu`, no GPU."""
        different, index = np.unique(agents, return_inverse=True)
        known = [self._agents.get(agent, (-1, False)) for agent in different.tolist()]
        return np.array([device if is_gpu or not gpu else -1 for device, is_gpu in known], np.int64)[index]

    def _streams(self, numbers: Ints, what: str) -> npt.NDArray[np.int32]:
        different, index = np.unique(numbers, return_inverse=True)
        codes = [self._found.streams[f"{self._prefix}{what}{n}"] if n >= 0 else -1 for n in different.tolist()]
        return np.array(codes, np.int32)[index]

    def _strings(self, ids: Ints) -> dict[int, str]:
        return self._db.texts(self._table("rocpd_string"), "id", "string", np.unique(ids).tolist())

    def _names(self, ids: Ints, texts: dict[int, str], otherwise: str) -> npt.NDArray[np.int32]:
        different, index = np.unique(ids, return_inverse=True)
        codes = [self._found.names[texts.get(number) or f"{otherwise} {number}"] for number in different.tolist()]
        return np.array(codes, np.int32)[index]


def _beside(table: Any, column: str, ids: Ints, *, absent: int) -> Ints:
    """The value of a column beside each id, shape (rows,); `absent` for ids that are not there."""
    if not len(table):
        return np.full(len(ids), absent, np.int64)
    at = np.minimum(np.searchsorted(table["id"], ids), len(table) - 1)
    return np.where(table["id"][at] == ids, table[column][at], absent).astype(np.int64)
