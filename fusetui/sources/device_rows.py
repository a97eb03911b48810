"""What the counters of a device are made of, and as rows of the contract."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from fusetui.sources.words import coded, coded_texts
from fusetui.telemetry.schema import KINDS, build_batch
from fusetui.telemetry.text import safe_text

_COUNTER, _MARK = KINDS.index("counter"), KINDS.index("mark")
_TEXT_CHARS: Final = 200


class DeviceReading(NamedTuple):
    """A counter row. device: None for the whole machine; core: the part of the device it is about."""

    name: str
    value: float
    unit: str
    device: int | None = None
    core: int | None = None


class Sample(NamedTuple):
    """One look at the devices.

    marks    things that happened since the last look, each naming its device
    problem  why the look told less than it should; "" when it did not
    """

    readings: Sequence[DeviceReading] = ()
    marks: Sequence[str] = ()
    problem: str = ""


def number(value: object, *, most: float = math.inf) -> float | None:
    """A finite number from what tools print (" 23.0", 34, "N/A"), or None; also None above `most`."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) and found <= most else None


def reading(
    name: str, value: object, unit: str, device: int | None = None, core: int | None = None
) -> list[DeviceReading]:
    """A reading, or none when the value is no number. Shares (unit "%") above 100 are none: vendors' "not known"."""
    found = number(value, most=100.0 if unit == "%" else math.inf)
    return [] if found is None else [DeviceReading(name, found, unit, device, core)]


def sample_batch(sample: Sample, at_ns: int) -> pa.RecordBatch:
    """The sample as rows, all at `at_ns`: one per reading, then one per mark."""
    readings, marks = sample.readings, [safe_text(mark, _TEXT_CHARS) for mark in sample.marks]
    without: list[None] = [None] * len(marks)
    units: list[str | None] = [*(safe_text(r.unit, 20) for r in readings), *without]
    kinds = np.repeat(np.array([_COUNTER, _MARK], np.int8), [len(readings), len(marks)])
    at = np.full(len(kinds), at_ns, np.int64)
    return build_batch(
        {
            "kind": coded(kinds, KINDS),
            "name": coded_texts([safe_text(r.name, _TEXT_CHARS) for r in readings] + marks),
            "start_ns": pa.array(at),
            "end_ns": pa.array(at),
            "device": pa.array([r.device for r in readings] + without, pa.int32()),
            "core": pa.array([r.core for r in readings] + without, pa.int32()),
            "value": pa.array([r.value for r in readings] + without, pa.float64()),
            "unit": coded_texts(units),
        },
        len(kinds),
    )
