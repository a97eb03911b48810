"""The tail's time in a live window: worked out anew when rows came, and seldom while time runs."""

from __future__ import annotations

import numpy as np
from tracerows import MS, S, random_batch

from fusetui.analysis.slots import Grid
from fusetui.analysis.window import LIGHT_ROWS, Window


def window(rows: int) -> Window:
    found = Window(Grid.of_span(0, 60 * S))
    found.add(random_batch(np.random.default_rng(1), rows, 50 * S), 50 * S)
    return found


def more(found: Window, at_ns: int) -> None:
    found.add(random_batch(np.random.default_rng(2), 100, at_ns), at_ns)


def test_a_busy_window_tells_it_again_after_a_sixteenth_of_its_length() -> None:
    found = window(LIGHT_ROWS * 2)
    before = found.tail_time(found.interval(50 * S), None, hasty=True)
    assert before is not None
    more(found, 51 * S)
    assert found.tail_time(found.interval(51 * S), None, hasty=True) is before
    again = found.tail_time(found.interval(51 * S), None)
    assert again is not None
    assert again.items > before.items
    more(found, 56 * S)
    assert found.tail_time(found.interval(56 * S), None, hasty=True) is not again


def test_nothing_new_is_not_worked_out_again() -> None:
    found = window(1000)
    before = found.tail_time(found.interval(50 * S), None)
    assert found.tail_time(found.interval(50 * S + MS), None) is before
    assert found.tail_time(found.interval(50 * S), 5 * MS) is not before
    more(found, 51 * S)
    assert found.tail_time(found.interval(51 * S), None, hasty=True) is not before
