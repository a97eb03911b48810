"""What a report is made from, out of one capture: read once, measured, judged, and asked for causes."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fusetui.commands.inputs import capture_path, open_trace
from fusetui.commands.progress import finish_reading
from fusetui.commands.report_model import Read, causes_of_twin, mapping_of, skips, twin_of_rows

if TYPE_CHECKING:
    from fusetui.analysis.expression.rows import Rows
    from fusetui.triage.report.material import Bookmarked, Decided, Material, TraceFile
    from fusetui.triage.report.redact import Redactor


def material_of(args: argparse.Namespace) -> tuple[Material, Rows]:
    """Everything a report tells, and the rows it was told from. Raises TelemetryError, FilterError."""
    from fusetui.analysis.compare import compare
    from fusetui.analysis.compare.comparison import changes_within
    from fusetui.commands.quality import quality_of
    from fusetui.triage.judge import triage
    from fusetui.triage.owners import load_owners
    from fusetui.triage.report.material import Material

    owners, files = load_owners(args.owners), _files(args.trace)
    before = _baseline(args).scope() if args.baseline else None
    read = _read(args)
    scope = read.kept.scope()
    quality, unread = ((), ()) if before is None else quality_of(args, before, scope)
    _step("simulating what caused the tail")
    causes = "not asked for: --no-causes" if skips(args, "causes") else causes_of_twin(read.twin)
    asked = None if isinstance(causes, str) else causes
    base = None if before is None else before.snapshot
    judged = triage(scope.snapshot, asked, read.header, baseline=base, owners=owners)
    changes, changes_why = changes_within(scope)
    _step("trying bounded changes")
    mapping, notes = (None, ["no changes were tried: --no-retune"]) if skips(args, "retune") else mapping_of(args, read)
    bookmarks, decided = _kept(args.trace)
    _step("")
    return Material(
        spec=args.trace,
        files=files,
        rows=read.rows,
        first_ns=read.first_ns,
        header=read.header,
        snapshot=scope.snapshot,
        triage=judged,
        causes=causes,
        window_ns=args.window,
        filter=args.filter or "",
        hardware=args.hardware or "",
        changes=changes,
        changes_why=changes_why,
        baseline=args.baseline or "",
        comparison=None if before is None else compare(before, scope),
        quality=quality,
        options=_skipped(args),
        quality_options=_quality_options(args),
        mapping=mapping,
        bookmarks=bookmarks,
        decided=decided,
        notes=(*read.kept.notes, *unread, *notes),
    ), read.kept


def _read(args: argparse.Namespace) -> Read:
    from fusetui.analysis.expression.rows import rows_of
    from fusetui.analysis.filter import parse_filter
    from fusetui.analysis.twin.requests import frame_of

    only = parse_filter(args.filter or "")
    trace = open_trace([args.trace], args)
    try:
        finish_reading(trace)
        index = trace.index()
        first_ns = int(index.first_ns.min()) if len(index.rows) else 0
        kept = rows_of(trace, window_ns=args.window, only=only)
        _step("measuring" if args.quick else "measuring and building a model of the trace")
        frame = None if skips(args, "causes") and skips(args, "retune") else frame_of(kept.scope().batches)
        twin = twin_of_rows(trace, frame, args)
        return Read(trace.header, int(index.rows.sum()), first_ns, kept, frame, twin)
    finally:
        trace.close()


def _skipped(args: argparse.Namespace) -> tuple[str, ...]:
    if args.quick:
        return ("--quick",)
    return tuple(f"--no-{what}" for what in ("causes", "retune") if skips(args, what))


def _quality_options(args: argparse.Namespace) -> tuple[str, ...]:
    named = (("--quality", args.quality), ("--max-quality-drop", args.max_quality_drop))
    return tuple(word for option, value in named if value is not None for word in (option, value))


def _step(what: str) -> None:
    """What takes seconds says so, on a terminal's standard error only."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{what}{' …' if what else ''}", end="", file=sys.stderr, flush=True)


def redactor_of(material: Material, read: Rows) -> tuple[Redactor, Material]:
    """What takes names out, and the material with commands that name pseudonyms."""
    from fusetui.triage.report.redact import Redactor, names_in

    header = material.header
    known = [("host", header.host)] if header.host else []
    known += [pair for facts in (header.build, header.hardware) for pair in names_in(facts)]
    known += [("host", word) for word in read.scope().reader.hosts.words if word]
    redactor = Redactor(known)
    options = material.quality_options
    quality = options[1] if options[:1] == ("--quality",) else ""
    spec, baseline, told = (
        _stand_in(redactor, word, name)
        for word, name in (("trace", material.spec), ("baseline", material.baseline), ("quality", quality))
    )
    options = ("--quality", told, *options[2:]) if quality else options
    return redactor, replace(material, spec=spec, baseline=baseline, quality_options=options)


def _stand_in(redactor: Redactor, word: str, name: str) -> str:
    """What a file is called instead: `trace-1.arrows`."""
    if not name or name.startswith("sample:"):
        return name
    path = Path(name)
    told = f"{word}-1{''.join(s for s in path.suffixes if s[1:].isalpha())}"
    for form in (str(path.absolute()), str(path.resolve()), name, path.name):
        redactor.stand_in(word, form, told)
    return told


def _baseline(args: argparse.Namespace) -> Rows:
    from fusetui.analysis.expression.rows import rows_of
    from fusetui.analysis.filter import parse_filter

    trace = open_trace([args.baseline], args)
    try:
        finish_reading(trace)
        return rows_of(trace, window_ns=args.window, only=parse_filter(args.filter or ""))
    finally:
        trace.close()


def _files(spec: str) -> tuple[TraceFile, ...]:
    """One: of a recording in segments, or of a folder, it is the hash of all of it."""
    from fusetui.telemetry.errors import TelemetryError
    from fusetui.telemetry.filehash import hash_of_captures
    from fusetui.triage.report.material import TraceFile

    path = capture_path(spec)
    try:
        size = path.stat().st_size if path.is_file() else None
    except OSError as error:
        raise TelemetryError(spec, f"cannot be read ({error.strerror})") from None
    return (TraceFile(path.name, hash_of_captures([path]), size),)


def _kept(spec: str) -> tuple[tuple[Bookmarked, ...], tuple[Decided, ...]]:
    """The bookmarks and decisions of those who watched this capture."""
    from fusetui.app.bookmarks import Bookmarks
    from fusetui.app.decisions import Decisions
    from fusetui.commands.replay import capture_key
    from fusetui.triage.report.material import Bookmarked, Decided

    key = capture_key([spec])
    marks = tuple(Bookmarked(mark.t0_ns, mark.t1_ns, mark.label, mark.filter) for mark in Bookmarks(key).all)
    taken = tuple(
        Decided(one.at, one.finding, one.owner, one.status, one.fix, one.rollback, one.guardrail)
        for one in Decisions(key).all
    )
    return marks, taken
