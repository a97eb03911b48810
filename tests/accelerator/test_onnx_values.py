"""The arithmetic of shapes against what ONNX defines: whole division towards zero, slices, limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusetui.accelerator.onnx_values import SMALL, evaluate

small = st.integers(-(10**9), 10**9)


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@given(small, small.filter(bool))
def test_whole_numbers_divide_towards_zero(a: int, b: int) -> None:
    found = evaluate("Div", [ints(a), ints(b)], {})
    assert found is not None
    assert found.dtype == np.int64
    assert found.tolist() == [abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)]


@given(
    st.lists(small, min_size=1, max_size=9), st.integers(-12, 12), st.integers(-12, 12), st.sampled_from([1, 2, -1, -3])
)
def test_slices_are_those_of_a_list(values: list[int], start: int, end: int, step: int) -> None:
    found = evaluate("Slice", [ints(*values), ints(start), ints(end), ints(0), ints(step)], {})
    assert found is not None
    # ONNX: an end before the first element, counted from the back, means "through the first" when stepping down.
    stop = None if step < 0 and end < -len(values) else end
    assert found.tolist() == values[start:stop:step]


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "result"),
    [("Concat", [ints(1), ints(2, 3)], {"axis": 0}, [1, 2, 3]),
     ("Gather", [ints(4, 5, 6), np.array(-1)], {}, 6),
     ("Unsqueeze", [np.array(7), ints(0)], {}, [7]), ("Squeeze", [ints(7)], {"axes": [0]}, 7),
     ("Cast", [np.array([2.7])], {"to": 7}, [2]), ("Floor", [np.array([2.7])], {}, [2.0]),
     ("ReduceProd", [ints(2, 3, 4)], {"keepdims": 0}, 24),
     ("Where", [ints(1, 0), ints(5, 6), ints(7, 8)], {}, [5, 8]), ("Equal", [ints(-1, 2), ints(-1)], {}, [True, False]),
     ("Range", [np.array(2), np.array(8), np.array(3)], {}, [2, 5]), ("Tanh", [ints(1)], {}, None)],
)  # fmt: skip
def test_operators(op: str, inputs: list[np.ndarray], attributes: dict[str, object], result: object) -> None:
    found = evaluate(op, inputs, attributes)
    assert (found if found is None else found.tolist()) == result


def test_nothing_large_is_made() -> None:
    assert evaluate("Range", [np.array(0), np.array(10**12), np.array(1)], {}) is None
    assert evaluate("Range", [np.array(0), np.array(5), np.array(0)], {}) is None
    column = np.arange(SMALL).reshape(-1, 1)
    with pytest.raises(ValueError, match="too many"):
        evaluate("Add", [column, column.T], {})
