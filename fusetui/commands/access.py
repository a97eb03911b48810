"""What grants access to a server that is asked, from a file or the environment: never from the command line."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from typing import Final

from fusetui.telemetry.errors import TelemetryError

VARIABLE: Final = "FUSETUI_AUTH"
_MAX_BYTES: Final = 8192
_SCHEMES: Final = {"bearer": "Bearer", "basic": "Basic"}
_REMEDY: Final = "one line: `bearer TOKEN` or `basic USER:PASSWORD`"


def authorization(path: str | None, environ: Mapping[str, str] = os.environ) -> str | None:
    """The value of the Authorization header, None when nothing is given. Raises TelemetryError, which tells none of it.

    path  a file with one line, `bearer TOKEN` or `basic USER:PASSWORD`; None: the variable FUSETUI_AUTH has it
    """
    where = path or VARIABLE
    if path is None:
        text = environ.get(VARIABLE, "")
    else:
        try:
            with open(path, "rb") as file:
                text = file.read(_MAX_BYTES + 1).decode("utf-8", "replace")
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise TelemetryError(path, f"cannot be read ({why})", _REMEDY) from None
    if not text.strip():
        if path is None:
            return None
        raise TelemetryError(where, "the file is empty", _REMEDY)
    word, _, secret = text.strip().partition(" ")
    scheme, secret = _SCHEMES.get(word.lower()), secret.strip()
    if scheme is None or not secret or len(text) > _MAX_BYTES or "\n" in secret:
        raise TelemetryError(where, "not understood", _REMEDY)
    if scheme == "Basic":
        if ":" not in secret:
            raise TelemetryError(where, "no colon between user and password", _REMEDY)
        secret = base64.b64encode(secret.encode()).decode()
    if not re.fullmatch(r"[!-~]+", secret):
        raise TelemetryError(where, "characters that no token has", _REMEDY)
    return f"{scheme} {secret}"
