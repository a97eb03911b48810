"""How requests are batched, placed and ordered."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from fusetui.accelerator.runtime.config import Batching, Config, Placement, PlacementKind
from fusetui.accelerator.runtime.load import Load
from fusetui.accelerator.runtime.outcome import GATE, GENERIC, MISPLACED, QUEUE, SLOW
from fusetui.analysis.fmt import duration, percent
from fusetui.analysis.retune.action import ONLY_THESE, Action, Change, Cost, to_config
from fusetui.analysis.retune.seen import share, slice_of, slice_of_jobs
from fusetui.analysis.twin.model import Twin

WORTH: Final = 0.1
"""Share of the slowest twentieth's latency from which it is worth a change."""
_BLIND: Final = ("static", "hashed", "round_robin", "random")
_MEMORY: Final = "that what a request needs is as close to another core: caches and weights are not modelled"


def cap_concurrency(twin: Twin) -> list[Action]:
    """A continuous batch no larger than its largest plan: requests wait instead of falling back."""
    config = twin.config
    if config.decode is None or isinstance(config.batching, tuple) or isinstance(config.lookup, tuple):
        return []
    jobs, captured, batching = twin.outcome.jobs, config.lookup.captured, config.batching
    steps = jobs.table == len(config.tables)
    above = steps & (jobs.mapping == GENERIC) & (jobs.rows > (captured[-1] if captured else 0))
    if not captured or not above.any() or batching.size <= captured[-1]:
        return []
    top = captured[-1]
    why = (
        f"{int(above.sum()):,} of {int(steps.sum()):,} steps had a batch over {top} and ran without a plan; "
        f"the largest was {int(jobs.rows[above].max())}"
    )
    changed = replace(batching, size=top)
    shown = slice_of_jobs(twin, above, "kind = execution and mapping = fallback")
    return [
        Action(
            "concurrency", f"cap the running batch at {top} (now {batching.size})", "", "fallback", "scheduler", why,
            shown, Cost(note="none: requests above it wait"), f"running batch up to {batching.size} as before",
            (ONLY_THESE, "that waiting is better than slow steps for every request: see what gets worse"),
            to_config(lambda config: replace(config, batching=changed)),
        )
    ]  # fmt: skip


def smaller_batches(twin: Twin) -> list[Action]:
    """Half the size, or half the wait, of a gate that holds requests back."""
    config = twin.config
    if config.decode is not None or share(twin, GATE) < WORTH:
        return []
    found = []
    for i, stream in enumerate(twin.load.streams):
        gate = config.batching_of(i)
        mine = twin.load.stream == i
        if gate.kind == "none" or not mine.any():
            continue
        held = int(np.median(twin.outcome.parts[mine, GATE]))
        name = f"{stream.name}: " if len(twin.load.streams) > 1 else ""
        tried = [(f"{name}batch of {gate.size // 2} (now {gate.size})", replace(gate, size=max(gate.size // 2, 1)))]
        if gate.kind == "deadline" and gate.wait_ns > 1:
            now = f"(now {duration(gate.wait_ns).strip()})"
            tried.append(
                (f"{name}deadline {duration(gate.wait_ns / 2).strip()} {now}", replace(gate, wait_ns=gate.wait_ns // 2))
            )
        found += [
            Action(
                f"batch {stream.name}", title, stream.name, "batching", "scheduler",
                f"requests are held back {duration(held).strip()} in the median for others of their batch",
                slice_of(twin, mine), Cost(), "the gate as before",
                (ONLY_THESE, "that throughput holds at a higher rate"), _gate(i, changed, len(twin.load.streams)),
            )
            for title, changed in tried
        ]  # fmt: skip
    return found


def _gate(stream: int, gate: Batching, streams: int) -> Change:
    def make(config: Config) -> Config:
        own = [config.batching_of(i) for i in range(streams)]
        own[stream] = gate
        return replace(config, batching=tuple(own))

    return to_config(make)


def place_by_load(twin: Twin) -> list[Action]:
    """Where requests wait while another core is idle: let the cores' load decide."""
    config, kind = twin.config, twin.config.placement.kind
    if config.cores < 2 or config.decode is not None or kind not in _BLIND:
        return []
    lost = share(twin, MISPLACED, SLOW)
    if lost < WORTH:
        return []
    late = twin.outcome.parts[:, MISPLACED] > 0
    why = f"{percent(lost).strip()} of the slowest requests' time is waiting while another core is idle, or a slow core"
    choices: tuple[tuple[PlacementKind, str], ...] = (
        ("least_loaded", "give work to the core with the least outstanding"),
        ("shared", "one queue for all cores"),
    )
    return [
        Action(
            "placement", f"{text} (now {kind.replace('_', ' ')})", "", "imbalance", "scheduler", why,
            slice_of(twin, late), Cost(), f"placement {kind.replace('_', ' ')} as before", (ONLY_THESE, _MEMORY),
            _placed(choice),
        )
        for choice, text in choices
    ]  # fmt: skip


def _placed(kind: PlacementKind) -> Change:
    return to_config(lambda config: replace(config, placement=Placement(kind, seed=config.placement.seed)))


def short_first(twin: Twin) -> list[Action]:
    """A stream of short work behind one of long work, with no priority over it."""
    load, outcome = twin.load, twin.outcome
    if len(load.streams) < 2 or share(twin, QUEUE) < WORTH or twin.config.decode is not None:
        return []
    if len({stream.priority for stream in load.streams}) > 1:
        return []
    service = (outcome.end_ns - outcome.start_ns).astype(np.float64)
    counts = [int((load.stream == i).sum()) for i in range(len(load.streams))]
    p95 = [float(np.quantile(service[load.stream == i], 0.95)) if n else np.inf for i, n in enumerate(counts)]
    short = int(np.argmin(p95))
    rest = [p for i, p in enumerate(p95) if i != short and counts[i]]
    if not rest or max(rest) < 4 * p95[short]:
        return []
    name = load.streams[short].name
    why = f"95 % of {name} takes up to {duration(p95[short]).strip()}, of the others {duration(max(rest)).strip()}"
    first = tuple(replace(stream, priority=0 if i == short else 1) for i, stream in enumerate(load.streams))

    def change(load: Load, config: Config) -> tuple[Load, Config]:
        return replace(load, streams=first), config

    return [
        Action(
            f"priority {name}", f"{name}: serve before the others", name, "queueing", "scheduler", why,
            slice_of(twin, load.stream == short, f'stream = "{name}"'), Cost(), "equal priorities as before",
            (ONLY_THESE, "that the others never starve at a higher rate"), change,
        )
    ]  # fmt: skip
