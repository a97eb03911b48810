"""The sections of a report, in the order in which someone on call asks: what, since when, why, what to do, how sure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final

from fusetui.triage.report.blocks import Bars, Block, Command, Document, Facts, Line, Section, Table, Text
from fusetui.triage.report.sections_act import (
    contradictions_section,
    decisions_section,
    findings_sections,
    limits_section,
    matrix_section,
    rollout_section,
)
from fusetui.triage.report.sections_baseline import baseline_section
from fusetui.triage.report.sections_plan import mapping_section
from fusetui.triage.report.words import ns, pct, quantile, whole

Told = Mapping[str, Any]
_STATE: Final = {"breach": "BREACH", "warn": "LOOK", "quiet": "QUIET", "not enough data": "NOT ENOUGH DATA"}
_PLANS: Final = 12
_LEAST: Final = 0.005
"""Share below which a part of the time is not worth a line."""


def document_of(told: Told) -> Document:
    """What `report_of` told, as a document."""
    verdict, trace = told["verdict"], told["trace"]
    state = _STATE[verdict["state"]]
    of = f"{verdict['bottleneck']}: " if verdict["bottleneck"] else ""
    title = f"{of}triage of {PurePath(trace['spec']).name}"
    sections = (
        _in_brief(told), _build(told), _trend(told), _timeline(told), _moved(told), baseline_section(told),
        _stages(told), *findings_sections(told), contradictions_section(told), decisions_section(told),
        rollout_section(told), mapping_section(told), matrix_section(told), limits_section(told), _reproduce(told),
    )  # fmt: skip
    simulated = " Simulated trace: no number is of a real device." if trace["simulated"] else ""
    sentence = f"{state}: {verdict['sentence']}.{simulated}"
    footer = f"fusetui {told['fusetui']}, report version {told['report_version']}"
    return Document(title, verdict["state"], sentence, tuple(section for section in sections if section), footer)


def _command_of(told: Told, at: str) -> tuple[Command, ...]:
    """The command of the first figure that stands under `at` in what it prints."""
    found = next((figure for figure in told["figures"] if figure["at"].startswith(f"{at}.")), None)
    return () if found is None else (Command(found["command"], at),)


def _in_brief(told: Told) -> Section:
    verdict, trend, measures = told["verdict"], told["trend"], told["measures"]
    act = told["decisions"][0] if told["decisions"] else None
    window = told["window"]
    rows = [
        ("began", f"{trend['first_bad'] or 'no bad moment'} ({trend['first_bad_how']})"),
        ("window", f"{window['from']} to {window['to']}{_limited(window)}"),
    ]
    if trend["slo_ns"] is not None:
        rows.append(("objective", f"{ns(trend['slo_ns'])} of {trend['of']} latency"))
    if act is not None:
        rows += [("change", act["change"]), ("owner", act["owner"]), ("undo", act["rollback"])]
    if verdict["next"]:
        rows.append(("look at", verdict["next"]))
    table = Table(
        ("", "p50", "p95", "p99", "n"),
        tuple(
            (name, *(quantile(measures[key], q) for q in ("p50", "p95", "p99")), whole(measures[key]["n"]))
            for name, key in (
                (f"{trend['of']} latency", "latency_ns"),
                ("queue wait of executions", "queue_wait_ns"),
                ("service of executions", "service_ns"),
            )
            if measures[key]["n"]
        ),
        (1, 2, 3, 4),
    )
    return Section("In brief", (Facts(tuple(rows)), table, *_command_of(told, "latency_ns"), *_open(measures)))


def _limited(window: Told) -> str:
    if window["whole_trace"]:
        return ", the whole trace"
    return f", rows where {window['filter']}" if window["filter"] else ", the last part of the trace"


def _open(measures: Told) -> tuple[Block, ...]:
    waiting = measures["open_waiting"]
    if not waiting:
        return ()
    return (Text(f"{whole(waiting)} were still waiting, the oldest for {ns(measures['oldest_open_ns'])}."),)


def _build(told: Told) -> Section:
    trace = told["trace"]
    rows = [("trace", trace["spec"])]
    for file in trace["files"]:
        size = "a folder" if file["size_bytes"] is None else f"{whole(file['size_bytes'])} bytes"
        rows.append(("sha256", f"{file['sha256']} ({file['name']}, {size})"))
    rows.append(("rows", whole(trace["rows"])))
    rows.append(("source", f"{trace['source']}, {'UTC' if trace['clock'] == 'epoch' else 'clock from its begin'}"))
    rows += [("host", trace["host"])] if trace["host"] else []
    rows += [(pair["name"], pair["value"]) for pair in (*trace["hardware"], *trace["build"])]
    plans = trace["plans"]
    rows += [(f"plan {pair['name']}", pair["value"]) for pair in plans[:_PLANS]]
    rows += [("plans", f"and {len(plans) - _PLANS} more, see the JSON form")] if len(plans) > _PLANS else []
    rows.append(("objective", "none is set" if trace["slo_ns"] is None else ns(trace["slo_ns"])))
    rows.append(("fusetui", told["fusetui"]))
    return Section("Build and run", (Facts(tuple(rows)),))


def _trend(told: Told) -> Section | None:
    trend, window = told["trend"], told["window"]
    if not any(value is not None for value in trend["p99_ns"]):
        return None
    title = f"p99 of {trend['of']} latency per {ns(trend['slot_ns'])}"
    line = Line(
        title, trend["start_ns"], trend["p99_ns"], trend["slo_ns"], trend["first_bad_ns"],
        (window["from"], window["to"]),
    )  # fmt: skip
    few = sum(0 < n < 100 for n in trend["n"])
    told_of = f"In {few} of {sum(n > 0 for n in trend['n'])} slots fewer than 100 ended: there it is the slowest one."
    note = (Text(told_of),) if few else ()
    return Section("Trend", (line, *note, *_command_of(told, "trend")))


def _timeline(told: Told) -> Section | None:
    rows = tuple((row["at"], row["event"], row["by"]) for row in told["timeline"])
    return Section("Timeline", (Table(("when", "what", "known from"), rows),)) if rows else None


def _moved(told: Told) -> Section | None:
    attribution = told["attribution"]
    if "cohorts" not in attribution:
        return None
    name = "p95" if attribution["cohorts"]["p99"] is None else "p99"
    slowest, median = attribution["cohorts"][name], attribution["cohorts"]["median"]
    causes = attribution["causes"]
    all_ns = None if causes["why"] else causes[name]["as_is_ns"]
    rows = [row for row in attribution["columns"][name] if row["share_ns"] or row["time_share"] >= _LEAST]
    head = ("part or driver", "time of the slowest", "of the median", "time share", f"{name} without it", "cause share")
    known = 4 if causes["why"] else len(head)
    table = Table(
        head[:known],
        tuple(
            (row["name"], ns(row["time_ns"]), ns(row["median_ns"]), pct(row["time_share"]), ns(row["without_ns"]),
             pct(_of(row["share_ns"], all_ns)))[:known]
            for row in rows
        ),
        tuple(range(1, known)),
    )  # fmt: skip
    bars = Bars(
        f"what {name} is made of",
        ("time share", "" if causes["why"] else "cause share"),
        tuple((row["name"], row["time_share"], _of(row["share_ns"], all_ns)) for row in rows),
    )
    text = (
        f"{whole(slowest['n'])} {attribution['of']}s from {name} up took {ns(slowest['latency_ns'])} on average, the "
        f"median {ns(median['latency_ns'])}. {_caused(causes, name)}"
    )
    commands = (*_command_of(told, f"attribution.cohorts.{name}"), *_command_of(told, f"attribution.causes.{name}"))
    return Section("What moved and why", (Text(text), bars, table, *commands))


def _of(share_ns: float | None, all_ns: float | None) -> float | None:
    return share_ns / all_ns if share_ns is not None and all_ns else None


def _caused(causes: Told, name: str) -> str:
    if causes["why"]:
        return f"Causes are not known: {causes['why']}."
    at = causes[name]
    who = f"{at['named']} is to be named first" if at["named"] else "no driver stands out"
    return (
        f"By the model ({causes['fit']}) {name} is {ns(at['as_is_ns'])}, {ns(at['without_all_ns'])} without all of "
        f"these; {who}."
    )


def _stages(told: Told) -> Section | None:
    attribution = told["attribution"]
    stages = attribution.get("stages")
    if not stages:
        return None
    of = "the objective" if attribution["budget_of"] == "slo" else "what is calm in this trace"
    first = attribution["first_stage"]
    left = {row["event"].removesuffix(" left its budget"): row["at"] for row in told["timeline"]}
    text = f"By {of}, {first or 'no stage'} left its budget{' first' if first else ''}."
    rows = tuple(
        (stage["stage"], ns(stage["budget_ns"]), ns(stage["worst_ns"]),
         "never" if stage["left_ns"] is None else left.get(stage["stage"], "—"))
        for stage in stages
    )  # fmt: skip
    table = Table(("stage", "budget", "most in one slice", "left its budget"), rows, (1, 2))
    found = _command_of(told, "attribution")
    return Section("Which path consumed its budget first", (Text(text), table, *found))


def _reproduce(told: Told) -> Section:
    return Section("Reproduce", tuple(Command(command) for command in _commands(told)))


def _commands(told: Told) -> Iterator[str]:
    yield from dict.fromkeys(figure["command"] for figure in told["figures"])
