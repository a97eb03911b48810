"""The filter language."""

from __future__ import annotations

import time

import pytest
from tracerows import MS, batch_of

from fusetui.analysis.filter import FilterError, parse_filter

QUEUED = {"enqueue_ns": 0}
ROWS = [
    {
        "name": "matmul",
        "stream": "Prefill 1",
        "device": 0,
        "core": 3,
        "enqueue_ns": 0,
        "start_ns": 6 * MS,
        "end_ns": 9 * MS,
    },
    {"name": "softmax", "stream": "decode", "device": 1, "core": 4, "enqueue_ns": 0, "start_ns": 1000, "end_ns": 3000},
    {"name": "copy", "host": "h1", "start_ns": 0, "end_ns": 2 * MS, "launch_ns": 1500, "request": -4},
    {"kind": "counter", "name": "power", "value": 3.0, "start_ns": 5, "end_ns": 5},
    {
        "kind": "request",
        "name": "r",
        "enqueue_ns": 0,
        "start_ns": 10,
        "end_ns": 8 * MS,
        "plan": "p1",
        "mapping": "fallback",
    },
]
BATCH = batch_of(ROWS)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('stream ~ "prefill" and wait > 5ms or core = 3', [0]),
        ("stream ~ PREFILL", [0]),
        ("stream = decode", [1]),
        ("stream = Decode", []),
        ("stream != decode", [0, 2, 3, 4]),
        ("stream !~ fill", [1, 2, 3, 4]),
        ("name ~ *max", [1]),
        ("name ~ m*m*l", [0]),
        ("name ~ ma*", [0]),
        ("name ~ mat*l", [0]),
        ("name ~ matm*mul", []),
        ("name = 'matmul'", [0]),
        ("name !~ *o*", [0, 4]),
        ("not kind = execution", [3, 4]),
        ("NOT (kind = execution OR kind = counter)", [4]),
        ("kind = execution and not name = copy and device >= 0", [0, 1]),
        ("device = 1", [1]),
        ("device != 1", [0, 2, 3, 4]),
        ("request < 0", [2]),
        ("request = -4", [2]),
        ("core < 4", [0]),
        ("core <= 4", [0, 1]),
        ("wait > 5ms", [0]),
        ("wait >= 6ms", [0]),
        ("wait = 1us", [1]),
        ("wait = 1µs", [1]),
        ("wait >= 0", [0, 1, 4]),
        ("wait != 1us", [0, 2, 3, 4]),
        ("service <= 2ms", [1, 2]),
        ("service > 0.0025s", [0, 4]),
        ("latency >= 8ms", [0, 4]),
        ("latency < 1.5 ms", None),
        ("launch = 1500ns", [2]),
        ("host = h1", [2]),
        ("plan = p1 and mapping ~ fall", [4]),
        ("shape = x", []),
        ("core=3 or device=1 and name=softmax", [0, 1]),
        ("(core=3 or device=1) and name=softmax", [1]),
        ("name = copy or name = power and name = r", [2]),
    ],
)
def test_rows_that_pass(text: str, rows: list[int] | None) -> None:
    if rows is None:
        with pytest.raises(FilterError):
            parse_filter(text)
        return
    only = parse_filter(text)
    assert only is not None
    assert [i for i, passes in enumerate(only.mask(BATCH)) if passes] == rows
    assert only.apply(BATCH).column("name").to_pylist() == [ROWS[i]["name"] for i in rows]


@pytest.mark.parametrize(
    ("text", "what", "at"),
    [
        ("colour = red", "no field colour", 0),
        ("stream < a", "is text", 7),
        ("core ~ 3", "is a number", 5),
        ("wait > 5", "needs a unit", 7),
        ("wait > 5kg", "needs a unit", 7),
        ("core = 3ms", "has no unit", 7),
        ("core = three", "expected a number", 7),
        ("stream", "expected one of", 6),
        ("stream =", "expected a value", 8),
        ("stream = 'a", "a quote is not closed", 9),
        ("(core = 3", "expected )", 9),
        ("core = 3)", "expected `and`", 8),
        ("core = 3 core = 4", "expected `and`", 9),
        ("and core = 3", "no field and", 0),
        ("core = 3 and", "expected a field", 12),
        ("   = 3", "expected a field", 3),
        ("not " * 60 + "core = 3", "nested", 200),
        ("(" * 60 + "core = 3" + ")" * 60, "nested", 50),
    ],
)
def test_errors_point_at_the_fault(text: str, what: str, at: int) -> None:
    with pytest.raises(FilterError) as raised:
        parse_filter(text)
    said, shown, caret = str(raised.value).splitlines()
    assert what in said
    assert shown == text
    assert caret == " " * at + "^"


def test_blank_is_no_filter() -> None:
    assert parse_filter("  ") is None


def test_a_filter_is_short() -> None:
    with pytest.raises(FilterError, match="at most"):
        parse_filter("core = 3 or " * 1000 + "core = 3")


def test_patterns_take_linear_time() -> None:
    name = "a" * 4000 + "b"
    only = parse_filter("name ~ " + "*a" * 900 + "*c")
    assert only is not None
    began = time.process_time()
    assert not only.mask(batch_of([{"name": name, "start_ns": 0, "end_ns": 1}]))[0]
    assert time.process_time() - began < 2.0


def test_words_are_tested_anew_for_another_dictionary() -> None:
    only = parse_filter("name = b")
    assert only is not None
    for names in (["a", "b"], ["b", "a"], ["b", "b"]):
        batch = batch_of([{"name": name, "start_ns": 0, "end_ns": 1} for name in names])
        assert only.mask(batch).tolist() == [name == "b" for name in names]


def test_missing_columns_are_absent() -> None:
    batch = BATCH.select(["kind", "name", "start_ns", "end_ns"])
    for text, passes in (("stream = a", False), ("stream != a", True), ("core > 0", False), ("wait > 1ns", False)):
        only = parse_filter(text)
        assert only is not None
        assert only.mask(batch).tolist() == [passes] * len(batch)
