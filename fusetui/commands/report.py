"""`fusetui report`: what is wrong with a trace and how that is known, as Markdown, HTML or JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from fusetui.commands.inputs import capture_path, is_live, say
from fusetui.commands.output import in_the_way, write_whole

EXIT_USAGE: Final = 2
EXIT_NOT_ENOUGH: Final = 4
_BY_ENDING: Final = {".html": "html", ".htm": "html", ".json": "json"}


def run(args: argparse.Namespace) -> int:
    """Write one report; 4 when there was too little to judge, which the report says too."""
    from fusetui.analysis.filter import FilterError

    target = None if args.output in (None, "-") else Path(args.output)
    if problem := refused(args, target):
        say(f"fusetui: {problem}")
        return EXIT_USAGE
    try:
        report = told_of(args)
    except FilterError as error:
        say(f"fusetui: --filter\n{error}")
        return EXIT_USAGE
    text = rendered(report, args.form or _BY_ENDING.get(target.suffix.lower() if target else "", "markdown"))
    if target is None:
        print(text, end="")
    else:
        write_whole(target, lambda sink: sink.write(text.encode()))
        say(f"wrote {target}")
    return answer(args, report)


def refused(args: argparse.Namespace, target: Path | None) -> str:
    """Why there can be no report, or it must not be written; "" when it may."""
    for spec in (args.trace, args.baseline):
        if spec and is_live(spec):
            return f"{spec}: a report takes captures; record the source first"
    if args.quality and not args.baseline:
        return f"--quality {args.quality}: quality is compared with that before; give --baseline TRACE too"
    if target is None:
        return ""
    captures = [capture_path(spec) for spec in (args.trace, args.baseline) if spec]
    return in_the_way(target, captures, force=args.force)


def told_of(args: argparse.Namespace) -> dict[str, Any]:
    """The report as plain data. Raises TelemetryError, FilterError."""
    from fusetui.commands.report_material import material_of, redactor_of
    from fusetui.triage.report.content import report_of

    material, read = material_of(args)
    if not args.redact:
        return report_of(material)
    redactor, material = redactor_of(material, read)
    return report_of(material, redactor)


def rendered(report: Mapping[str, Any], form: str) -> str:
    """In one of the forms "markdown", "html", "json"."""
    if form == "json":
        return json.dumps(report, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    from fusetui.triage.report.html import as_html
    from fusetui.triage.report.markdown import as_markdown
    from fusetui.triage.report.sections import document_of

    document = document_of(report)
    return as_html(document) if form == "html" else as_markdown(document)


def answer(args: argparse.Namespace, report: Mapping[str, Any]) -> int:
    """The exit code: too few data never reads as a pass."""
    if report["verdict"]["state"] == "not enough data":
        say(f"fusetui: {args.trace}: {report['verdict']['sentence']}")
        return EXIT_NOT_ENOUGH
    return 0
