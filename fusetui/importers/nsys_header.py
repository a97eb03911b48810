"""Where and with which versions an Nsight Systems export was captured."""

from __future__ import annotations

from typing import Final

from fusetui.importers.sqlitefile import Database
from fusetui.telemetry.header import Header
from fusetui.telemetry.text import safe_text

_VERSIONS: Final = {
    "EXPORT_PRODUCT_VERSION": "nsys",
    "EXPORT_SCHEMA_VERSION": "schema",
    "NvDriverVersion": "driver",
    "CudaDriverVersion": "CUDA driver",
}
_EARLIEST_NS: Final = 10**17
_LATEST_NS: Final = 1 << 61


def header_of(db: Database) -> Header:
    """Devices, host and versions; what the export does not say is left out."""
    facts = db.facts("META_DATA_EXPORT", list(_VERSIONS))
    facts |= db.facts("TARGET_INFO_SYSTEM_ENV", [*_VERSIONS, "Hostname"])
    host = facts.pop("Hostname", None)
    return Header(
        source="nsys",
        clock="trace" if epoch_ns(db) is None else "epoch",
        host=None if host is None else safe_text(host, 200),
        hardware=_devices(db),
        build={_VERSIONS[key]: safe_text(value, 200) for key, value in facts.items()},
    )


def epoch_ns(db: Database) -> int | None:
    """When the capture's time 0 was, ns since 1970; None when the export does not say."""
    if "utcEpochNs" not in db.tables.get("TARGET_INFO_SESSION_START_TIME", ()):
        return None
    for (value,) in db.rows("select utcEpochNs from TARGET_INFO_SESSION_START_TIME", limit=1):
        if isinstance(value, int) and _EARLIEST_NS < value < _LATEST_NS:
            return value
    return None


def _devices(db: Database) -> dict[str, str]:
    columns = db.tables.get("TARGET_INFO_GPU", frozenset())
    if not {"id", "name"} <= columns:
        return {}
    extra = [name if name in columns else "null" for name in ("smCount", "memoryBandwidth")]
    found: dict[str, str] = {}
    for device, name, cores, bandwidth in db.rows(f"select id, name, {', '.join(extra)} from TARGET_INFO_GPU"):
        parts = [str(name)]
        if isinstance(cores, int) and cores > 0:
            parts.append(f"{cores} SMs")
        if isinstance(bandwidth, int) and bandwidth > 0:
            parts.append(f"{bandwidth / 1e9:.0f} GB/s")
        found[safe_text(f"device {device}", 40)] = safe_text(", ".join(parts), 200)
    return found
