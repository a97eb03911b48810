"""The header of a trace: where, on what and with which build it was captured. Kept as JSON in the schema metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Self, cast

from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.schema import CONTRACT_VERSION
from fusetui.telemetry.text import safe_text

METADATA_KEY: Final = b"fusetui"
MAX_HEADER_BYTES: Final = 1 << 20

Clock = Literal["epoch", "trace"]


@dataclass(frozen=True, slots=True)
class Header:
    """Build and runtime metadata of a trace; every text in it is already safe to print.

    source    what produced it: "host", "kineto", "simulated", a producer's name
    clock     "epoch": times are ns since 1970 UTC; "trace": ns since the trace began
    host      machine it was captured on (None: unknown or redacted)
    hardware  device facts, e.g. {"device 0": "NVIDIA H100", "cores": "132"}
    build     versions: git, compiler, driver, runtime, framework
    plans     compile plan name -> description
    slo_ns    latency objective for requests, ns
    """

    source: str = "unknown"
    clock: Clock = "epoch"
    host: str | None = None
    hardware: Mapping[str, str] = field(default_factory=dict)
    build: Mapping[str, str] = field(default_factory=dict)
    plans: Mapping[str, str] = field(default_factory=dict)
    slo_ns: int | None = None
    version: int = CONTRACT_VERSION

    def redacted(self) -> Self:
        """Without the capture host."""
        return replace(self, host=None)

    def to_metadata(self) -> dict[bytes, bytes]:
        """As Arrow schema metadata."""
        fields = {
            "contract_version": self.version,
            "source": self.source,
            "clock": self.clock,
            "host": self.host,
            "hardware": dict(self.hardware),
            "build": dict(self.build),
            "plans": dict(self.plans),
            "slo_ns": self.slo_ns,
        }
        return {METADATA_KEY: json.dumps(fields, allow_nan=False).encode()}

    @classmethod
    def from_metadata(cls, metadata: Mapping[bytes, bytes] | None, where: str) -> Self:
        """Read back; a capture without our key has a default header. Raises TelemetryError when it is malformed."""
        raw = (metadata or {}).get(METADATA_KEY)
        if raw is None:
            return cls()
        if len(raw) > MAX_HEADER_BYTES:
            raise TelemetryError(where, f"header of {len(raw)} bytes is over the 1 MiB limit")
        try:
            fields = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise TelemetryError(where, f"header is not JSON ({error})") from None
        if not isinstance(fields, dict):
            raise TelemetryError(where, "header is not a JSON object")
        return cls._from_fields(fields, where)

    @classmethod
    def _from_fields(cls, fields: dict[str, Any], where: str) -> Self:
        version = fields.get("contract_version", CONTRACT_VERSION)
        if not isinstance(version, int) or version > CONTRACT_VERSION:
            raise TelemetryError(
                where, f"contract version {version} is newer than {CONTRACT_VERSION}", "update fusetui"
            )
        clock = fields.get("clock", "epoch")
        if clock not in ("epoch", "trace"):
            raise TelemetryError(where, f"header clock is {clock!r}, expected epoch or trace")
        slo = fields.get("slo_ns")
        host = fields.get("host")
        return cls(
            source=safe_text(str(fields.get("source", "unknown")), 200),
            clock=cast(Clock, clock),
            host=None if host is None else safe_text(str(host), 200),
            hardware=_texts(fields.get("hardware")),
            build=_texts(fields.get("build")),
            plans=_texts(fields.get("plans")),
            slo_ns=slo if isinstance(slo, int) and 0 < slo < 1 << 62 else None,
            version=version,
        )


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {safe_text(str(k), 200): safe_text(str(v), 2000) for k, v in value.items()}
