"""The hash of rows: what they say counts, how they are kept does not."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fusetui.telemetry.contenthash import ContentHash
from fusetui.telemetry.schema import build_batch

ROW = st.tuples(
    st.sampled_from(["execution", "counter"]), st.text(max_size=5), st.integers(-5, 5), st.none() | st.integers(0, 9),
    st.none() | st.floats(allow_nan=False), st.none() | st.sampled_from(["a", "", "stream"]),
)  # fmt: skip


def batch_of(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    kind, name, end, core, value, stream = zip(*rows, strict=True)
    texts = {"kind": kind, "name": name, "stream": stream}
    columns = {key: pa.array(words, pa.utf8()) for key, words in texts.items()}
    return build_batch(
        {**columns, "start_ns": end, "end_ns": end, "core": pa.array(core, pa.int32()),
         "value": pa.array(value, pa.float64())}
    )  # fmt: skip


def digest(*batches: pa.RecordBatch) -> str:
    found = ContentHash()
    for batch in batches:
        found.add(batch)
    return found.digest()


@given(st.lists(ROW, min_size=1, max_size=12), st.data())
def test_framing_and_dictionaries_do_not_count(rows: list[tuple[Any, ...]], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(rows)))
    parts = [batch_of(part) for part in (rows[:cut], rows[cut:]) if part]
    assert digest(*parts) == digest(batch_of(rows))
    shared = batch_of([*rows, *rows]).slice(len(rows))  # its dictionaries are those of the whole
    assert digest(shared) == digest(batch_of(rows))


@given(st.lists(ROW, min_size=1, max_size=6, unique=True))
def test_every_value_and_the_order_count(rows: list[tuple[Any, ...]]) -> None:
    whole = digest(batch_of(rows))
    kind, name, end, core, value, stream = rows[0]
    others = [
        (kind, name + "x", end, core, value, stream),
        (kind, name, end + 1, core, value, stream),
        (kind, name, end, 3 if core != 3 else None, value, stream),
        (kind, name, end, core, 0.25 if value != 0.25 else None, stream),
        (kind, name, end, core, value, "" if stream is None else None),
    ]
    assert all(digest(batch_of([other, *rows[1:]])) != whole for other in others)
    if len(rows) > 1:
        assert digest(batch_of(rows[::-1])) != whole


def test_text_that_moves_between_rows_is_another() -> None:
    rows = [("execution", "ab", 1, None, None, None), ("execution", "c", 2, None, None, None)]
    moved = [("execution", "a", 1, None, None, None), ("execution", "bc", 2, None, None, None)]
    assert digest(batch_of(rows)) != digest(batch_of(moved))


def test_the_hash_of_a_known_row_stays_what_it_is() -> None:
    row = ("execution", "gemm", 7, 2, None, "s")
    assert digest(batch_of([row])) == "sha256:8125181db2eefe6b67ab4b99bd6bbcd608b729c9fe443f9a1312a7299277169a"
