"""The bounded queue and the joining of small batches."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest
from arrow_producers import batch, until

from fusetui.sources.arrow_merge import merge
from fusetui.sources.arrow_queue import Arrived, BatchQueue
from fusetui.telemetry.schema import SCHEMA


def item(rows: int, size: int, first: int = 0, origin: str = "") -> Arrived:
    return Arrived(batch(rows, first=first, at_ns=10**9), size, origin)


def test_drop_counts_whole_batches() -> None:
    queue = BatchQueue(100, "drop")
    for number in range(5):
        assert queue.put(item(3, 40, number))
    assert (queue.batches, queue.rows) == (2, 6)
    assert (queue.dropped_batches, queue.dropped_rows) == (3, 9)
    assert [a.batch.column("request")[0].as_py() for a in queue.take(0, 0, 1000)] == [0, 1]
    assert queue.put(item(1, 40))


def test_block_waits_for_room_and_loses_nothing() -> None:
    queue = BatchQueue(100, "block")
    sender = threading.Thread(target=lambda: [queue.put(item(1, 60, n)) for n in range(20)])
    sender.start()
    got: list[int] = []
    while len(got) < 20:
        got += [a.batch.column("request")[0].as_py() for a in queue.take(2.0, 0.5, 1000)]
    sender.join(5)
    assert got == list(range(20))
    assert queue.dropped_batches == 0


def test_an_empty_queue_takes_a_batch_over_the_limit() -> None:
    queue = BatchQueue(10, "drop")
    assert queue.put(item(1, 1000))
    assert queue.put(item(1, 1))
    assert (queue.batches, queue.dropped_batches) == (1, 1)


def test_take_stops_near_the_row_limit() -> None:
    queue = BatchQueue(1 << 20, "block")
    for number in range(4):
        queue.put(item(400, 1, number))
    assert [a.batch.num_rows for a in queue.take(0, 0, 1000)] == [400, 400]
    assert [a.batch.num_rows for a in queue.take(0, 0, 100)] == [400]
    assert len(queue) == 1


def test_close_wakes_a_blocked_sender_and_a_waiting_taker() -> None:
    full = BatchQueue(10, "block")
    full.put(item(1, 10))
    results: list[object] = []
    sender = threading.Thread(target=lambda: results.append(full.put(item(1, 10))))
    sender.start()
    empty = BatchQueue(10, "block")
    taker = threading.Thread(target=lambda: results.append(empty.take(60, 60, 1)))
    taker.start()
    full.close()
    empty.close()
    sender.join(5)
    taker.join(5)
    assert not sender.is_alive()
    assert not taker.is_alive()
    until(lambda: len(results) == 2)
    assert False in results
    assert [] in results


def test_small_batches_become_one_with_a_joint_dictionary() -> None:
    items = [Arrived(batch(2, first=i, at_ns=10**9, name=[f"k{i}", "gemm"]), 1, "") for i in range(50)]
    (merged,) = merge(items, name_hosts=False)
    merged.validate(full=True)
    assert merged.schema == SCHEMA
    assert merged.column("name").to_pylist() == [word for i in range(50) for word in (f"k{i}", "gemm")]
    assert len(merged.column("name").dictionary) == 51


def test_order_is_kept_around_large_batches() -> None:
    items = [item(1, 1, 0), item(1, 1, 1), item(20_000, 1, 2), item(0, 1), item(1, 1, 30_000)]
    merged = merge(items, name_hosts=False)
    assert [b.num_rows for b in merged] == [2, 20_000, 1]
    assert pa.Table.from_batches(merged).column("request").to_pylist() == [0, 1, *range(2, 20_002), 30_000]


def test_too_many_words_for_a_joint_dictionary_stay_apart() -> None:
    items = [Arrived(batch(1, at_ns=1, unit=f"u{i}", value=[1.0]), 1, "") for i in range(200)]
    merged = merge(items, name_hosts=False)
    assert pa.Table.from_batches(merged).column("unit").to_pylist() == [f"u{i}" for i in range(200)]


@pytest.mark.parametrize("named", [True, False])
def test_hosts_are_filled_only_where_none_is_named(named: bool) -> None:
    items = [
        Arrived(batch(2, at_ns=1), 1, "alpha"),
        Arrived(batch(2, at_ns=1, host=["x", None]), 1, "beta"),
        Arrived(batch(1, at_ns=1), 1, ""),
    ]
    hosts = pa.Table.from_batches(merge(items, name_hosts=named)).column("host").to_pylist()
    assert hosts == ["alpha" if named else None] * 2 + ["x", None, None]
