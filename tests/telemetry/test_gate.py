"""The schema gate: what comes through is canonical, and what does not is named."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from telemetry_samples import numbered

from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.gate import TIME_LIMIT, Gate, conform
from fusetui.telemetry.guard import Limits
from fusetui.telemetry.schema import KINDS, MAPPINGS, SCHEMA, build_batch

BASE: dict[str, Any] = {
    "kind": ["execution", "request", "counter"],
    "name": ["a", "b", "c"],
    "start_ns": [1, 2, 3],
    "end_ns": [5, 6, 3],
}


def foreign(**columns: Any) -> pa.RecordBatch:
    merged = {**BASE, **columns}
    return pa.record_batch(
        {k: v if isinstance(v, pa.Array) else pa.array(v) for k, v in merged.items() if v is not None}
    )


def test_plain_columns_become_canonical() -> None:
    batch, bad = conform(foreign(core=pa.array([1, None, 3], pa.uint8()), unit=["W", "", None]), "x")
    assert bad == 0
    assert batch.schema.equals(SCHEMA)
    assert batch.column("kind").to_pylist() == ["execution", "request", "counter"]
    assert batch.column("core").to_pylist() == [1, None, 3]
    assert batch.column("unit").to_pylist() == ["W", "", None]
    assert batch.column("enqueue_ns").null_count == 3


def test_kind_and_mapping_codes_are_constants() -> None:
    batch, _ = conform(foreign(kind=["mark", "mark", "execution"], mapping=["fallback", None, "planned"]), "x")
    assert batch.column("kind").dictionary.to_pylist() == list(KINDS)
    assert batch.column("kind").indices.to_pylist() == [3, 3, 0]
    assert batch.column("mapping").dictionary.to_pylist() == list(MAPPINGS)
    assert batch.column("mapping").indices.to_pylist() == [2, None, 0]
    missing, _ = conform(foreign(), "x")
    assert missing.column("mapping").dictionary.to_pylist() == list(MAPPINGS)
    assert missing.column("mapping").null_count == 3


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_become_ns(unit: str) -> None:
    times = pa.array([1, 2, 3], pa.timestamp(unit, "UTC"))
    batch, _ = conform(foreign(start_ns=times, end_ns=times), "x")
    scale = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
    assert batch.column("start_ns").to_pylist() == [scale, 2 * scale, 3 * scale]


def test_a_timestamp_too_large_for_ns_is_refused() -> None:
    times = pa.array([1, 2, 1 << 60], pa.timestamp("s"))
    with pytest.raises(TelemetryError, match="cap batch 7, column 'start_ns'"):
        conform(foreign(start_ns=times), "cap", 7)


def test_unknown_kind_names_file_batch_column_and_word() -> None:
    with pytest.raises(TelemetryError) as caught:
        conform(foreign(kind=["execution", "foo", "mark"]), "capture.arrows", 12)
    assert str(caught.value) == "capture.arrows batch 12, column 'kind': unknown word 'foo'"


def test_an_unknown_word_that_is_not_a_mapping() -> None:
    with pytest.raises(TelemetryError, match="column 'mapping': unknown word 'guessed'"):
        conform(foreign(mapping=["planned", "guessed", None]), "x")


def test_unknown_columns_are_ignored_and_missing_required_ones_named() -> None:
    batch, _ = conform(foreign(colour=["r", "g", "b"], nested=pa.array([[1], [2], [3]])), "x")
    assert batch.schema.equals(SCHEMA)
    with pytest.raises(TelemetryError, match="required columns are missing: name, end_ns"):
        conform(foreign(name=None, end_ns=None), "x")


def test_wrong_types_are_refused_with_the_expected_one() -> None:
    with pytest.raises(TelemetryError, match="'start_ns' has type double, expected int64"):
        conform(foreign(start_ns=[1.0, 2.0, 3.0]), "x")
    with pytest.raises(TelemetryError, match="'name' has type list"):
        conform(foreign(name=pa.array([["a"], ["b"], ["c"]])), "x")
    with pytest.raises(TelemetryError, match="column 'core'"):
        conform(foreign(core=pa.array([1, 2, 1 << 40])), "x")


def test_integers_with_gaps_that_pandas_made_floats() -> None:
    batch, _ = conform(foreign(core=[1.0, math.nan, 3.0]), "x")
    assert batch.column("core").to_pylist() == [1, None, 3]
    with pytest.raises(TelemetryError, match="column 'core'"):
        conform(foreign(core=[1.0, 1.5, 3.0]), "x")


def test_floats_that_are_not_finite_become_null() -> None:
    batch, bad = conform(foreign(value=[math.nan, math.inf, 2.5], flops=[-math.inf, 1.0, None]), "x")
    assert batch.column("value").to_pylist() == [None, None, 2.5]
    assert batch.column("flops").to_pylist() == [None, 1.0, None]
    assert bad == 0


@pytest.mark.parametrize(
    ("columns", "kept"),
    [
        ({"end_ns": [0, 6, 3]}, ["b", "c"]),
        ({"start_ns": [1, None, 3], "end_ns": [5, None, 3], "enqueue_ns": [None, 4, None]}, ["a", "b", "c"]),
        ({"start_ns": [1, None, 3], "end_ns": [5, None, 3]}, ["a", "c"]),
        ({"enqueue_ns": [-(1 << 63), 0, TIME_LIMIT]}, ["b", "c"]),
        ({"end_ns": [5, 6, TIME_LIMIT + 1]}, ["a", "b"]),
        ({"launch_ns": [-1, 0, 5]}, ["b", "c"]),
        ({"name": ["a", None, "c"]}, ["a", "c"]),
        ({"kind": [None, "mark", "mark"]}, ["b", "c"]),
    ],
)
def test_impossible_rows_are_dropped_and_counted(columns: dict[str, Any], kept: list[str]) -> None:
    batch, bad = conform(foreign(**columns), "x")
    assert batch.column("name").to_pylist() == kept
    assert bad == 3 - len(kept)


def test_strings_are_made_safe_once_per_word() -> None:
    words = pa.array(["ok", "\x1b[31mred\x07", "a\u202eb", "tab\there", None, "x" * 5000])
    name = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, 4, 5], pa.int32()), words)
    six = {"kind": ["mark"] * 6, "start_ns": [1] * 6, "end_ns": [1] * 6}
    batch, bad = conform(pa.record_batch({"name": name, **{k: pa.array(v) for k, v in six.items()}}), "x")
    assert batch.column("name").to_pylist() == ["ok", "·[31mred·", "a·b", "tab here", "x" * 4095 + "…"]
    assert bad == 1


def test_a_new_dictionary_is_noticed_and_an_old_one_is_not_cleaned_again() -> None:
    gate = Gate(SCHEMA, "x")
    first, _ = gate.conform(numbered(0, 10), "x")
    again, _ = gate.conform(numbered(0, 10), "x")
    other, _ = gate.conform(build_batch({"kind": "mark", "name": ["z"], "start_ns": [1], "end_ns": [1]}), "x")
    assert first.column("name").to_pylist() == again.column("name").to_pylist()
    assert other.column("name").to_pylist() == ["z"]
    same = numbered(0, 100)
    a, _ = gate.conform(same.slice(0, 50), "x")
    b, _ = gate.conform(same.slice(50, 50), "x")
    assert a.column("name").dictionary is not None
    assert a.column("name").dictionary.buffers()[2].address == b.column("name").dictionary.buffers()[2].address
    assert b.column("name").to_pylist() == same.column("name").to_pylist()[50:]


def test_memory_that_is_not_what_it_says_is_refused() -> None:
    codes = pa.array([0, 1, 9], pa.int32())
    name = pa.DictionaryArray.from_arrays(codes, pa.array(["a", "b"]), safe=False)
    with pytest.raises(TelemetryError, match="x batch 3, column 'name': damaged values"):
        conform(foreign(name=name), "x", 3)
    offsets = pa.py_buffer(np.array([0, 1, 2, 3], "<i4"))
    invalid = pa.StringArray.from_buffers(3, offsets, pa.py_buffer(b"\xff\xfe\xfd"))
    with pytest.raises(TelemetryError, match="column 'name': damaged values"):
        conform(foreign(name=invalid), "x")


def test_caps_on_rows_bytes_columns_and_metadata() -> None:
    with pytest.raises(TelemetryError, match="3 rows are over the limit of 2"):
        conform(foreign(), "x", limits=Limits(rows=2))
    with pytest.raises(TelemetryError, match="bytes are over the limit of 64"):
        conform(foreign(), "x", limits=Limits(batch=64))
    many = foreign(**{f"c{i}": [1, 2, 3] for i in range(260)})
    with pytest.raises(TelemetryError, match="264 columns are over the limit"):
        conform(many, "x")
    with pytest.raises(TelemetryError, match="metadata is over"):
        conform(foreign().replace_schema_metadata({b"k": bytes(1 << 21)}), "x")
    with pytest.raises(TelemetryError, match="has over 128 characters"):
        conform(foreign(**{"n" * 129: [1, 2, 3]}), "x")


def test_a_column_that_occurs_twice_is_refused() -> None:
    batch = foreign()
    twice = pa.RecordBatch.from_arrays([*batch.columns, batch.column(1)], names=[*batch.schema.names, "name"])
    with pytest.raises(TelemetryError, match="column 'name' occurs twice"):
        conform(twice, "x")


def test_more_units_than_the_contract_can_number() -> None:
    rows = 300
    batch = foreign(
        kind=["mark"] * rows,
        name=["m"] * rows,
        start_ns=[1] * rows,
        end_ns=[1] * rows,
        unit=[f"u{i}" for i in range(rows)],
    )
    with pytest.raises(TelemetryError, match="column 'unit'"):
        conform(batch, "x")


def test_polars_string_views_and_categories() -> None:
    frame = pl.DataFrame(BASE).with_columns(pl.col("name").cast(pl.Categorical), core=pl.lit(3))
    table = frame.to_arrow(compat_level=pl.CompatLevel.newest())
    batch, bad = conform(table.combine_chunks().to_batches()[0], "x")
    assert bad == 0
    assert batch.column("name").to_pylist() == ["a", "b", "c"]
    assert batch.column("kind").to_pylist() == BASE["kind"]


WORDS = st.text(max_size=8)
TIMES = st.integers(-TIME_LIMIT, TIME_LIMIT)
ROW = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(KINDS),
        "name": st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12),
        "enqueue_ns": st.none() | TIMES,
        "start_ns": st.none() | TIMES,
        "end_ns": st.none() | TIMES,
        "core": st.none() | st.integers(-(1 << 31), (1 << 31) - 1),
        "value": st.none() | st.floats(),
        "mapping": st.none() | st.sampled_from(MAPPINGS),
        "stream": st.none() | WORDS,
    }
)


@settings(max_examples=60, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=20), st.data())
def test_every_row_is_either_kept_as_it_was_or_counted(rows: list[dict[str, Any]], data: st.DataObject) -> None:
    types = {"core": pa.int32(), "value": pa.float64(), **{f"{p}_ns": pa.int64() for p in ("enqueue", "start", "end")}}
    batch = pa.record_batch({k: pa.array([r[k] for r in rows], types.get(k, pa.utf8())) for k in rows[0]})
    cut = data.draw(st.integers(0, len(rows) - 1))
    out, bad = conform(batch.slice(cut), "x")
    good = [r for r in rows[cut:] if _possible(r)]
    assert bad == len(rows) - cut - len(good)
    for name in ("kind", "name", "enqueue_ns", "start_ns", "end_ns", "core", "mapping"):
        assert out.column(name).to_pylist() == [r[name] for r in good]
    assert out.column("value").to_pylist() == [
        r["value"] if r["value"] is not None and math.isfinite(r["value"]) else None for r in good
    ]


def _possible(row: dict[str, Any]) -> bool:
    start, end = row["start_ns"], row["end_ns"]
    if start is None and end is None and row["enqueue_ns"] is None:
        return False
    return start is None or end is None or end >= start
