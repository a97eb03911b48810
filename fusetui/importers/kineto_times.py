"""Microseconds as profilers write them to whole nanoseconds, exactly.

float64 holds a decimal with three places to better than half a nanosecond while it is below 2^43 us (101 days);
absolute times since 1970 with a fraction are beyond that and must be read from their text.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

FLOAT_EXACT_US: Final = float(1 << 43)
ABSENT: Final = np.iinfo(np.int64).min
"""Marks a time that is missing or no number."""
_MAX_US: Final = 4 * 10**15
MAX_NS: Final = _MAX_US * 1000
"""Largest time believed (year 2096): adding a base time to it stays within int64."""


class NeedsTextError(Exception):
    """Values too large for float64 to be exact: decode them again as text."""


def to_ns(values: list[Any]) -> npt.NDArray[np.int64]:
    """Times in us (int, float, str or raw JSON) as ns, shape (len(values),); ABSENT where there is none.

    Fractions beyond the nanosecond round half to even. Raises NeedsTextError when a float is too large to be exact.
    """
    kinds = set(map(type, values))
    if kinds == {int}:
        try:
            whole = np.fromiter(values, np.int64, len(values))
        except OverflowError:
            return _each_to_ns(values)
        good = np.abs(whole) <= _MAX_US
        return np.where(good, whole * np.where(good, 1000, 0), ABSENT)
    if kinds and kinds <= {int, float}:
        array = np.fromiter(values, np.float64, len(values))
        if (np.abs(array) >= FLOAT_EXACT_US).any():
            raise NeedsTextError
        floor = np.floor(array)
        # The difference is exact, so the only error left is that of the decimal itself.
        return floor.astype(np.int64) * 1000 + np.rint((array - floor) * 1000).astype(np.int64)
    return _each_to_ns(values)


def _each_to_ns(values: list[Any]) -> npt.NDArray[np.int64]:
    return np.fromiter(map(_one_to_ns, values), np.int64, len(values))


def _one_to_ns(value: Any) -> int:
    if type(value) is int:
        return value * 1000 if abs(value) <= _MAX_US else ABSENT
    if type(value) is float:
        if abs(value) >= FLOAT_EXACT_US:
            raise NeedsTextError
        return _decimal_ns(repr(value))
    if isinstance(value, msgspec.Raw):
        return _text_ns(bytes(value).strip(b'" \t\r\n').decode("latin-1"))
    return _text_ns(value.strip()) if isinstance(value, str) else ABSENT


def _text_ns(text: str) -> int:
    whole, _, fraction = text.partition(".")
    if len(text) < 32 and len(fraction) <= 3 and whole.isdigit() and (not fraction or fraction.isdigit()):
        return int(whole) * 1000 + int((fraction + "000")[:3]) if len(whole) <= 16 else ABSENT
    return _decimal_ns(text)


def _decimal_ns(text: str) -> int:
    try:
        number = Decimal(text) if len(text) < 64 else Decimal("NaN")
        if not number.is_finite() or abs(number) > _MAX_US:
            return int(ABSENT)
        return int((number * 1000).to_integral_value())
    except ArithmeticError:  # no number, or an exponent beyond any sense
        return int(ABSENT)
