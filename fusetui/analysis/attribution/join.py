"""Which executions served which request, and which requests ran together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusetui.analysis.arrays import Ints
from fusetui.analysis.attribution.ids import ids_of
from fusetui.analysis.columns import NULL, Columns
from fusetui.analysis.work import Work


@dataclass(frozen=True, slots=True)
class Joined:
    """owner [executions]: item each served by (host, request), -1 none; leader [items]: see `leaders`."""

    owner: Ints
    leader: Ints


def join(items: Work, ran: Work) -> Joined:
    """Executions to the items they are or served."""
    if items is ran:
        every = np.arange(len(ran))
        return Joined(every, every)
    owner = owners(items.rows, ran.rows)
    return Joined(owner, leaders(items.rows, owner))


def owners(asked: Columns, ran: Columns) -> Ints:
    """(executions,) the newest request with the (host, request) of each, -1 without any."""
    n = len(asked)
    request = np.concatenate([asked.request, np.where(ran.request == NULL, asked.request[0], ran.request)])
    host = np.concatenate([asked.host, ran.host]).astype(np.int64)
    ids = ids_of(request) * (int(host.max()) + 2) + host + 1
    order = np.argsort(ids[:n], kind="stable")
    sorted_ids = ids[:n][order]
    last = np.searchsorted(sorted_ids, ids[n:], side="right") - 1
    known = np.maximum(last, 0)
    hit = (last >= 0) & (sorted_ids[known] == ids[n:]) & (ran.request != NULL)
    return np.where(hit, order[known], -1)


def leaders(asked: Columns, owner: Ints) -> Ints:
    """(requests,) the one that tells of each: itself, or one that ran with it and has executions; -1 none.

    Requests batched together start and end at the same time on the same core of the same stream, and say so in
    `batch`; their executions carry the number of one of them.
    """
    n = len(asked)
    own = np.zeros(n, np.bool_)
    own[owner[owner >= 0]] = True
    leader = np.where(own, np.arange(n), -1)
    together = (asked.batch > 1) & (asked.start != NULL)
    if not together.any() or own[together].all():
        return leader
    rows = np.flatnonzero(together)
    keys = (asked.end[rows], asked.start[rows], asked.place[rows], asked.stream[rows])
    order = np.lexsort((~own[rows], *keys))  # who has executions comes first
    new = np.ones(len(rows), np.bool_)
    new[1:] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
    head = rows[order][np.maximum.accumulate(np.where(new, np.arange(len(rows)), 0))]
    found = np.where(own[head], head, -1)
    leader[rows[order]] = np.where(own[rows[order]], rows[order], found)
    return leader
