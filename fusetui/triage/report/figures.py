"""The figures of a report, each with the command that prints it again and where it stands in that command's JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fusetui.triage.report.material import Material
from fusetui.triage.report.reproduce import Commands

Figure = dict[str, Any]


def figures(m: Material, told: Mapping[str, Any]) -> list[Figure]:
    """Of what was told: `at` is a dotted path into the JSON of `command`, list places as numbers."""
    commands = Commands(m)
    return [
        *_summary(told["measures"], commands.snapshot()),
        *_time(told["attribution"], commands.snapshot()),
        *_causes(told["attribution"], commands.snapshot(causes=True)),
        *_moves(told["comparison"], commands.compare()),
        *_quality(told, commands.compare()),
        *_mapping(told["mapping"], commands.retune()),
        *_report(told, commands.report()),
    ]


def _figure(name: str, value: Any, unit: str, command: str, at: str) -> Figure:
    return {"name": name, "value": value, "unit": unit, "command": command, "at": at}


def _summary(measures: Mapping[str, Any], command: str) -> Iterator[Figure]:
    for key, name in (("latency_ns", "latency"), ("queue_wait_ns", "queue wait"), ("service_ns", "service")):
        for quantile in ("n", "p50", "p95", "p99"):
            value = measures[key][quantile]
            if value is not None:
                yield _figure(
                    f"{name} {quantile}", value, "count" if quantile == "n" else "ns", command, f"{key}.{quantile}"
                )
    for key, name, unit in (
        ("requests", "requests", "count"),
        ("executions", "executions", "count"),
        ("throughput_per_s", "throughput", "1/s"),
    ):
        if measures[key] is not None:
            yield _figure(name, measures[key], unit, command, key)


def _time(attribution: Mapping[str, Any], command: str) -> Iterator[Figure]:
    if "cohorts" not in attribution:
        return
    for name, cohort in attribution["cohorts"].items():
        for part, ns in ({} if cohort is None else cohort["mean_ns"]).items():
            if ns > 0:
                at = f"attribution.cohorts.{name}.mean_ns.{part}"
                yield _figure(f"{part} of {name}", ns, "ns", command, at)
    if attribution["first_stage"] is not None:
        at = "attribution.first_stage"
        yield _figure("first stage over its budget", attribution["first_stage"], "", command, at)


def _causes(attribution: Mapping[str, Any], command: str) -> Iterator[Figure]:
    causes = attribution["causes"]
    if causes["why"]:
        return
    for quantile in ("p95", "p99"):
        for place, row in enumerate(causes[quantile]["drivers"]):
            at = f"attribution.causes.{quantile}.drivers.{place}.share_ns"
            yield _figure(f"{row['name']} in {quantile}", row["share_ns"], "ns", command, at)


def _moves(comparison: Mapping[str, Any] | None, command: str) -> Iterator[Figure]:
    if comparison is None:
        return
    yield _figure("verdict against the baseline", comparison["verdict"], "", command, "compared.0.verdict")
    for place, move in enumerate(comparison["moves"]):
        for bound in ("ratio", "low", "high"):
            if move[bound] is not None:
                name = f"{move['of']} {move['quantile']} after/before, {bound}"
                yield _figure(name, move[bound], "", command, f"compared.0.moves.{place}.{bound}")


def _quality(told: Mapping[str, Any], command: str) -> Iterator[Figure]:
    """The readings only: what breaches an objective is the report's own, and so is its verdict."""
    if told["comparison"] is None:
        return
    for place, reading in enumerate(told["rollout"]["quality"]):
        for key in ("before", "after", "worse_by"):
            if reading[key] is not None:
                name = f"quality {reading['name']}, {key.replace('_', ' ')}"
                yield _figure(name, reading[key], "", command, f"compared.0.rollout.quality.{place}.{key}")


def _mapping(mapping: Mapping[str, Any] | None, command: str) -> Iterator[Figure]:
    if mapping is None:
        return
    for name in ("planned", "adapted", "fallback", "padding", "accuracy", "gain", "fallback_cost_ns"):
        value = mapping["telemetry"][name]
        if value is not None:
            yield _figure(name, value, "ns" if name.endswith("_ns") else "", command, f"runtime_telemetry.{name}")
    for place, plan in enumerate(mapping["offline"]["plans"]):
        name = f"{plan['model']} {plan['policy']} {plan['size']}: predicted"
        yield _figure(name, plan["predicted_ns"], "ns", command, f"offline_profile.plans.{place}.predicted_ns")
    for place, action in enumerate(mapping["actions"]):
        for side in ("before", "after"):
            if action[side] is not None and action[side]["p99_ns"] is not None:
                name = f"{action['title']}: p99 {side}"
                yield _figure(name, action[side]["p99_ns"], "ns", command, f"actions.{place}.{side}.p99_ns")


def _report(told: Mapping[str, Any], command: str) -> Iterator[Figure]:
    trend = told["trend"]
    yield _figure("p99 by slot", trend["p99_ns"], "ns", command, "trend.p99_ns")
    yield _figure("first bad moment", trend["first_bad_ns"], "ns", command, "trend.first_bad_ns")
    for place, finding in enumerate(told["findings"]):
        for at, fact in enumerate(finding["evidence"]):
            name = f"{finding['id']}: {fact['text']}"
            yield _figure(name, fact["value"], fact["unit"], command, f"findings.{place}.evidence.{at}.value")
