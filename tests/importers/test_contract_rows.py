"""Rows of the contract as CSV and JSON lines: exports come back as they were, and what people write opens."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from import_checks import CASES, MEMORY, mutate, opened, rows_of

from fusetui.importers import contract_rows
from fusetui.importers.open import importers, open_capture
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.eventtime import event_time_ns
from fusetui.telemetry.export import WRITERS
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import SCHEMA, build_batch

FORMS = ("csv", "json")
BASE = 1_796_035_784_335_488_381
FULL: dict[str, Any] = {
    "kind": "execution", "name": 'gemm, "fused" ü', "enqueue_ns": BASE + 10, "start_ns": BASE + 40,
    "end_ns": BASE + 90, "launch_ns": 7, "node": 0, "host": "rank 3", "device": 1, "core": 5, "stream": "7",
    "request": -4, "plan": "p1", "group": 2, "mapping": "fallback", "shape": "m=4 n=8 bf16", "batch": 16,
    "flops": 1.25e15, "dram_bytes": 123_456_789_012, "sram_bytes": 0,
}  # fmt: skip
LOG: list[dict[str, Any]] = [
    FULL,
    {"kind": "request", "name": "chat", "request": 4, "enqueue_ns": BASE, "start_ns": BASE + 5, "end_ns": BASE + 100},
    {"kind": "counter", "name": "power", "unit": "W", "value": 0.1, "start_ns": BASE + 101, "end_ns": BASE + 101},
    {"kind": "mark", "name": "swap", "start_ns": BASE + 102, "end_ns": BASE + 102},
    {"kind": "request", "name": "waits", "request": 5, "enqueue_ns": BASE + 103},
]


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    names = [name for name in SCHEMA.names if any(name in row for row in rows)]
    texts = [name for name in names if isinstance(SCHEMA.field(name).type, pa.DictionaryType)]
    return build_batch({n: pa.array([row.get(n) for row in rows], pa.utf8() if n in texts else None) for n in names})


def written(form: str, *batches: pa.RecordBatch) -> bytes:
    sink = io.BytesIO()
    WRITERS[form](sink, Header(source="box"), batches)
    return sink.getvalue()


def reread(path: Path, data: bytes | str) -> list[dict[str, Any]]:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    rows, _ = opened(path)
    return rows


@pytest.mark.parametrize("form", FORMS)
def test_an_export_comes_back_as_it_was(tmp_path: Path, form: str) -> None:
    assert reread(tmp_path / "x", written(form, batch_of(LOG[:2]), batch_of(LOG[2:]))) == LOG


ROW = st.fixed_dictionaries(
    {"kind": st.sampled_from(["execution", "request", "counter", "mark"]),
     "name": st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=8).filter(str.strip),
     "start_ns": st.integers(0, 1 << 61)},
    optional={"stream": st.sampled_from(["a,b", 'q"', "7"]), "value": st.floats(-1e300, 1e300),
              "request": st.integers(0), "core": st.integers(0, 1 << 30), "flops": st.floats(0, 1e20)},
)  # fmt: skip


@settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.generate],
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(rows=st.lists(ROW, min_size=1, max_size=20))
@pytest.mark.parametrize("form", FORMS)
def test_any_rows_come_back(tmp_path: Path, form: str, rows: list[dict[str, Any]]) -> None:
    rows = [{**row, "end_ns": row["start_ns"], "request": row.get("request", 0) % (1 << 60)} for row in rows]
    path = tmp_path / "x"
    path.write_bytes(written(form, batch_of(rows)))
    found = rows_of(contract_rows.read(path, MEMORY))
    key = lambda row: sorted((name, str(value)) for name, value in row.items())  # noqa: E731
    assert sorted(found, key=key) == sorted(rows, key=key)


def test_a_log_that_a_person_wrote_opens(tmp_path: Path) -> None:
    text = "name,kind,end_ns,start_ns,enqueue_ns,mine\nb,request,2000,1000,900,x\n\na,request,1500,1000,,\n"
    found = reread(tmp_path / "log.csv", text)
    assert found == [
        {"kind": "request", "name": "a", "start_ns": 1000, "end_ns": 1500},
        {"kind": "request", "name": "b", "start_ns": 1000, "end_ns": 2000, "enqueue_ns": 900},
    ]


@pytest.mark.parametrize(
    ("bad", "left"),
    [
        ("request,c,soon,2", 1),
        ("nothing,c,1,2", 1),
        ("request,,1,2", 1),
        ("request,c,,", 1),
        ("request,c,9,2", 1),
        ("request,c,1", 1),
        ("request,c,1,9223372036854775808", 1),
    ],
)
def test_rows_that_are_none_are_counted(tmp_path: Path, bad: str, left: int) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"kind,name,start_ns,end_ns\nrequest,a,1,2\n{bad}\n")
    capture = contract_rows.read(path, MEMORY)
    assert [row["name"] for row in rows_of(capture)] == ["a"]
    assert f"rows left out, a value is impossible or of a wrong type: {left}" in capture.notes


@pytest.mark.parametrize(
    "bad", ['{"kind": "request", "name": 3, "start_ns": 1, "end_ns": 2}', '{"kind": "req', "[1]", '{"name": "x"}']
)
def test_lines_that_are_none_are_counted(tmp_path: Path, bad: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"kind": "request", "name": "a", "start_ns": 1, "end_ns": 2}) + f"\n{bad}\n")
    capture = contract_rows.read(path, MEMORY)
    assert [row["name"] for row in rows_of(capture)] == ["a"]
    assert "rows left out, a value is impossible or of a wrong type: 1" in capture.notes


def test_a_file_without_a_row_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("kind,name,start_ns,end_ns\nrequest,a,x,y\n")
    with pytest.raises(TelemetryError, match="without one readable row"):
        open_capture([path], memory_bytes=MEMORY)


def test_no_other_importer_claims_them() -> None:
    for form in FORMS:
        head = written(form, batch_of(LOG))
        assert [importer.NAME for importer in importers() if importer.sniff(head)] == [contract_rows.NAME]


@pytest.mark.parametrize("form", FORMS)
def test_mutations_are_read_or_refused(tmp_path: Path, form: str) -> None:
    data, path, good = written(form, batch_of(LOG * 4)), tmp_path / "x", 0
    refusals: list[str] = []
    for case in range(CASES):
        path.write_bytes(mutate(data, random.Random(case)))
        try:
            capture = contract_rows.read(path, MEMORY)
        except TelemetryError as error:
            refusals.append(str(error))
            continue
        times: list[int] = []
        for batch in capture.batches:
            batch.validate(full=True)
            times += event_time_ns(batch).tolist()
        assert times == sorted(times)
        good += bool(times)
    assert good * 2 >= CASES
    assert not any("\n" in line for line in refusals)
