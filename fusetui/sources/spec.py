"""What a source is opened with: the words a person typed and the limits of this run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO, Literal

from fusetui.telemetry.errors import TelemetryError

Overflow = Literal["block", "drop"]


@dataclass(frozen=True, slots=True)
class OpenOptions:
    """Limits and manners common to all sources.

    memory_bytes  what the source may hold of batches not yet polled
    overflow      when that is full: "block" stops reading the producer, "drop" counts and drops whole batches
    stdin         what "-" reads (None: file descriptor 0)
    token         what each connecting producer must show (None: nothing)
    authorization  what a server that is asked gets as that header ("Bearer …", "Basic …")
    cacert        file of who may have signed the certificate of a server that is asked (None: whom the system trusts)
    allow_remote  listen beyond this machine; needs a token, which travels in the clear like the telemetry: tunnel it
    """

    memory_bytes: int = 128 << 20
    overflow: Overflow = "block"
    token: str | None = None
    allow_remote: bool = False
    stdin: BinaryIO | None = None
    authorization: str | None = None
    cacert: str | None = None


def words(spec: str, known: tuple[str, ...]) -> dict[str, str]:
    """The values in `name:key=one,key=two`. Raises TelemetryError naming what is not known."""
    _, _, rest = spec.partition(":")
    found: dict[str, str] = {}
    for part in filter(None, rest.split(",")):
        key, _, value = part.partition("=")
        if key not in known:
            raise TelemetryError(spec, f"unknown parameter {key!r}", f"known: {', '.join(known) or 'none'}")
        found[key] = value
    return found


def parameters(spec: str, known: tuple[str, ...]) -> dict[str, float]:
    """The numbers in `name:key=1,key=2`. Raises TelemetryError naming what is not known or not a number."""
    found: dict[str, float] = {}
    for key, value in words(spec, known).items():
        try:
            found[key] = float(value)
        except ValueError:
            raise TelemetryError(spec, f"{key} is {value!r}, not a number") from None
    return found


def no_parameters(spec: str) -> None:
    """Raises TelemetryError when `spec` has parameters."""
    parameters(spec, ())
