"""Replay: rows come exactly once, in time, whatever is steered."""

import numpy as np
import pyarrow as pa
import pytest

from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.eventtime import event_time_ns
from fusetui.telemetry.header import Header
from fusetui.telemetry.replay import Replay
from fusetui.telemetry.schema import build_batch
from fusetui.telemetry.source import BatchIndex


class ListTrace:
    """A trace in memory; batch numbers in `broken` cannot be read."""

    def __init__(self, times: list[list[int]], broken: frozenset[int] = frozenset()) -> None:
        self.header = Header(source="test")
        self.notes: list[str] = []
        self.complete = True
        self.batches = [
            build_batch({"kind": "execution", "name": "k", "start_ns": np.array(t), "end_ns": np.array(t)})
            for t in times
        ]
        self.broken = broken
        self.reads = 0

    def index(self) -> BatchIndex:
        times = [event_time_ns(b) for b in self.batches]
        return BatchIndex(
            np.array([t.min() for t in times], np.int64),
            np.array([t.max() for t in times], np.int64),
            np.array([len(t) for t in times], np.int64),
        )

    def read(self, number: int) -> pa.RecordBatch:
        self.reads += 1
        if number in self.broken:
            raise TelemetryError(f"batch {number}", "broken")
        return self.batches[number]

    def refresh(self) -> bool:
        return True

    def close(self) -> None:
        pass


class Wall:
    def __init__(self) -> None:
        self.ns = 0

    def __call__(self) -> int:
        return self.ns


def times_of(batches: list[pa.RecordBatch]) -> list[int]:
    return [t for b in batches for t in event_time_ns(b).tolist()]


def drain(replay: Replay) -> list[int]:
    out: list[int] = []
    for _ in range(50):
        out += times_of(list(replay.poll(0.0)))
    return out


def make(times: list[list[int]], **options: object) -> tuple[Replay, Wall]:
    wall = Wall()
    broken = options.pop("broken", frozenset())
    trace = ListTrace(times, broken)  # type: ignore[arg-type]
    return Replay(trace, wall_ns=wall, **{"window_ns": 10**9, **options}), wall  # type: ignore[arg-type]


def test_rows_appear_exactly_once_and_in_time() -> None:
    replay, wall = make([[10, 20, 30], [40, 50], [60]])
    replay.play()
    seen: list[int] = []
    for now in range(0, 61, 5):
        wall.ns = now
        seen += drain(replay)
        assert seen == [t for t in (10, 20, 30, 40, 50, 60) if t <= 10 + now]
    assert replay.state().at_end
    assert replay.health().rows == 6


def test_disordered_rows_are_delayed_not_lost() -> None:
    replay, wall = make([[30, 10, 20], [25, 40]])
    replay.play()
    wall.ns = 20
    assert drain(replay) == [30, 10, 20, 25]
    wall.ns = 30
    assert drain(replay) == [40]


def test_seek_back_starts_a_generation_and_refills_the_window() -> None:
    replay, _ = make([[i * 10 + j for j in range(10)] for i in range(100)], window_ns=25)
    replay.seek_ns(999)
    assert drain(replay)[-1] == 999
    assert replay.generation == 0
    replay.seek_ns(500)
    rows = drain(replay)
    assert replay.generation == 1
    assert rows[-1] == 500
    assert set(range(476, 501)) <= set(rows)
    assert min(rows) >= 470


def test_jump_ahead_skips_batches_that_left_the_window() -> None:
    replay, _ = make([[i * 10 + j for j in range(10)] for i in range(1000)], window_ns=25)
    drain(replay)
    trace = replay._trace
    trace.reads = 0  # type: ignore[attr-defined]
    replay.seek_ns(9_000)
    replay._density._unread.clear()
    rows = times_of(list(replay.poll(0.0)))
    assert rows[-1] == 9_000
    assert min(rows) >= 8_970
    assert trace.reads <= 5  # type: ignore[attr-defined]


def test_step_both_ways_is_exact() -> None:
    replay, _ = make([[i] for i in range(100)], window_ns=10)
    replay.seek_ns(50)
    drain(replay)
    replay.step(7)
    assert replay.state().position_ns == 57
    assert drain(replay) == [51, 52, 53, 54, 55, 56, 57]
    assert replay.now_ns() == 57
    replay.step(-30)
    assert (drain(replay)[-1], replay.now_ns()) == (27, 27)


def test_loop_starts_a_new_generation() -> None:
    replay, wall = make([[0], [50], [100]])
    replay.set_loop(True)
    replay.play()
    wall.ns = 100
    assert drain(replay) == [0, 50, 100]
    wall.ns = 151
    assert drain(replay) == [0, 50]
    assert replay.generation == 1


def test_unreadable_batch_is_a_counted_gap() -> None:
    replay, _ = make([[1], [2], [3]], broken=frozenset({1}))
    replay.seek_ns(3)
    assert drain(replay) == [1, 3]
    assert replay.health().rejected_batches == 1
    assert "broken" in replay.health().last_error


def test_longer_window_is_refilled() -> None:
    replay, _ = make([[i] for i in range(100)], window_ns=5)
    replay.seek_ns(99)
    assert drain(replay) == [95, 96, 97, 98, 99]
    replay.set_window(10)
    assert drain(replay) == list(range(90, 100))


def test_density_is_exact_once_read() -> None:
    replay, _ = make([[0, 1, 2, 3], [2047, 2048]])
    for _ in range(10):
        replay.poll(0.0)
    density = replay.density(2)
    assert density.tolist() == [4, 2]
    assert replay.density(0).shape == (0,)


def test_many_batches_need_no_reading_for_the_density() -> None:
    replay, _ = make([[i * 10, i * 10 + 9] for i in range(200)])
    assert replay._density.next_unread() is None
    assert replay.density(4).tolist() == pytest.approx([100] * 4, abs=2)


def test_empty_trace_is_not_a_time() -> None:
    replay, _ = make([])
    assert replay.now_ns() is None
    assert list(replay.poll(0.0)) == []


def test_fraction_is_clamped_and_nan_refused() -> None:
    replay, _ = make([[0], [1000]])
    replay.seek_fraction(0.5)
    assert replay.state().position_ns == 500
    replay.seek_fraction(7)
    assert replay.state().position_ns == 1000
    with pytest.raises(ValueError):
        replay.seek_fraction(float("nan"))


class ShrinkingTrace(ListTrace):
    """Its index promises one row more per batch than reading gives: impossible rows are dropped on the way in."""

    def index(self) -> BatchIndex:
        index = super().index()
        return BatchIndex(index.first_ns, index.last_ns, index.rows + 1)


def test_rows_dropped_on_reading_do_not_stop_the_replay() -> None:
    replay = Replay(ShrinkingTrace([[1, 2], [3], [4]]), window_ns=10**9, wall_ns=Wall())
    replay.seek_ns(4)
    assert drain(replay) == [1, 2, 3, 4]


class GrowingTrace(ListTrace):
    def __init__(self) -> None:
        super().__init__([[0], [10]])
        self.complete = False

    def grow(self, time_ns: int) -> None:
        self.batches.append(ListTrace([[time_ns]]).batches[0])


def test_follow_stays_at_the_growing_end_until_steered() -> None:
    wall = Wall()
    trace = GrowingTrace()
    replay = Replay(trace, window_ns=10**9, follow=True, wall_ns=wall)
    assert drain(replay) == [0, 10]
    trace.grow(500)
    wall.ns += 10**9
    assert drain(replay) == [500]
    replay.pause()
    trace.grow(900)
    wall.ns += 10**9
    assert drain(replay) == []
    assert replay.state().end_ns == 900
