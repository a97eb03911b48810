"""What `fusetui plan` prints: the worksheet, the plan beside what ran, and notes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fusetui.accelerator.plan import Plans
from fusetui.commands import worksheet

if TYPE_CHECKING:
    from fusetui.accelerator.hardware import Hardware
    from fusetui.analysis.planned import Captured, GroupRow

_HEAD = ("predicted", "measured p50", "residual", "verdict", "group")


def render(
    args: argparse.Namespace,
    plans: Plans,
    hw: Hardware,
    captured: Captured | None,
    notes: Sequence[str],
    options: worksheet.Options | None = None,
) -> str:
    """One document in the form that `args` asks for; `options` are the tiles to choose between, by group."""
    rows: tuple[GroupRow, ...] = ()
    if captured is not None:
        from fusetui.analysis.residuals import group_rows

        rows = group_rows(plans.plans[args.policy], captured, hw)
    if args.json:
        sheet: dict[str, Any] = json.loads(worksheet.as_json(plans, args.policy, options))
        sheet["notes"] = list(notes)
        if captured is not None:
            sheet["measured"] = [_row_json(row) for row in rows]
        return json.dumps(sheet, indent=2)
    written = worksheet.as_markdown if args.markdown else worksheet.as_text
    parts = [written(plans, args.policy, options)]
    if captured is not None:
        share = captured.explained_ns / captured.window_ns if captured.window_ns else 0.0
        heading = f"predicted beside measured ({share:.0%} of the device time in the capture is in the graph)"
        parts += [f"## {heading}\n" if args.markdown else heading, _table(rows, piped=args.markdown)]
    if notes:
        bullet = "- " if args.markdown else "note: "
        parts += ["\n".join(bullet + note for note in notes)]
    return "\n\n".join(parts)


def _row_json(row: GroupRow) -> dict[str, Any]:
    return {
        "ops": list(row.plan.ops),
        "predicted_ns": row.plan.predicted_ns,
        "measured": None if row.measured is None else asdict(row.measured),
        "residual": row.residual,
        "verdict": row.verdict,
    }


def _table(rows: Sequence[GroupRow], *, piped: bool) -> str:
    cells = [
        (
            f"{row.plan.predicted_ns / 1e3:.1f} µs",
            "—" if row.measured is None else f"{row.measured.p50_ns / 1e3:.1f} µs",
            "—" if row.residual is None else f"{row.residual:+.0%}",
            row.verdict or "—",
            " + ".join(row.plan.ops),
        )
        for row in rows
    ]
    if piped:
        return "\n".join("| " + " | ".join(line) + " |" for line in (_HEAD, ("---",) * len(_HEAD), *cells))
    widths = [max(len(line[i]) for line in (_HEAD, *cells)) for i in range(len(_HEAD) - 1)]
    return "\n".join(
        "  ".join([*(cell.rjust(w) for cell, w in zip(line, widths, strict=False)), line[-1]])
        for line in (_HEAD, *cells)
    )
