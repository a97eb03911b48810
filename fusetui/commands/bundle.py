"""`fusetui bundle`: one zip for a ticket: the rows, the report in every form, findings, bookmarks and their hashes."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from fusetui.commands.bundle_screens import screens_of
from fusetui.commands.inputs import say
from fusetui.commands.report import EXIT_USAGE, answer, refused, rendered

if TYPE_CHECKING:
    import pyarrow as pa

    from fusetui.analysis.expression.rows import Rows
    from fusetui.triage.report.material import Material

_BEGIN_OF_TIME: Final = (1980, 1, 1, 0, 0, 0)
"""The only time in the file: the same trace makes the same bytes."""
_MODE: Final = 0o600
_OURS: Final = ("kind", "mapping", "unit")
"""Columns whose words are of the contract, not of a machine."""


def run(args: argparse.Namespace) -> int:
    """Write the bundle; exit codes as for `fusetui report`."""
    from fusetui.analysis.filter import FilterError
    from fusetui.commands.output import write_whole

    target = Path(args.output)
    if problem := refused(args, target):
        say(f"fusetui: {problem}")
        return EXIT_USAGE
    try:
        report, members = bundled(args)
    except FilterError as error:
        say(f"fusetui: --filter\n{error}")
        return EXIT_USAGE
    write_whole(target, lambda sink: _zip(sink, members))
    # It may hold names of machines and models: for the eyes of whoever made it until they hand it on.
    os.chmod(target, _MODE)
    say(f"wrote {target}: {', '.join(members)}")
    return answer(args, report)


def bundled(args: argparse.Namespace) -> tuple[dict[str, Any], dict[str, bytes]]:
    """(the report, bytes of the members by name, the manifest last). Raises TelemetryError, FilterError."""
    from fusetui.commands.report_material import material_of, redactor_of
    from fusetui.triage.report.content import report_of

    material, read = material_of(args)
    rename: Callable[[str], str] = str
    if args.redact:
        rename, material = redactor_of(material, read)
    report = report_of(material, rename)
    members = {
        "report.md": rendered(report, "markdown").encode(),
        "report.html": rendered(report, "html").encode(),
        "report.json": rendered(report, "json").encode(),
        "findings.json": _json({key: report[key] for key in ("trace", "window", "verdict", "findings", "matrix")}),
    }
    if report["bookmarks"]:
        members["bookmarks.json"] = _json(report["bookmarks"])
    content, members["slice.arrows"] = _slice(material, read, rename)
    if args.screens:
        members |= screens_of(members["slice.arrows"])
    members["manifest.json"] = _json(_manifest(report, members, content, args.redact))
    return report, members


def _manifest(report: Mapping[str, Any], members: Mapping[str, bytes], content: str, redacted: bool) -> dict[str, Any]:
    return {
        "bundle_version": 1,
        "fusetui": report["fusetui"],
        "redacted": redacted,
        "trace": report["trace"]["files"],
        "window": report["window"],
        "slice_content": content,
        "members": [
            {"name": name, "sha256": sha256(data).hexdigest(), "size_bytes": len(data)}
            for name, data in sorted(members.items())
        ],
    }


def _slice(material: Material, read: Rows, rename: Callable[[str], str]) -> tuple[str, bytes]:
    """(content hash, the rows of the report as a contract file)."""
    from fusetui.telemetry.contenthash import ContentHash
    from fusetui.telemetry.export import write_arrows

    content = ContentHash()
    for batch in _rows(read, rename):
        content.add(batch)
    header, snapshot = material.header, material.snapshot
    about = {
        "slice of": ", ".join(rename(file.name) for file in material.files),
        "slice of sha256": ", ".join(file.sha256 for file in material.files),
        "slice from ns": str(snapshot.window_start_ns),
        "slice to ns": str(snapshot.now_ns),
        "slice filter": rename(material.filter),
        "slice content": content.digest(),
    }
    told = replace(
        header,
        source=rename(header.source),
        host=None if header.host is None else rename(header.host),
        hardware=_facts(header.hardware, rename),
        build={**_facts(header.build, rename), **about},
        plans=_facts(header.plans, rename),
    )
    sink = BytesIO()
    write_arrows(sink, told, _rows(read, rename))
    return content.digest(), sink.getvalue()


def _facts(facts: Mapping[str, str], rename: Callable[[str], str]) -> dict[str, str]:
    return {rename(name): rename(value) for name, value in facts.items()}


def _rows(read: Rows, rename: Callable[[str], str]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    for batch in read.scope().batches:
        if rename is str:
            yield batch
            continue
        columns = [
            column if name in _OURS else _renamed(column, rename)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _renamed(column: pa.Array, rename: Callable[[str], str]) -> pa.Array:
    """A column of words with other words."""
    import pyarrow as pa

    if not isinstance(column.type, pa.DictionaryType):
        return column
    words = pa.array([word if word is None else rename(word) for word in column.dictionary.to_pylist()], pa.utf8())
    return pa.DictionaryArray.from_arrays(column.indices, words)


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n").encode()


def _zip(sink: IO[bytes], members: Mapping[str, bytes]) -> int:
    """The members with fixed times, owners and modes; returns how many."""
    with ZipFile(sink, "w") as file:
        for name, data in members.items():
            entry = ZipInfo(name, _BEGIN_OF_TIME)
            entry.create_system, entry.external_attr = 3, _MODE << 16
            # The rows are packed already.
            entry.compress_type = ZIP_STORED if name.endswith(".arrows") else ZIP_DEFLATED
            file.writestr(entry, data)
    return len(members)
