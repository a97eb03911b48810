"""rocpd databases: joined on the internal correlation id, in each layout that the schema has had."""

from __future__ import annotations

import gzip
import random
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from import_checks import MEMORY, fuzzed, kind_of, opened

from fusetui.importers import rocpd
from fusetui.importers.open import importers, open_capture
from fusetui.telemetry.errors import TelemetryError

UUID = "_0000f0f5_18d4"
EVENTS = [
    # id, category, stack (the internal correlation id), correlation (the program's)
    (1, 1, 100, 7), (2, 1, 101, 7), (3, 2, 100, 7), (4, 2, 101, 7), (5, 2, 101, 7), (6, 2, 900, 7), (7, 3, 102, 7),
    (8, 1, 102, 7), (9, 4, 103, 7),
]  # fmt: skip
STRINGS = [
    (1, "HIP_RUNTIME_API"), (2, "KERNEL_DISPATCH"), (3, "MEMORY_COPY"), (4, "MARKER_CORE_RANGE_API"),
    (5, "hipLaunchKernel"), (6, "hipGraphLaunch"), (7, "MEMORY_COPY_HOST_TO_DEVICE"), (8, "hipMemcpyAsync"),
    (9, "roctxThreadRangeA"),
]  # fmt: skip
# begin, end, kernel, event: one launch, a graph of two, one without its call
DISPATCHES = [(2000, 2500, 1, 3), (4000, 4100, 1, 4), (4200, 4300, 2, 5), (5000, 5100, 2, 6)]
REGIONS = [(1000, 1400, 5, 1), (3000, 3300, 6, 2), (5500, 5600, 8, 8), (900, 6500, 9, 9)]


def tables(layout: str, uuid: str = UUID) -> dict[str, tuple[str, list[tuple[Any, ...]]]]:
    """layout: "3" as versions 3 have it, "4.0" with times and places in tables of their own, "4.1" with tracks only."""
    found: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
        "rocpd_metadata": ("id INTEGER PRIMARY KEY, tag TEXT, value TEXT", [(1, "schema_version", layout)]),
        "rocpd_string": ("id INTEGER PRIMARY KEY, guid TEXT, string TEXT", [(n, "g", text) for n, text in STRINGS]),
        "rocpd_info_node": ("id INTEGER PRIMARY KEY, guid TEXT, hostname TEXT", [(1, "g", "box")]),
        "rocpd_info_process": ("id INTEGER PRIMARY KEY, guid TEXT, pid INTEGER", [(41, "g", 41)]),
        "rocpd_info_agent": (
            "id INTEGER PRIMARY KEY, guid TEXT, type TEXT, absolute_index INTEGER, name TEXT, product_name TEXT",
            [(0, "g", "CPU", 0, "cpu", "cpu"), (4, "g", "GPU", 4, "gfx942", "Instinct")],
        ),
        "rocpd_info_kernel_symbol": (
            "id INTEGER PRIMARY KEY, guid TEXT, kernel_name TEXT, display_name TEXT",
            [(1, "g", "_Z4gemmv.kd", "gemm()"), (2, "g", "add.kd", None)],
        ),
        "rocpd_event": (
            "id INTEGER PRIMARY KEY, guid TEXT, category_id INTEGER, stack_id INTEGER, correlation_id INTEGER,"
            " extdata JSONB",
            [(n, "g", c, s, x, '{"message": "step 1"}' if c == 4 else "{}") for n, c, s, x in EVENTS],
        ),
        "rocpd_pmc_event": ("id INTEGER PRIMARY KEY, event_id INTEGER, value REAL", [(1, 3, 5.0), (2, 3, 6.0)]),
    }
    place = "nid INTEGER, pid INTEGER, tid INTEGER"
    spans = [*DISPATCHES, *REGIONS, (5700, 5900, 7, 7)]
    if layout == "3":
        found |= {
            "rocpd_kernel_dispatch": (
                f"id INTEGER PRIMARY KEY, {place}, agent_id INTEGER, kernel_id INTEGER, queue_id INTEGER,"
                " stream_id INTEGER, start BIGINT, end BIGINT, event_id INTEGER",
                [(n, 1, 41, 9, 4, kernel, 2, 6, b, e, event) for n, (b, e, kernel, event) in enumerate(DISPATCHES)],
            ),
            "rocpd_memory_copy": (
                f"id INTEGER PRIMARY KEY, {place}, start BIGINT, end BIGINT, name_id INTEGER, dst_agent_id INTEGER,"
                " src_agent_id INTEGER, size INTEGER, stream_id INTEGER, event_id INTEGER",
                [(1, 1, 41, 9, 5700, 5900, 7, 4, 0, 64, 6, 7)],
            ),
            "rocpd_region": (
                f"id INTEGER PRIMARY KEY, {place}, start BIGINT, end BIGINT, name_id INTEGER, event_id INTEGER",
                [(n, 1, 41, 9, b, e, name, event) for n, (b, e, name, event) in enumerate(REGIONS)],
            ),
        }
        return {f"{name}{uuid}": table for name, table in found.items()}
    found["rocpd_info_category"] = ("id INTEGER PRIMARY KEY, name TEXT", [(n, text) for n, text in STRINGS[:4]])
    found["rocpd_track"] = (
        f"id INTEGER PRIMARY KEY, {place}, agent_id INTEGER, queue_id INTEGER, stream_id INTEGER",
        [(1, 1, 41, 9, None, None, None), (2, 1, 41, 9, 4, 2, 6)],
    )
    at = {(b, e): number for number, (b, e, _, _) in enumerate(spans)}
    names = "start BIGINT, end BIGINT"
    times: dict[tuple[int, int], tuple[int, int]] = {(b, e): (b, e) for b, e, _, _ in spans}
    if layout == "4.0":
        names = "start_id INTEGER, end_id INTEGER"
        times = {(b, e): (2 * at[b, e] + 1, 2 * at[b, e] + 2) for b, e, _, _ in spans}
        values = [(2 * n + 1 + i, t) for (b, e), n in at.items() for i, t in enumerate((b, e))]
        found["rocpd_timestamp"] = ("id INTEGER PRIMARY KEY, value BIGINT", sorted(values))
    found |= {
        "rocpd_kernel_dispatch": (
            f"id INTEGER PRIMARY KEY, track_id INTEGER, kernel_id INTEGER, {names}, event_id INTEGER",
            [(n, 2, kernel, *times[b, e], event) for n, (b, e, kernel, event) in enumerate(DISPATCHES)],
        ),
        "rocpd_memory_copy": (
            f"id INTEGER PRIMARY KEY, track_id INTEGER, {names}, name_id INTEGER, dst_agent_id INTEGER,"
            " src_agent_id INTEGER, event_id INTEGER",
            [(1, 2, *times[5700, 5900], 7, 4, 0, 7)],
        ),
        "rocpd_region": (
            f"id INTEGER PRIMARY KEY, track_id INTEGER, {names}, name_id INTEGER, event_id INTEGER",
            [(n, 1, *times[b, e], name, event) for n, (b, e, name, event) in enumerate(REGIONS)],
        ),
    }
    return {f"{name}{uuid}": table for name, table in found.items()}


def database(path: Path, *sets: dict[str, tuple[str, list[tuple[Any, ...]]]]) -> Path:
    db = sqlite3.connect(path)
    for name, (columns, rows) in (entry for found in sets for entry in found.items()):
        db.execute(f"create table `{name}` ({columns})")
        db.executemany(f"insert into `{name}` values ({','.join('?' * (columns.count(',') + 1))})", rows)
    db.commit()
    db.close()
    return path


LAYOUTS = ("3", "4.0", "4.1")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("packed", [False, True])
def test_dispatches_copies_calls_and_markers(tmp_path: Path, layout: str, packed: bool) -> None:
    path = database(tmp_path / "results.db", tables(layout))
    if packed:
        path.write_bytes(gzip.compress(path.read_bytes()))
    before = path.read_bytes()
    rows, trace = opened(path)
    ran = [(r["name"], r["device"], r["stream"], r["start_ns"], r["end_ns"]) for r in kind_of(rows, "execution")]
    # Time 0 is the first call; a mark stands at its end.
    zero = 1000
    assert ran == [
        ("gemm()", 4, "2", 2000 - zero, 2500 - zero),
        ("gemm()", 4, "2", 4000 - zero, 4100 - zero),
        ("add.kd", 4, "2", 4200 - zero, 4300 - zero),
        ("add.kd", 4, "2", 5000 - zero, 5100 - zero),
        ("MEMORY_COPY_HOST_TO_DEVICE", 4, "copies 6", 5700 - zero, 5900 - zero),
    ]
    launched = [(r.get("enqueue_ns"), r.get("launch_ns"), r.get("node")) for r in kind_of(rows, "execution")]
    assert launched == [
        (1400 - zero, 400, None), (3300 - zero, 300, 0), (3300 - zero, 300, 1), (None, None, None),
        (5600 - zero, 100, None),
    ]  # fmt: skip
    assert [(r["name"], r["stream"], r["end_ns"], r["value"]) for r in kind_of(rows, "mark")] == [
        ("step 1", "thread 41/9", 6500 - zero, 5600.0)
    ]
    assert trace.header.host == "box"
    assert trace.header.hardware == {"device 4": "Instinct"}
    assert trace.header.build == {"rocpd schema": layout}
    notes = "; ".join(trace.notes)
    assert "without its launch call in the capture: 1 of 5" in notes
    assert "values of counters left out, their dispatches are shown: 2" in notes
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["results.db"]


def test_the_programs_correlation_id_joins_nothing(tmp_path: Path) -> None:
    """All events carry the same one here; the internal id is another column."""
    rows, _ = opened(database(tmp_path / "results.db", tables("3")))
    assert len({r.get("launch_ns") for r in kind_of(rows, "execution")}) == 4


def test_processes_with_the_same_ids_do_not_meet(tmp_path: Path) -> None:
    both = database(tmp_path / "both.db", tables("3", "_a"), tables("4.1", "_b"))
    apart = [database(tmp_path / f"{name}.db", tables("3", f"_{name}")) for name in "ab"]
    for paths in ([both], apart):
        rows, trace = opened(*paths)
        ran = kind_of(rows, "execution")
        assert len(ran) == 10
        assert sum("launch_ns" in row for row in ran) == 8
        assert {row["stream"] for row in ran} == {"2", "copies 6", "41/2", "41/copies 6"}
        assert trace.header.build["processes"] == "2"


def test_a_folder_of_databases_is_one_run(tmp_path: Path) -> None:
    for name in "ab":
        database(tmp_path / f"{name}.db", tables("3", f"_{name}"))
    rows, _ = opened(tmp_path)
    assert len(kind_of(rows, "execution")) == 10


def test_without_calls_the_option_is_named(tmp_path: Path) -> None:
    found = tables("3")
    found[f"rocpd_region{UUID}"] = (found[f"rocpd_region{UUID}"][0], [])
    _, trace = opened(database(tmp_path / "results.db", found))
    assert any("record with rocprofv3 --hip-trace" in note for note in trace.notes)


def test_without_device_work_the_outermost_calls_are_shown(tmp_path: Path) -> None:
    found = {name: table for name, table in tables("3").items() if "dispatch" not in name and "copy" not in name}
    rows, _ = opened(database(tmp_path / "results.db", found))
    assert [(r["name"], r["stream"]) for r in kind_of(rows, "execution")] == [
        ("hipLaunchKernel", "thread 41/9"), ("hipGraphLaunch", "thread 41/9"), ("hipMemcpyAsync", "thread 41/9"),
    ]  # fmt: skip


def test_only_its_importer_claims_it(tmp_path: Path) -> None:
    head = database(tmp_path / "results.db", tables("3")).read_bytes()
    assert [importer.NAME for importer in importers() if importer.sniff(head)] == [rocpd.NAME]


def test_an_empty_run_is_refused(tmp_path: Path) -> None:
    found: dict[str, tuple[str, list[tuple[Any, ...]]]] = {n: (columns, []) for n, (columns, _) in tables("3").items()}
    with pytest.raises(TelemetryError, match=r"rocpd database .* in which nothing ran; record with --kernel-trace"):
        open_capture([database(tmp_path / "results.db", found)], memory_bytes=MEMORY)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_mutations_are_read_or_refused(tmp_path: Path, layout: str) -> None:
    sample = database(tmp_path / "s.db", tables(layout)).read_bytes()
    fuzzed(sample, tmp_path / "m.db", rocpd.read, least=8)


@pytest.mark.parametrize("packed", [False, True])
def test_a_cut_file_is_read_as_far_as_it_goes(tmp_path: Path, packed: bool) -> None:
    """What is missing here are strings that came last; the database's own first page says how long it was."""
    noise, found = random.Random(3), tables("3")
    columns, rows = found.pop(f"rocpd_string{UUID}")
    text = [(n, "g", f"{noise.getrandbits(4000):x}") for n in range(50, 150)]
    found[f"rocpd_string{UUID}"] = (columns, rows + text)
    data = database(tmp_path / "results.db", found).read_bytes()
    path = tmp_path / "cut.db"
    path.write_bytes(gzip.compress(data)[:-9000] if packed else data[:-30_000])
    found_rows, trace = opened(path)
    assert [row["name"] for row in kind_of(found_rows, "execution")][:2] == ["gemm()", "gemm()"]
    assert any(re.match(r"the file is cut off: [\d,]+ of [\d,]+ bytes are there", note) for note in trace.notes)


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_cut_near_its_beginning_is_refused_under_its_own_name(tmp_path: Path, packed: bool) -> None:
    data = database(tmp_path / "results.db", tables("3")).read_bytes()[:5000]
    path = tmp_path / "cut.db"
    path.write_bytes(gzip.compress(data) if packed else data)
    with pytest.raises(TelemetryError, match="the file is cut off: 5,000 of") as caught:
        open_capture([path], memory_bytes=MEMORY)
    assert caught.value.where == str(path)
