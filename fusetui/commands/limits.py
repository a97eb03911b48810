"""`--rotate` and `--keep`: amounts that are a size, a time, or a number of files, told apart by their unit."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from fusetui.telemetry.times import parse_bytes, parse_duration_ns

if TYPE_CHECKING:
    from fusetui.telemetry.retention import Keep

ROTATE_BYTES: Final = 256 << 20
ROTATE_NS: Final = 3600 * 10**9
_MIN_BYTES: Final = 64 << 10
_MIN_NS: Final = 10**9


class Amount(NamedTuple):
    """So many bytes, ns or files."""

    kind: Literal["bytes", "ns", "files"]
    value: int


def rotation(text: str) -> Amount:
    """`256MB` or `10min`; m is minutes, M is MiB."""
    amount = _amount(text)
    if amount.kind == "files":
        raise argparse.ArgumentTypeError(f"{text!r} needs a unit, like 256MB or 10min")
    least = _MIN_BYTES if amount.kind == "bytes" else _MIN_NS
    if amount.value < least:
        raise argparse.ArgumentTypeError(f"{text!r} is too little: at least 64KiB or 1s")
    return amount


def retention(text: str) -> Amount:
    """`2GB`, `24h`, or `100` segments."""
    amount = _amount(text)
    if amount.value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} must be more than 0")
    return amount


def segment_limits(amounts: Sequence[Amount]) -> tuple[int, float]:
    """Bytes and seconds after which the next segment begins; the smallest given ones, else the defaults."""
    given = {kind: min(value for k, value in amounts if k == kind) for kind, _ in amounts}
    return given.get("bytes", ROTATE_BYTES), given.get("ns", ROTATE_NS) / 1e9


def keep_limits(amounts: Sequence[Amount]) -> Keep:
    """What retention leaves; the smallest given ones."""
    from fusetui.telemetry.retention import Keep

    given = {kind: min(value for k, value in amounts if k == kind) for kind, _ in amounts}
    return Keep(given.get("files"), given.get("bytes"), given.get("ns"))


def _amount(text: str) -> Amount:
    word = text.strip()
    if word.isascii() and word.isdigit():
        return Amount("files", int(word))
    try:
        return Amount("ns", parse_duration_ns(word))
    except ValueError:
        pass
    try:
        return Amount("bytes", parse_bytes(word))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a size (256MB) nor a time (10min)") from None
