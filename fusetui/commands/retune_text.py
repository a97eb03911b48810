"""The closed-loop mapping report for people: Markdown that fits an issue, or lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fusetui.analysis.fmt import DASH, duration, percent, size

_OTHERS = (("instead", "Hold too, instead of one above"), ("rejected", "Rejected"), ("unverified", "Not verified"))
_PLAN = (
    "model", "policy", "size", "kernels", "predicted", "exposed launches", "DRAM", "peak", "burst", "slowest group",
)  # fmt: skip
_STATES = {"verified": "verified by simulation", "measured": "measured in another capture"}


def as_markdown(report: Mapping[str, Any]) -> str:
    """One document."""
    return "\n".join(_lines(report, Markdown()))


def as_text(report: Mapping[str, Any]) -> str:
    """The same in plain lines."""
    return "\n".join(_lines(report, Plain()))


class Markdown:
    """Headings, bullets and tables."""

    def heading(self, text: str, level: int) -> Iterator[str]:
        """A heading with air around it."""
        yield from ("", f"{'#' * level} {_escaped(text)}", "")

    def bullet(self, text: str) -> str:
        """An item."""
        return f"- {_escaped(text)}"

    def code(self, text: str) -> str:
        """A command to copy."""
        return f"- reproduce: `{text.replace('`', '')}`"

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
        """A table of texts."""
        for cells in (head, ("---",) * len(head), *rows):
            yield "| " + " | ".join(_escaped(cell) for cell in cells) + " |"


class Plain(Markdown):
    """For a terminal."""

    def heading(self, text: str, level: int) -> Iterator[str]:
        yield from ("", text.upper() if level == 2 else text)

    def bullet(self, text: str) -> str:
        return f"  {text}"

    def code(self, text: str) -> str:
        return f"  reproduce: {text}"

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
        widths = [max(len(line[i]) for line in (head, *rows)) for i in range(len(head))]
        for line in (head, *rows):
            yield "  " + "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _lines(report: Mapping[str, Any], form: Markdown) -> Iterator[str]:
    simulated = " (simulated trace: no number is of a real device)" if report["simulated"] else ""
    yield from list(form.heading(f"Closed-loop mapping report{simulated}", 1))[1:]
    yield from _header(report, form)
    yield from _offline(report["offline_profile"], form)
    yield from _telemetry(report["runtime_telemetry"], form)
    yield from _actions(report, form)
    if report["notes"]:
        yield from form.heading("What is left out", 2)
        yield from (form.bullet(note) for note in report["notes"])


def _header(report: Mapping[str, Any], form: Markdown) -> Iterator[str]:
    header, window = report["header"], report["window"]
    facts = {"source": header["source"], **header["hardware"], **header["build"]}
    yield from (form.bullet(f"{name}: {value}") for name, value in facts.items())
    span = duration(window["to_ns"] - window["from_ns"]).strip()
    yield form.bullet(f"window: {span}, {window['requests']:,} requests, {window['executions']:,} executions")
    model = report["model"]
    if model["twin"]:
        kind = "the scenario's own tables" if model["exact"] else "fitted to telemetry"
        yield form.bullet(f"model: {kind}; {model['fit']['text']}")
    else:
        yield form.bullet(f"model: none, so nothing is verified: {model['why_not']}")


def _offline(offline: Mapping[str, Any], form: Markdown) -> Iterator[str]:
    yield from form.heading("Offline profile", 2)
    if offline["plans"]:
        yield form.bullet(f"{offline['from']}, on {offline['hardware']}; all figures are the model's, uncalibrated")
        yield ""
        rows = [
            (
                p["model"], p["policy"], p["size"], str(p["groups"]), duration(p["predicted_ns"]).strip(),
                duration(p["exposed_launch_ns"]).strip(), size(p["dram_bytes"]).strip(), size(p["peak_bytes"]).strip(),
                f"{p['burst']:.2f}x", f"{p['slowest_group']} ({p['bottleneck']})",
            )
            for p in offline["plans"]
        ]  # fmt: skip
        yield from form.table(_PLAN, rows)
    else:
        described = offline["described"]
        yield from (form.bullet(f"{name}: {text}") for name, text in described.items())
        if not described:
            yield form.bullet("the capture describes no plan")
    for group in offline.get("groups", ()):
        yield form.bullet(
            f"{group['group']}: predicted {duration(group['predicted_ns']).strip()}, measured "
            f"{group['residual'] * 100:+.0f} % ({group['verdict']}, {group['bottleneck']})"
        )


def _telemetry(seen: Mapping[str, Any], form: Markdown) -> Iterator[str]:
    yield from form.heading("Runtime telemetry", 2)
    tail, wait = seen["latency_ns"], seen["queue_wait_ns"]
    yield form.bullet(f"latency of {tail['of']}s: {_quantiles(tail)} (n = {tail['n']:,})")
    yield form.bullet(f"queue wait: {_quantiles(wait)} (n = {wait['n']:,})")
    shares = ", ".join(f"{way} {percent(seen[way]).strip()}" for way in ("planned", "adapted", "fallback"))
    yield form.bullet(f"mapping: {shares}")
    if seen["padding"] is not None:
        yield form.bullet(f"padding factor {seen['padding']:.2f}, {seen['padded']:,} executions padded")
    if seen["compiles"]:
        yield form.bullet(f"{seen['compiles']} recompiles, stalls {duration(seen['stall_ns']).strip()}")
    for name, text in (("accuracy", "mapping accuracy"), ("gain", "adaptation gain")):
        if seen[name] is not None:
            yield form.bullet(f"{text} {percent(seen[name]).strip()}")
    if seen["fallback_cost_ns"] is not None:
        yield form.bullet(f"fallback cost {duration(seen['fallback_cost_ns']).strip()} (negative: the plan was slower)")
    if seen["drift"] is not None:
        yield form.bullet(f"shape drift {seen['drift']['index']:.2f} ({seen['drift']['verdict']})")
    yield from _metastable(seen["metastable"], form)


def _metastable(evidence: Mapping[str, Any] | None, form: Markdown) -> Iterator[str]:
    if evidence is None:
        return
    yield form.bullet(
        f"metastable fallback of {evidence['of']}: the batch grew from {evidence['batch_before']:.0f} to "
        f"{evidence['batch_during']:.0f}, over the largest planned {evidence['largest_planned']}, and "
        f"{percent(evidence['fallback_share']).strip()} falls back"
    )
    yield form.bullet(
        f"silent: queue depth {evidence['depth_before']:.2g} before, {evidence['depth_during']:.2g} now; "
        f"rate {evidence['rate_before']:.3g}/s before, {evidence['rate_during']:.3g}/s now"
    )
    yield from (form.bullet(f"does not prove {text}") for text in evidence["does_not_prove"])


def _quantiles(tail: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {duration(tail[name]).strip()}" for name in ("p50", "p95", "p99"))


def _actions(report: Mapping[str, Any], form: Markdown) -> Iterator[str]:
    yield from form.heading("Retuning actions", 2)
    if not report["actions"]:
        yield form.bullet("none: no change that was tried gains enough" if report["model"]["twin"] else "none verified")
    for number, action in enumerate(report["actions"], 1):
        yield from form.heading(f"{number}. {action['title']} ({_STATES[action['state']]})", 3)
        yield from _action(action, form)
    if report["together"] is not None:
        told = {name: report["together"][f"{name}_ns"] for name in ("p50", "p95", "p99")}
        yield from ("", form.bullet(f"all of them together: {_quantiles(told)} (gains do not add up)"))
    for key, title in (
        ("instead", "Hold too, instead of one above"),
        ("rejected", "Rejected"),
        ("unverified", "Not verified"),
    ):
        if report[key]:
            yield from form.heading(title, 2)
            yield from (line for action in report[key] for line in _brief(action, form))


def _action(action: Mapping[str, Any], form: Markdown) -> Iterator[str]:
    if action["after"] is not None:
        yield form.bullet(f"gain: {_change(action)}")
    elif action["reason"]:
        yield form.bullet(f"gain: {action['reason']}")
    yield form.bullet(f"why: {action['why']}")
    yield form.bullet(f"bottleneck class {action['bottleneck']}, {action['owner']} team")
    yield form.bullet(f"switching cost: {_cost(action['switching_cost'])}")
    harm = [
        f"{h['stream'] or 'all requests'} {h['quantile']} {duration(h['before_ns']).strip()} → "
        f"{duration(h['after_ns']).strip()}"
        for h in action["harm"]
    ]
    yield form.bullet(f"gets worse: {'; '.join(harm) or 'nothing by 5 % or more'}")
    yield from (form.bullet(text) for text in action["detail"])
    yield form.code(action["evidence"]["replay"])
    yield form.bullet(f"does not prove {'; nor '.join(action['does_not_prove'])}")
    yield form.bullet(f"rollback: {action['rollback']}")


def _brief(action: Mapping[str, Any], form: Markdown) -> Iterator[str]:
    figure = action["reason"] or _change(action)
    yield form.bullet(f"{action['title']}: {figure}. {action['why']}")
    yield form.code(action["evidence"]["replay"])


def _change(action: Mapping[str, Any]) -> str:
    told = []
    for name in ("p50", "p95", "p99"):
        before, after = action["before"][f"{name}_ns"], action["after"][f"{name}_ns"]
        if before is not None and after is not None:
            change = f" ({action['change'][name] * 100:+.1f} %)" if action["change"][name] is not None else ""
            told.append(f"{name} {duration(before).strip()} → {duration(after).strip()}{change}")
    return ", ".join(told) or DASH


def _cost(cost: Mapping[str, Any]) -> str:
    parts = []
    if cost["plans"]:
        stall = "stall not known from this trace"
        if cost["stall_ns"] is not None:
            stall = f"about {duration(cost['stall_ns']).strip()} of compiling"
        parts.append(f"{cost['plans']} plan{'s' if cost['plans'] > 1 else ''} to make, {stall}")
    if cost["memory_bytes"] is not None:
        parts.append(f"up to {size(cost['memory_bytes']).strip()} live (modelled)")
    if cost["note"]:
        parts.append(cost["note"])
    return "; ".join(parts) or "none"
