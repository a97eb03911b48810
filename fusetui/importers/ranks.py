"""Several captures of one job, one per rank, merged into one in time order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from fusetui.importers.capture import Capture
from fusetui.importers.merge import merged
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import SCHEMA

_MAX_RANKS: Final = 4096
_HOST: Final = SCHEMA.get_field_index("host")


def merge_ranks(captures: Sequence[tuple[str, Capture]]) -> Capture:
    """One capture out of (file stem, capture) pairs; `host` says the rank, device numbers stay as they are.

    Raises TelemetryError when some count from the epoch and some do not, since they cannot be put side by side.
    """
    if len(captures) > _MAX_RANKS:
        raise TelemetryError(f"{len(captures)} files", f"more than {_MAX_RANKS} ranks", "open fewer")
    clocks = {capture.header.clock for _, capture in captures}
    if len(clocks) > 1:
        odd = next(stem for stem, capture in captures if capture.header.clock == "trace")
        raise TelemetryError(odd, "has no time since the epoch, the other ranks do", "open it alone")
    labels = _labels(captures)
    notes = [f"{label}: {note}" for label, (_, c) in zip(labels, captures, strict=True) for note in c.notes]
    if clocks == {"trace"}:
        notes.append("the ranks have no common clock: each counts from its own start")
    parts = [_labelled_part(capture.batches, label) for label, (_, capture) in zip(labels, captures, strict=True)]
    return Capture(_header(labels, [c for _, c in captures]), merged(parts), notes)


def _labels(captures: Sequence[tuple[str, Capture]]) -> list[str]:
    """ "rank 0" where the capture knows it and no other claims it too, else the file stem, made unique."""
    ranks = [capture.rank for _, capture in captures]
    labels: list[str] = []
    for (stem, _), rank in zip(captures, ranks, strict=True):
        label = f"rank {rank}" if rank is not None and ranks.count(rank) == 1 else stem
        labels.append(label if label not in labels else f"{label} ({len(labels)})")
    return labels


def _header(labels: Sequence[str], captures: Sequence[Capture]) -> Header:
    first = captures[0].header
    hardware = {
        f"{label} {name}": fact
        for label, capture in zip(labels, captures, strict=True)
        for name, fact in capture.header.hardware.items()
    }
    hosts = {capture.header.host for capture in captures}
    return Header(
        source=first.source,
        clock=first.clock,
        host=first.host if len(hosts) == 1 else None,
        hardware=hardware,
        build={**first.build, "ranks": str(len(captures))},
    )


def _labelled_part(part: Iterator[pa.RecordBatch], label: str) -> Iterator[pa.RecordBatch]:
    for batch in part:
        yield _labelled(batch, label)


def _labelled(batch: pa.RecordBatch, label: str) -> pa.RecordBatch:
    codes = pa.repeat(pa.scalar(0, pa.int16()), batch.num_rows)
    return batch.set_column(_HOST, SCHEMA.field(_HOST), pa.DictionaryArray.from_arrays(codes, pa.array([label])))
