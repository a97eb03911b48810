"""Plain data that any form may print: numbers finite, texts safe, names changed where asked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fusetui.telemetry.text import safe_text


def clean(value: Any, rename: Callable[[str], str] = str) -> Any:
    """Dicts, lists, texts and numbers only; a number that is not finite is absent.

    Keys are our own words and stay; names from data have to be values. `rename` sees every text.
    """
    if isinstance(value, str):
        return safe_text(rename(safe_text(value)))
    if isinstance(value, Mapping):
        return {str(key): clean(item, rename) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(item, rename) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(clean(item, rename) for item in value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def named(pairs: Mapping[str, str]) -> list[dict[str, str]]:
    """A mapping whose keys come from data, as values."""
    return [{"name": name, "value": value} for name, value in pairs.items()]
