"""What was found, what to do about it, and what nobody knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fusetui.analysis.fmt import DASH
from fusetui.triage.report.blocks import Block, Bullets, Command, Facts, Section, Table, Text
from fusetui.triage.report.words import fact, ns, pct, precise

Told = Mapping[str, Any]
_IN_FULL: Final = 8
"""Findings told with their evidence; the others have a line each."""
_LINES: Final = 40


def findings_sections(told: Told) -> Iterator[Section]:
    """Ranked: a table of all, then the first of them with their evidence."""
    found = told["findings"]
    if not found:
        yield Section("Findings", (Text("None: no rule found anything in this window."),))
        return
    rows = tuple(
        (str(place), one["severity"], one["id"], one["sentence"], pct(one["share"]), pct(one["cause"]),
         one["confidence"], one["owner"].partition(";")[0])
        for place, one in enumerate(found[:_LINES], 1)
    )  # fmt: skip
    left = len(found) - len(rows)
    # Without a model a share is counted from what is slow: no cause until it was tried without.
    asked = not told["attribution"].get("causes", {}).get("why", "no latency")
    share = "cause share" if asked else "share, with what waits behind it"
    head = ("", "severity", "rule", "what", "beyond the median", share, "how sure", "owner")
    more = (Text(f"and {left} more, see the JSON form"),) if left else ()
    yield Section("Findings", (Table(head, rows, (0, 4, 5)), *more, *_of_report(told)))
    for place, one in enumerate([one for one in found if one["severity"] != "info"][:_IN_FULL], 1):
        yield _finding(place, one)


def _finding(place: int, one: Told) -> Section:
    evidence = tuple(
        (row["text"], fact(row["value"], row["unit"]), ", ".join(row["columns"])) for row in one["evidence"]
    )
    about = [
        ("severity", one["severity"]),
        ("owner", one["owner"]),
        ("how sure", f"{one['confidence']}: {one['confidence_why']}"),
    ]
    about += [("stage", one["stage"])] if one["stage"] else []
    about += [("since", one["since"])] if one["since"] else []
    about += [("contradicts", ", ".join(one["contradicts"]))] if one["contradicts"] else []
    about += [("look at", one["next_action"])] if one["next_action"] else []
    blocks: list[Block] = [Text(f"{one['sentence']}."), Facts(tuple(about))]
    blocks += [Table(("evidence", "value", "columns"), evidence, (1,))] if evidence else []
    blocks += [Bullets(tuple(f"does not prove {text}" for text in one["does_not_prove"]))]
    return Section(f"{place}. {one['id']}", (*blocks, Command(one["replay"]), Command(one["slice_command"])), 3)


def _of_report(told: Told) -> tuple[Command, ...]:
    command = next((f["command"] for f in told["figures"] if f["at"].startswith("trend.")), "")
    return (Command(command, "findings"),) if command else ()


def contradictions_section(told: Told) -> Section:
    """Findings that say another number is not to be read as it stands; and those of the comparison."""
    found = [one for one in told["findings"] if one["topic"] == "contradiction" or one["contradicts"]]
    lines = [one["sentence"] + _against(one["contradicts"]) for one in found]
    lines += [] if told["comparison"] is None else told["comparison"]["contradictions"]
    return Section("Contradictions", (Bullets(tuple(lines)) if lines else Text("None found."),))


def _against(ids: Sequence[str]) -> str:
    return f" (speaks against {', '.join(ids)})" if ids else ""


def decisions_section(told: Told) -> Section:
    """Each change with owner, undo and guardrail; then what was decided."""
    blocks: list[Block] = []
    for place, one in enumerate(told["decisions"], 1):
        expected = _expected(one["expected"])
        findings = f" ({', '.join(one['findings'])})" if one["findings"] else ""
        blocks.append(Text(f"{place}. {one['change']}{findings}"))
        about = (("owner", one["owner"]), ("expected", expected), ("rollback", one["rollback"]),
                 ("why" if findings == "" else "first", one["next"]), ("guardrail", one["guardrail"]))  # fmt: skip
        blocks += [Facts(about), Command(one["guard_command"])]
    if not blocks:
        blocks.append(Text("Nothing to decide: no finding above a note names a change."))
    if told["decided"]:
        head = ("decided", "finding", "owner", "status", "change", "rollback", "guardrail")
        keys = ("at", "finding", "owner", "status", "change", "rollback", "guardrail")
        blocks.append(Table(head, tuple(tuple(one[key] for key in keys) for one in told["decided"])))
    return Section("Decisions", tuple(blocks))


def rollout_section(told: Told) -> Section:
    """Whether to roll out: throughput, latency and quality together, and what of them is missing."""
    rollout = told["rollout"]
    reasons = [(kind, text) for kind in ("against", "missing", "holds") for text in rollout[kind]]
    blocks: list[Block] = [Text(f"{rollout['verdict'].upper()}.")]
    blocks += [Bullets(tuple(f"{kind}: {text}" for kind, text in reasons))] if reasons else []
    if rollout["quality"]:
        head = ("quality", "before", "after", "worse by", "95 % interval", "n", "better", "")
        blocks.append(Table(head, tuple(_reading(one) for one in rollout["quality"]), (1, 2, 3, 4, 5)))
    if told["comparison"] is not None and rollout["quality"]:
        blocks.append(Command(told["comparison"]["command"], "compared.0.rollout.quality"))
    return Section("Rollout", tuple(blocks))


def _reading(one: Told) -> tuple[str, ...]:
    known = one["low"] is not None and one["high"] is not None
    interval = f"{one['low']:+.2%} … {one['high']:+.2%}" if known else DASH
    worse = DASH if one["worse_by"] is None else f"{one['worse_by']:+.2%}"
    return (one["name"], precise(one["before"]), precise(one["after"]), worse, interval,
            f"{one['n_before']:,}, {one['n_after']:,}", one["better"], one["verdict"])  # fmt: skip


def _expected(expected: Any) -> str:
    if isinstance(expected, str):
        return expected
    before, after = expected["before"], expected["after"]
    if before is None or after is None or after["p99_ns"] is None:
        return str(expected["state"])
    state = {"verified": "by simulation", "measured": "measured in another capture"}[expected["state"]]
    return f"p99 {ns(before['p99_ns'])} → {ns(after['p99_ns'])}, {state}"


def matrix_section(told: Told) -> Section:
    """Five kinds of evidence, whether the trace has them or not."""
    rows = tuple(
        (row["kind"], row["presence"], row["have"], row["tells"], row["does_not_prove"], row["next_action"])
        for row in told["matrix"]
    )
    head = ("evidence", "here", "what there is", "tells", "does not prove", "next")
    return Section("Evidence matrix", (Table(head, rows),))


def limits_section(told: Told) -> Section:
    """What none of this proves."""
    return Section("Limits", (Bullets(tuple(told["limits"])),))
