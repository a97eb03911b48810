"""Small batches put together."""

from hypothesis import given
from hypothesis import strategies as st
from tracerows import batch_of

from fusetui.analysis.coalesce import coalesced


@given(st.lists(st.integers(0, 4), max_size=20), st.integers(1, 9))
def test_rows_stay_the_same_in_larger_batches(sizes: list[int], least: int) -> None:
    batches = [
        batch_of([{"name": f"{i}.{j}", "start_ns": i, "end_ns": j} for j in range(n)]) for i, n in enumerate(sizes)
    ]
    found = coalesced(batches, least)
    assert [name for b in found for name in b.column("name").to_pylist()] == [
        name for b in batches for name in b.column("name").to_pylist()
    ]
    assert all(len(batch) >= least for batch in found[:-1])
    assert all(len(batch) for batch in found)


def test_words_beyond_the_index_type_stay_in_several_batches() -> None:
    batches = [batch_of([{"start_ns": 0, "end_ns": 0, "unit": f"u{i}"}]) for i in range(300)]
    found = coalesced(batches, 1000)
    assert 3 <= len(found) <= 4
    assert [unit for b in found for unit in b.column("unit").to_pylist()] == [f"u{i}" for i in range(300)]
