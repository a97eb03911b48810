"""Rows sorted and joined on disk are those that numpy sorts and joins in memory."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusetui.importers import sortedrows
from fusetui.importers.kineto_batches import ABSENT
from fusetui.importers.kineto_join import graph_nodes, launch_of, outermost
from fusetui.importers.launchjoin import LaunchJoin
from fusetui.importers.nesting import outermost as outermost_on_disk
from fusetui.importers.rows import Rows
from fusetui.importers.sortedrows import SortedRows, Upto, whole_groups

_ROW = np.dtype([("a", "i8"), ("b", "i4"), ("row", "i4")])
_TINY = 3 * 5 * _ROW.itemsize  # holds five rows before it goes to the file

_PAIRS = st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 3)), max_size=200)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows take the way that otherwise only millions do: many runs, merged in steps, blocks of some rows."""
    monkeypatch.setattr(sortedrows, "_BLOCK_ROWS", 8)
    monkeypatch.setattr(sortedrows, "_FEW_RUNS", 3)
    monkeypatch.setattr(sortedrows, "_PIECE_BYTES", 40)
    monkeypatch.setattr(sortedrows, "_LARGE_PIECE_BYTES", 60)


def _filled(pairs: list[tuple[int, int]], keys: tuple[str, ...], memory_bytes: int) -> SortedRows:
    rows = SortedRows(_ROW, keys, memory_bytes)
    for i in range(0, len(pairs), 3):
        part = np.array(pairs[i : i + 3], np.int64)
        rows.add(a=part[:, 0], b=part[:, 1], row=np.arange(i, i + len(part)))
    return rows


def _all(blocks: Any) -> np.ndarray[Any, Any]:
    return np.concatenate([np.empty(0, _ROW), *blocks])


@pytest.mark.parametrize("memory_bytes", [_TINY, 1 << 20])
@pytest.mark.parametrize("keys", [("a",), ("a", "b"), ("b",)])
@given(pairs=_PAIRS)
@settings(deadline=None)
def test_rows_come_back_in_order_and_equal_ones_as_they_were_added(
    keys: tuple[str, ...], memory_bytes: int, pairs: list[tuple[int, int]]
) -> None:
    rows = _filled(pairs, keys, memory_bytes)
    expected = sorted(range(len(pairs)), key=lambda i: [pairs[i]["ab".index(key)] for key in keys])
    assert len(rows) == len(pairs)
    for _ in range(2):  # it can be walked again
        found = _all(rows.blocks())
        assert found["row"].tolist() == expected
        assert list(zip(found["a"].tolist(), found["b"].tolist(), strict=True)) == [pairs[i] for i in expected]


@given(pairs=_PAIRS)
@settings(deadline=None)
def test_groups_are_never_cut(pairs: list[tuple[int, int]]) -> None:
    blocks = list(whole_groups(_filled(pairs, ("a",), _TINY)))
    assert _all(blocks)["row"].tolist() == sorted(range(len(pairs)), key=lambda i: pairs[i][0])
    values = [set(block["a"].tolist()) for block in blocks]
    assert sum(map(len, values)) == len(set().union(*values))


@given(pairs=_PAIRS, keys=st.lists(st.integers(-7, 7), unique=True, min_size=1).map(sorted))
@settings(deadline=None)
def test_only_the_rows_asked_for_are_handed_out(pairs: list[tuple[int, int]], keys: list[int]) -> None:
    found = Upto(_filled(pairs, ("a",), _TINY))
    half = len(keys) // 2
    parts = [found.rows(np.array(part)) for part in (keys[:half], keys[half:]) if part]
    expected = sorted((i for i in range(len(pairs)) if pairs[i][0] in keys), key=lambda i: pairs[i][0])
    assert _all(parts)["row"].tolist() == expected


_TIME = st.integers(0, 40)
_WORK = st.lists(
    st.tuples(_TIME, st.integers(0, 9), st.integers(0, 6), st.integers(0, 1), st.integers(-1, 1)),
    min_size=1,
    max_size=80,
)
_CALLS = st.lists(st.tuples(_TIME, st.integers(0, 5), st.integers(0, 8)), max_size=80)


def _table(**columns: Any) -> np.ndarray[Any, Any]:
    table = np.empty(len(columns["start"]), [(name, "i8") for name in columns])
    for name, values in columns.items():
        table[name] = values
    return table


def _overlaps(work: list[tuple[int, int, int, int, int]]) -> int:
    """Rows that start before the one before them on their device and stream ended; a negative stream is none."""
    spans = sorted((device, stream, start, start + took) for start, took, _, device, stream in work if stream >= 0)
    return sum(a[:2] == b[:2] and b[2] < a[3] for a, b in pairwise(spans))


@given(work=_WORK, calls=_CALLS)
@settings(deadline=None)
def test_work_is_joined_as_in_memory(
    work: list[tuple[int, int, int, int, int]], calls: list[tuple[int, int, int]]
) -> None:
    start, took, key, device, stream = np.array(work, np.int64).T
    called, cost, of = np.array(calls, np.int64).reshape(-1, 3).T
    join = LaunchJoin([("plan", "i4")], 1200)
    for i in range(0, len(work), 7):
        part = slice(i, i + 7)
        names = np.arange(len(work))[part]
        join.add_work(start[part], (start + took)[part], correlation=key[part], device=device[part],
                      stream=stream[part], name=names, plan=names + 3)  # fmt: skip
    join.add_calls(called, called + cost, of)
    join.join()
    both = _table(start=start, end=start + took, correlation=key, device=device, stream=stream)
    launches = _table(start=called, end=called + cost, correlation=of)
    launch = launch_of(both, launches)
    nodes = graph_nodes(both, launch)
    hit = launch >= 0
    assert (join.pieces, join.calls, join.keyed) == (len(work), len(calls), int((key != 0).sum()))
    assert join.together == hit.sum()
    assert join.wrong == (start[hit] < called[launch[hit]]).sum()
    assert (
        join.clipped == ((start < np.where(hit, (called + cost)[launch] if len(calls) else 0, -1)) & (nodes <= 0)).sum()
    )
    assert join.in_graphs == (nodes >= 0).sum()
    assert join.overlapping == _overlaps(work)
    launching = called[np.isin(of, key[key != 0])]
    assert join.first_call == (launching.min() if len(launching) else None)
    ends, blocks = zip(*join.section(100, np.empty(0, [("start", "i8"), ("end", "i8"), ("number", "i8")])).blocks(),
                       strict=True)  # fmt: skip
    found = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    order = np.argsort(start + took, kind="stable")
    assert np.concatenate(ends).tolist() == found["end_ns"].tolist() == (start + took + 100)[order].tolist()
    assert found["name"].tolist() == order.tolist()
    assert found["node"].tolist() == np.where(nodes < 0, ABSENT, nodes)[order].tolist()
    returned = np.append(called + cost + 100, ABSENT)[launch]
    assert found["enqueue_ns"].tolist() == returned[order].tolist()
    assert found["launch_ns"].tolist() == np.append(cost, ABSENT)[launch][order].tolist()


@given(ranges=st.lists(st.tuples(_TIME, st.integers(0, 9), st.integers(0, 2)), min_size=1, max_size=80))
@settings(deadline=None)
def test_ranges_in_others_are_left_out_as_in_memory(ranges: list[tuple[int, int, int]]) -> None:
    start, took, thread = np.array(ranges, np.int64).T
    rows = Rows(np.dtype([("start", "i8"), ("end", "i8"), ("thread", "i4")]), 300)
    for i in range(0, len(ranges), 7):
        part = slice(i, i + 7)
        rows.add(start=start[part], end=(start + took)[part], thread=thread[part])
    found = np.concatenate(list(outermost_on_disk(rows, "thread", 800).blocks()))
    keep = np.flatnonzero(outermost(rows.table()))
    assert found["row"].tolist() == keep[np.argsort((start + took)[keep], kind="stable")].tolist()


def test_a_join_spills(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests above would prove nothing if nothing went to a file."""
    written: list[int] = []
    write = SortedRows._write

    def count(self: SortedRows, rows: sortedrows.Table) -> None:
        written.append(len(rows))
        write(self, rows)

    monkeypatch.setattr(SortedRows, "_write", count)
    join = LaunchJoin((), 1200)
    for i in range(30):
        at = np.arange(4) + 4 * i
        join.add_work(at, at + 1, correlation=at + 1, device=0, stream=np.zeros(4, np.int64), name=at)
    join.join()
    assert sum(written) >= 120
