"""Dictionary columns from codes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def coded(codes: npt.NDArray[np.integer], words: Sequence[str]) -> pa.DictionaryArray:
    """A dictionary column: codes (rows,) into `words`, null where a code is negative."""
    indices = pa.array(codes, mask=codes < 0) if len(codes) and codes.min() < 0 else pa.array(codes)
    return pa.DictionaryArray.from_arrays(indices, pa.array(words, pa.utf8()))


def coded_texts(values: Sequence[str | None]) -> pa.DictionaryArray:
    """A dictionary column from texts, null where one is None.

    The type is told: to find it out, Arrow looks for dateutil on the disk each time where that is not installed.
    """
    return pa.array(values, pa.utf8()).dictionary_encode()
