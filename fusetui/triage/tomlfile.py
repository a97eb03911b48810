"""A person's TOML file beside the captures: read whole, within bounds, or refused in one line."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

from fusetui.telemetry.errors import TelemetryError

MAX_BYTES: Final = 1 << 20


def read_toml(where: Path) -> dict[str, Any] | None:
    """The document in a file, None where there is no such file. Raises TelemetryError."""
    try:
        with where.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TelemetryError(str(where), f"cannot be read ({error.strerror})") from None
    if len(raw) > MAX_BYTES:
        raise TelemetryError(str(where), "over the limit of 1 MiB")
    try:
        return tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise TelemetryError(str(where), "not UTF-8 text") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TelemetryError(str(where), f"not TOML: {error}") from None
