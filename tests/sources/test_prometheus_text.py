"""Pages of metrics into numbers: right values, and every line that is not taken in is counted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusetui.sources.prometheus_text import Series, SeriesTable


def read(text: str) -> dict[str, float]:
    table = SeriesTable()
    values = table.read(text)
    return {series.name: value for series, value in zip(table.series, values, strict=True)}


@pytest.mark.parametrize(
    ("line", "labels", "value"),
    [
        ("a 1", {}, 1.0),
        ("a 1 1395066363000", {}, 1.0),
        ('a{le="0.5"} 3 1395066363.250', {"le": "0.5"}, 3.0),
        ("a\t-2.5e-3", {}, -0.0025),
        ("  a   7  ", {}, 7.0),
        ("a 7\r", {}, 7.0),
        ('a{} 4', {}, 4.0),
        ('a{ x = "1" , y="2", } 5', {"x": "1", "y": "2"}, 5.0),
        ('a{x="one two} , \\"3\\" \\\\ {"} 6', {"x": 'one two} , "3" \\ {'}, 6.0),
        ('a{x="line\\nbreak"} 6', {"x": "line break"}, 6.0),
        ('a{x="\x1b[31m"} 6', {"x": "·[31m"}, 6.0),
        ('a_bucket{le="1"} 17 # {trace_id="KOO5S4vxi0o"} 0.67 1520879607.789', {"le": "1"}, 17.0),
        ("vllm:a +Inf", {}, np.inf),
        ("a NaN", {}, np.nan),
    ],
)  # fmt: skip
def test_a_sample(line: str, labels: dict[str, str], value: float) -> None:
    table = SeriesTable()
    for _ in range(2):  # the second time from the cache
        values = table.read(line)
        assert [series.labels for series in table.series] == [labels]
        np.testing.assert_array_equal(values, [value])
    assert (table.malformed, table.duplicates) == (0, 0)


@pytest.mark.parametrize(
    "line",
    [
        '{gpu="9",bad="label} 1',
        "garbage line",
        "a",
        'a{x="1"}',
        'a{x=1} 2',
        'a{x="1"y="2"} 2',
        'a{x="1} 2',
        "a 1_000",
        "a 0x10",
        "a one",
        "9a 1",
        "a 1 2 3",
        'a{x="' + "y" * 70_000 + '"} 1',
    ],
)  # fmt: skip
def test_a_line_that_is_no_sample_is_counted(line: str) -> None:
    table = SeriesTable()
    values = table.read(f"good 1\n{line}\nlast 2")
    assert table.malformed == 1
    assert [v for v in values if not np.isnan(v)] == [1.0, 2.0]


def test_of_a_series_that_is_there_twice_the_first_counts() -> None:
    table = SeriesTable()
    for n in (1, 2):
        np.testing.assert_array_equal(table.read('a{x="1",y="2"} 1\na{y="2",x="1"} 2\n'), [1.0])
        assert table.duplicates == n


def test_long_labels_are_cut_and_still_tell_series_apart() -> None:
    table = SeriesTable()
    values = table.read(f'a{{x="{"y" * 300}1"}} 1\na{{x="{"y" * 300}2"}} 2')
    np.testing.assert_array_equal(values, [1.0, 2.0])
    assert [series.labels["x"] for series in table.series] == ["y" * 200, "y" * 200]


def test_types_comments_and_the_end() -> None:
    table = SeriesTable()
    table.read("# HELP a what it is\n# TYPE a counter\n# anything\na_total 3\n# EOF\n")
    assert (table.types, table.ended, table.malformed) == ({"a": "counter"}, True, 0)
    table.read("a_total 4\n")
    assert not table.ended


def test_a_series_that_went_has_no_value() -> None:
    table = SeriesTable()
    table.read("a 1\nb 2")
    np.testing.assert_array_equal(table.read("b 3\nc 4"), [np.nan, 3.0, 4.0])
    assert table.series == [Series("a", {}), Series("b", {}), Series("c", {})]


def test_native_histograms_in_text_are_counted_apart() -> None:
    table = SeriesTable()
    table.read("a {count:2,sum:3.0,schema:3,zero_threshold:1e-9}\n")
    assert (table.native, table.malformed, table.series) == (1, 0, [])


def test_series_are_bounded_and_old_ones_make_room() -> None:
    table = SeriesTable(max_series=10)
    table.read("\n".join(f'a{{x="{i}"}} {i}' for i in range(12)))
    assert (len(table.series), table.over_limit, table.generation) == (10, 2, 0)
    table.read("\n".join(f'b{{x="{i}"}} {i}' for i in range(5)))
    assert (table.over_limit, table.generation) == (7, 0)
    np.testing.assert_array_equal(table.read("\n".join(f'b{{x="{i}"}} {i}' for i in range(5))), np.arange(5.0))
    assert (len(table.series), table.generation) == (5, 1)


def test_the_text_of_series_is_bounded_too() -> None:
    table = SeriesTable(max_chars=1000)
    for page in range(20):
        table.read("\n".join(f'a{{x="{page}-{i}{"y" * 90}"}} 1' for i in range(3)))
        assert sum(len(series.labels["x"]) for series in table.series) <= 1000
    assert table.over_limit > 10
    assert table.generation > 1


@given(st.text(st.sampled_from('a{}="\\,#1 \n.e:_xTYPE\t\r'), max_size=200))
def test_any_text_is_read_and_no_line_is_lost(text: str) -> None:
    table = SeriesTable()
    values = table.read(text)
    assert len(values) == len(table.series)
    samples = sum(bool(line.strip()) and line.strip()[0] != "#" for line in text.split("\n"))
    assert np.isfinite(values).sum() + table.malformed + table.duplicates + table.native <= samples
    assert samples == 0 or len(table.series) + table.malformed + table.native + table.duplicates >= 1


@given(st.lists(st.tuples(st.text(max_size=8), st.floats(allow_nan=False)), unique_by=lambda pair: pair[0]))
def test_what_was_written_is_read(pairs: list[tuple[str, float]]) -> None:
    def escaped(text: str) -> str:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    page = "\n".join(f'm{i}{{x="{escaped(label)}"}} {value!r}' for i, (label, value) in enumerate(pairs))
    assert read(page) == {f"m{i}": value for i, (_, value) in enumerate(pairs)}
