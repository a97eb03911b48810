"""What an item waited for before it started: its batching gate, and whether another core stood idle meanwhile."""

from __future__ import annotations

from typing import Final

import numpy as np

from fusetui.analysis.arrays import Codes, Ints
from fusetui.analysis.attribution.cores import Cores, busy_edges, idle_between
from fusetui.analysis.columns import NULL, Columns
from fusetui.analysis.mapping_ways import dense, first_of

_MOST_SETS: Final = 16


def gate_of(begin: Ints, wait: Ints, ran: Columns, owner: Ints, leader: Ints) -> Ints:
    """(items,) ns from begin until the first launch call of its work began, at most the wait; 0 where not known.

    Work of its own that was only launched after its start (the last step of a batch it had joined) tells nothing.
    """
    none = np.iinfo(np.int64).max
    ready = np.full(len(begin), none)
    told = np.flatnonzero((owner >= 0) & (ran.enqueue != NULL))
    call = np.where(ran.launch[told] == NULL, 0, ran.launch[told])
    np.minimum.at(ready, owner[told], ran.enqueue[told] - call)
    ready = np.where(leader >= 0, ready[np.maximum(leader, 0)], none)
    return np.where(ready > begin + wait, 0, np.maximum(ready - begin, 0))


def misplaced(from_ns: Ints, to_ns: Ints, stream: Codes, ran_stream: Codes, place: Ints, cores: Cores) -> Ints:
    """(items,) ns between from and to in which a core that their stream ran on stood idle.

    ran_stream, place (executions,); 0 for streams that ran on one core only, or when more than 16 sets of cores differ.
    """
    order = cores.tiles.order
    core = place[order][cores.tiles.new > 0]
    begin, end = busy_edges(cores)
    found = np.zeros(len(from_ns), np.int64)
    sets: dict[tuple[int, ...], list[int]] = {}
    one = first_of(dense(ran_stream, place))
    on_stream, on_place = ran_stream[one], place[one]
    for key in np.unique(on_stream).tolist():
        sets.setdefault(tuple(sorted(on_place[on_stream == key].tolist())), []).append(key)
    for where, streams in list(sets.items())[:_MOST_SETS]:
        mine = np.flatnonzero(np.isin(stream, streams) & (to_ns > from_ns))
        if len(where) < 2 or not mine.size:
            continue
        on = np.isin(core, where)
        found[mine] = idle_between(begin[on], end[on], len(where), from_ns[mine], to_ns[mine])
    return found
