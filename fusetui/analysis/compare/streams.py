"""Streams before and after."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusetui.analysis.arrays import Bools
from fusetui.analysis.expression.rows import Scope
from fusetui.analysis.intervals import Ratio, quantile_ratio
from fusetui.analysis.naming import stream_name


@dataclass(frozen=True, slots=True)
class StreamMove:
    """One stream: executions on each side, and p95 of queue wait and of service."""

    name: str
    executions: tuple[int, int]
    wait: Ratio
    service: Ratio


def streams_of(before: Scope, after: Scope) -> list[StreamMove]:
    """Streams by name, the most executions first."""
    chosen = [_by_name(scope) for scope in (before, after)]
    found = []
    for name in sorted(chosen[0].keys() | chosen[1].keys()):
        rows = []
        for scope, names in zip((before, after), chosen, strict=True):
            ran = scope.executions
            mine = names.get(name, np.zeros(len(ran), np.bool_))
            rows.append((int(mine.sum()), ran.wait[mine & ran.waited], ran.service[mine]))
        (n_old, wait_old, service_old), (n_new, wait_new, service_new) = rows
        wait, service = quantile_ratio(wait_old, wait_new, 0.95), quantile_ratio(service_old, service_new, 0.95)
        found.append(StreamMove(name, (n_old, n_new), wait, service))
    return sorted(found, key=lambda row: (-sum(row.executions), row.name))


def _by_name(scope: Scope) -> dict[str, Bools]:
    stream = scope.executions.rows.stream
    found: dict[str, Bools] = {}
    for key in np.unique(stream).tolist():
        name = stream_name(scope.reader, key, with_host=False)
        mine = stream == key
        found[name] = found[name] | mine if name in found else mine
    return found
