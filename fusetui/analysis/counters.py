"""Counter series over the window: mean per slot, largest and latest value."""

from __future__ import annotations

import numpy as np

from fusetui.analysis.arrays import Ints
from fusetui.analysis.columns import COUNTER, NULL, OTHERS, Columns, Reader
from fusetui.analysis.counters_stale import stale_of
from fusetui.analysis.keys import Keys
from fusetui.analysis.snapshot import CounterRow

MAX_SERIES = 512


class Counters:
    """Counter readings per series (name, host, device, unit) and ring slot; at most MAX_SERIES series.

    Later series are not kept: readings of many things put together would mean nothing.
    """

    def __init__(self, slots: int) -> None:
        self._keys = Keys(MAX_SERIES)
        self._n = np.zeros((MAX_SERIES + 1, slots), np.int64)
        self._sum = np.zeros((MAX_SERIES + 1, slots), np.float64)
        self._max = np.full((MAX_SERIES + 1, slots), -np.inf)
        self._last = np.full(MAX_SERIES + 1, np.nan)
        self._last_ns = np.full(MAX_SERIES + 1, NULL, np.int64)

    @property
    def overflowed(self) -> bool:
        """More series than are kept."""
        return self._keys.overflowed

    def add(self, rows: Columns, ring: Ints) -> None:
        """Take in the counter rows; ring: ring slot per row (n,). Readings that are not finite are left out."""
        chosen = np.flatnonzero((rows.kind == COUNTER) & np.isfinite(rows.value))
        if chosen.size == 0:
            return
        series = self._keys.ids(rows.name[chosen], rows.host[chosen], rows.device[chosen], rows.unit[chosen])
        slot, value, event = ring[chosen], rows.value[chosen], rows.event[chosen]
        np.add.at(self._n, (series, slot), 1)
        np.add.at(self._sum, (series, slot), value)
        np.maximum.at(self._max, (series, slot), value)
        order = np.lexsort((event, series))
        newest = order[np.append(series[order][1:] != series[order][:-1], True)]
        newest = newest[event[newest] >= self._last_ns[series[newest]]]
        self._last[series[newest]], self._last_ns[series[newest]] = value[newest], event[newest]

    def clear(self, slots: Ints) -> None:
        """Forget some ring slots."""
        used = len(self._keys.keys) + 1
        self._n[:used, slots] = 0
        self._sum[:used, slots] = 0.0
        self._max[:used, slots] = -np.inf

    def rows(self, reader: Reader, order: Ints, from_ns: int) -> tuple[CounterRow, ...]:
        """The series with a reading in the window, by name and device; order: ring slots in time order."""
        used = len(self._keys.keys)
        seen = self._n[:used].any(axis=1) & (self._last_ns[:used] >= from_ns)
        shown = np.flatnonzero(seen)
        cells = np.ix_(shown, order)
        n = self._n[cells]
        with np.errstate(invalid="ignore", over="ignore"):
            means = np.where(n > 0, self._sum[cells] / np.maximum(n, 1), np.nan)
        keys = [self._told(reader, at) for at in shown.tolist()]
        stale = stale_of([(name, place) for name, place, _ in keys], n > 0).tolist()
        last, largest = self._last[shown].tolist(), self._max[shown].max(axis=1, initial=-np.inf).tolist()
        found = [
            CounterRow(name, place, unit, last[i], largest[i], means[i], stale[i])
            for i, (name, place, unit) in enumerate(keys)
        ]
        return tuple(sorted(found, key=lambda row: (row.name, row.device)))

    def _told(self, reader: Reader, at: int) -> tuple[str, str, str]:
        """Name, device (with its host, where there are several) and unit of a series."""
        name, host, device, unit = self._keys.keys[at]
        place = reader.hosts.words[host] if host >= 0 and len(reader.hosts.words) > 2 else ""
        where = f"{place}:{device}" if place and device >= 0 else place or (str(device) if device >= 0 else "")
        return (
            reader.names.words[name] if name >= 0 else OTHERS, where, reader.units.words[unit] if unit >= 0 else ""
        )  # fmt: skip
