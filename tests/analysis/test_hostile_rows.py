"""Data from broken or malicious producers: every number stays bounded, finite or absent, and the window goes on."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tracerows import MS, S, batch_of

from fusetui.analysis.columns import MAX_WORDS, OTHERS, Reader, Words
from fusetui.analysis.frame import Context, snapshot_of
from fusetui.analysis.openwork import LIMIT, OpenWork
from fusetui.analysis.slots import Grid
from fusetui.analysis.snapshot import Snapshot
from fusetui.analysis.summary import summarise_snapshot
from fusetui.analysis.window import Window
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import SCHEMA, build_batch
from fusetui.telemetry.source import SourceHealth

CONTEXT = Context(1, 0.0, Header(), SourceHealth("test", "live"), None, 0, "", 0.0)

times = st.one_of(
    st.none(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.integers(-1000, 1000),
    st.sampled_from([0, -1, 10**18, -(10**18), (1 << 61), (1 << 61) + 1, (1 << 63) - 1, -(1 << 63)]),
)
row = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["execution", "request", "counter", "mark", "surprise"]),
        "name": st.sampled_from(["", "k", "[/]", "名", "recompile"]),
        "enqueue_ns": times,
        "start_ns": times,
        "end_ns": times,
        "launch_ns": times,
        "node": st.one_of(st.none(), st.integers(-(1 << 31), (1 << 31) - 1)),
        "host": st.sampled_from([None, "h1", "h2"]),
        "device": st.one_of(st.none(), st.integers(-(1 << 31), (1 << 31) - 1)),
        "core": st.one_of(st.none(), st.integers(-(1 << 31), (1 << 31) - 1), st.integers(0, 3)),
        "stream": st.sampled_from([None, "", "s1", "s2"]),
        "request": st.one_of(st.none(), st.integers(-(1 << 63), (1 << 63) - 1)),
        "group": st.one_of(st.none(), st.integers(-(1 << 31), (1 << 31) - 1)),
        "mapping": st.sampled_from([None, "planned", "adapted", "fallback", "?"]),
        "plan": st.sampled_from([None, "", "p"]),
        "shape": st.sampled_from([None, "", "m=0", "m=16 k=4", "m=32 k=4", "8x0", "9" * 40, "=", "m="]),
        "batch": st.one_of(st.none(), st.integers(-(1 << 31), (1 << 31) - 1)),
        "unit": st.sampled_from([None, "ns", "s", "W"]),
        "value": st.one_of(st.none(), st.floats()),
    }
)


def window_of(**options: Any) -> Window:
    return Window(Grid.of_window(S), memory_bytes=32 << 20, **options)


def look(window: Window, now_ns: int) -> Snapshot:
    found = snapshot_of(window, now_ns, CONTEXT)
    json.dumps(summarise_snapshot(found), allow_nan=False)
    return found


@settings(max_examples=60, phases=[Phase.explicit, Phase.generate])
@given(
    st.lists(st.lists(row, min_size=1, max_size=6), max_size=5),
    st.one_of(st.none(), st.integers(-(10**19) // 8, 10**19 // 8)),
    st.sampled_from([0, 100_000]),
)
def test_any_rows_give_a_snapshot(batches: list[list[dict[str, Any]]], now: int | None, exact_rows: int) -> None:
    window = window_of(exact_rows=exact_rows)
    rows = 0
    for batch in batches:
        window.keep_raw(batch_of(batch))
        window.add(batch_of(batch), now)
        rows += len(batch)
    found = look(window, now if now is not None else window.newest_ns or 0)
    assert found.rows_by_slot.sum() + found.late_rows + found.early_rows <= rows
    assert found.launch.joined + found.launch.orphans == found.launch.total == found.executions
    for tail in (found.latency, found.queue_wait, found.service, *(stream.wait for stream in found.streams)):
        values = [v for v in (tail.p50_ns, tail.p95_ns, tail.p99_ns, tail.max_ns) if v is not None]
        assert all(value >= 0 for value in values)
        assert values[:-1] == sorted(values[:-1])
    share = found.cores.busy_share[~np.isnan(found.cores.busy_share)]
    assert ((share >= 0) & (share <= 1)).all()


@pytest.mark.parametrize("devices", [0, 1, 64])
def test_devices_and_their_cores(devices: int) -> None:
    rng = np.random.default_rng(0)
    n = max(devices * 256, 1)
    end = np.sort(rng.integers(1, 100 * MS, n))
    cores: dict[str, Any] = {}
    if devices:
        at = rng.permutation(n)
        cores = {"device": (at // 256).astype(np.int32), "core": (at % 256).astype(np.int32)}
    window = window_of()
    window.add(build_batch({"kind": "execution", "name": "k", "start_ns": end - 1, "end_ns": end, **cores}), 100 * MS)
    found = look(window, 100 * MS)
    assert found.cores.level == ("core" if devices else "host")
    assert len(found.cores.labels) == n
    assert found.cores.labels[-1] == (f"{devices - 1}/255" if devices else "host")
    assert found.cores.busy_ns.sum() == n
    assert found.cores.imbalance.lambda_ == (0.0 if devices else None)
    assert found.notes == ()


def test_more_cores_than_are_kept_share_one_row() -> None:
    n = 64 * 256 + 1000
    core = np.arange(n, dtype=np.int32)
    window = window_of()
    window.add(
        build_batch({"kind": "execution", "name": "k", "start_ns": core + 0, "end_ns": core + 1, "core": core}), n
    )
    found = look(window, n)
    assert (len(found.cores.labels), found.cores.labels[-1]) == (64 * 256 + 1, OTHERS)
    assert found.cores.executions[-1] == 1000
    assert found.executions == n
    assert found.notes == ("more than 16384 cores: the rest is (others)",)


def test_more_streams_than_are_kept_share_one_row() -> None:
    window = window_of()
    names = pa.array([f"s{i:04}" for i in range(3000)])
    end = np.arange(1, 3001)
    window.add(
        build_batch({"kind": "execution", "name": "k", "start_ns": end - 1, "end_ns": end, "stream": names}), 3000
    )
    found = look(window, 3000)
    kept = len(found.streams) - 1
    assert 4 <= kept < 256
    assert found.streams[0].name == OTHERS
    assert found.streams[0].executions == 3000 - kept
    assert sum(row.executions for row in found.streams) == 3000
    assert found.notes[0].startswith(f"more than {kept} streams")


def test_a_million_names_are_bounded() -> None:
    words = Words()
    for at in range(0, 1_000_000, 100_000):
        names = pa.array([f"n{i}" for i in range(at, at + 100_000)]).dictionary_encode()
        ids = words.ids(names)
    assert len(words.words) == MAX_WORDS
    assert words.overflowed
    assert (ids == 0).all()


def test_time_jumps_leave_the_window_usable() -> None:
    window = window_of()
    now = 0
    for now in (0, 10**18, 10**18 + 5, 2 * 10**18):
        window.add(batch_of([{"start_ns": now, "end_ns": now, "stream": "a", "core": 1}]), now)
    found = look(window, now)
    assert (found.executions, found.late_rows) == (1, 0)
    assert len(found.slot_start_ns) == 100


def test_only_required_columns() -> None:
    batch = batch_of([{"start_ns": 0, "end_ns": 5}]).select(["kind", "name", "start_ns", "end_ns"])
    window = window_of()
    window.add(batch, 5)
    found = look(window, 5)
    assert (found.executions, found.launch.orphans, found.service.max_ns) == (1, 1, 5)
    assert found.missing_columns == set(SCHEMA.names) - {"kind", "name", "start_ns", "end_ns"}
    assert found.launch.exposed_ns is None
    assert found.queue_wait.n == 0


def test_open_rows_are_bounded() -> None:
    open_work = OpenWork()
    n = LIMIT + 500
    reader = Reader()
    open_work.update(
        reader.read(build_batch({"kind": "request", "name": "r", "enqueue_ns": np.arange(n), "request": np.arange(n)}))
    )
    assert (len(open_work), open_work.forgotten, int(open_work.enqueue.min())) == (LIMIT, 500, 500)


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from(["execution", "request"]), st.integers(0, 3), st.sampled_from("ab"), st.booleans()),
        max_size=30,
    ),
    st.integers(1, 7),
)
def test_open_work_is_the_last_row_of_each_key(rows: list[tuple[str, int, str, bool]], size: int) -> None:
    open_work, reader = OpenWork(), Reader()
    made = [
        {
            "kind": kind,
            "request": request,
            "stream": stream,
            "enqueue_ns": at,
            "start_ns": at,
            "end_ns": at if ended else None,
        }
        for at, (kind, request, stream, ended) in enumerate(rows)
    ]
    for at in range(0, len(made), size):
        open_work.update(reader.read(batch_of(made[at : at + size])))
    last = {(r["kind"], r["request"], r["stream"]): r for r in made}
    expected = sorted(r["enqueue_ns"] for r in last.values() if r["end_ns"] is None)
    assert sorted(open_work.enqueue.tolist()) == expected
