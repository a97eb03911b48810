"""The rows a live window keeps, and the tail's time of them: anew when rows came, of many seldom while time runs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from tracerows import MS, S, random_batch

from fusetui.analysis.slots import Grid
from fusetui.analysis.window import MAX_PARTS, TAIL_LIGHT_ROWS, Window


def window(rows: int) -> Window:
    found = Window(Grid.of_span(0, 60 * S))
    found.add(random_batch(np.random.default_rng(1), rows, 50 * S), 50 * S)
    return found


def more(found: Window, at_ns: int) -> None:
    found.add(random_batch(np.random.default_rng(2), 100, at_ns), at_ns)


def test_a_busy_window_tells_it_again_after_a_twelfth_of_its_length() -> None:
    found = window(TAIL_LIGHT_ROWS * 2)
    before = found.tail_time(found.interval(50 * S), None, hasty=True)
    assert before is not None
    more(found, 51 * S)
    assert found.tail_time(found.interval(51 * S), None, hasty=True) is before
    again = found.tail_time(found.interval(51 * S), None)
    assert again is not None
    assert again.items > before.items
    more(found, 56 * S)
    assert found.tail_time(found.interval(56 * S), None, hasty=True) is not again


def test_a_window_that_fills_tells_it_again_once_it_holds_twice_as_much() -> None:
    found = window(TAIL_LIGHT_ROWS + 50)
    before = found.tail_time(found.interval(50 * S), None, hasty=True)
    for i in range(1, 9):
        more(found, 50 * S + i * MS)
        again = found.tail_time(found.interval(50 * S + i * MS), None, hasty=True)
        assert (again is before) == (100 * i < TAIL_LIGHT_ROWS + 50)
        if again is not before:
            break


def test_too_few_items_are_looked_at_again_at_once() -> None:
    found = Window(Grid.of_span(0, 60 * S))
    found.add(random_batch(np.random.default_rng(1), TAIL_LIGHT_ROWS + 1, 50 * S, orphans=1.0), 50 * S)
    assert found.tail_time(found.interval(50 * S), None, hasty=True) is None
    more(found, 50 * S + MS)
    assert found.tail_time(found.interval(50 * S + MS), None, hasty=True) is not None


def test_nothing_new_is_not_worked_out_again() -> None:
    found = window(TAIL_LIGHT_ROWS // 2)
    before = found.tail_time(found.interval(50 * S), None)
    assert found.tail_time(found.interval(50 * S + MS), None) is before
    assert found.tail_time(found.interval(50 * S), 5 * MS) is not before
    more(found, 51 * S)
    assert found.tail_time(found.interval(51 * S), None, hasty=True) is not before


def test_small_batches_are_put_together_and_nothing_is_lost() -> None:
    chance = np.random.default_rng(3)
    batches = [random_batch(chance, 10, (i + 1) * S) for i in range(80)]
    found = Window(Grid.of_span(0, 60 * S))
    for i, batch in enumerate(batches):
        found.add(batch, (i + 1) * S)
    assert len(found._kept) <= MAX_PARTS + 1
    assert found.whole
    at = found.interval(80 * S)
    again = Window(Grid.of_span(0, 60 * S))
    for i in range(0, 80, 20):
        again.add(pa.Table.from_batches(batches[i : i + 20]).combine_chunks().to_batches()[0], (i + 20) * S)
    assert found.numbers(at, across_hosts=False).latency == again.numbers(at, across_hosts=False).latency
