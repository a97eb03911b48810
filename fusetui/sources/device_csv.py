"""Tables that vendors' commands print: a header with units, then rows whose values may carry units again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fusetui.sources.device_rows import DeviceReading, number, reading

_UNITS: Final = {
    "%": ("%", 1.0),
    "w": ("W", 1.0),
    "mhz": ("MHz", 1.0),
    "c": ("°C", 1.0),
    "°c": ("°C", 1.0),
    "celsius degree": ("°C", 1.0),
    "mib": ("B", float(1 << 20)),
}
"""As printed, in lower case -> (ours, factor). A column in no known unit is left out rather than guessed."""

_HEADING = re.compile(r"(?P<name>[^(\[]*)[(\[](?P<unit>[^)\]]*)[)\]]\s*\Z")
_VALUE = re.compile(r"(?P<number>[-+0-9.eE]+)\s*(?P<unit>\S.*)?\Z")


def cells(line: str) -> list[str]:
    """The values of one line; these tables quote nothing."""
    return [cell.strip() for cell in line.split(",")]


def heading(cell: str) -> tuple[str, str]:
    """(name in lower case, unit or "") of `GPU Power (W)` or `power.draw [W]`."""
    match = _HEADING.match(cell)
    return (match["name"].strip().lower(), match["unit"].strip().lower()) if match else (cell.strip().lower(), "")


def row_readings(
    headings: Sequence[tuple[str, str]], values: Sequence[str], device_column: str, names: Mapping[str, str]
) -> Iterator[DeviceReading]:
    """The counters of one row.

    device_column  the heading with the device's number; without a number there the row tells nothing
    names          heading -> what the counter is called
    """
    row = {name: (unit, value) for (name, unit), value in zip(headings, values, strict=False)}
    device = number(row.get(device_column, ("", ""))[1], most=65535)
    if device is None or device < 0:
        return
    for name, ours in names.items():
        unit, text = row.get(name, ("", ""))
        match = _VALUE.match(text)
        known = _UNITS.get((match["unit"] or unit).lower()) if match else None
        value = number(match["number"]) if match else None
        if known is not None and value is not None:
            yield from reading(ours, value * known[1], known[0], int(device))
