"""All bounded changes that a twin asks for, each tried."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from fusetui.accelerator.runtime.simulate import simulate
from fusetui.analysis.retune.action import Action
from fusetui.analysis.retune.buckets import add_buckets
from fusetui.analysis.retune.fusion import refuse_fusion
from fusetui.analysis.retune.padding import pad_to_faster
from fusetui.analysis.retune.padless import pad_less
from fusetui.analysis.retune.runtime import cap_concurrency, place_by_load, short_first, smaller_batches
from fusetui.analysis.retune.tables import tables_of
from fusetui.analysis.retune.verify import Proposal, try_action
from fusetui.analysis.twin.model import Tail, Twin, tail_of


@dataclass(frozen=True, slots=True)
class Retuned:
    """What came of it, the largest gain first.

    instead      that hold too, for a knob of which a better one is among `verified`
    together_ns  all of `verified` at once, None with fewer than two
    """

    verified: tuple[Proposal, ...]
    instead: tuple[Proposal, ...]
    rejected: tuple[Proposal, ...]
    unverified: tuple[Proposal, ...]
    before_ns: Tail
    together_ns: Tail | None


def retune(twin: Twin, *, stall_ns: int | None = None, most: int = 5) -> Retuned:
    """Try every change on the twin's requests.

    stall_ns  what making one plan took in the trace, None unknown
    most      proposals kept
    """
    tried = [try_action(twin, action) for action in actions_of(twin, stall_ns)]
    if not twin.fit.good:
        tried = [replace(p, state="unverified", reason=p.reason or twin.fit.text) for p in tried]
    verified = sorted((p for p in tried if p.state == "verified"), key=lambda p: p.gain, reverse=True)
    best = {p.action.knob: p for p in reversed(verified)}
    kept = [p for p in verified if best[p.action.knob] is p][:most]
    instead = tuple(p for p in verified if best[p.action.knob] is not p)
    rejected = tuple(p for p in tried if p.state == "rejected")
    unverified = tuple(p for p in tried if p.state == "unverified")
    before = tail_of(twin.outcome.latency_ns)
    return Retuned(tuple(kept), instead, rejected, unverified, before, _together(twin, kept))


def actions_of(twin: Twin, stall_ns: int | None) -> Iterable[Action]:
    """All that the twin asks for, planned as they come and not yet tried; stall_ns: see `retune`."""
    for table in tables_of(twin):
        yield from add_buckets(twin, table, stall_ns)
        yield from pad_less(twin, table)
    yield from pad_to_faster(twin)
    yield from refuse_fusion(twin)
    yield from cap_concurrency(twin)
    yield from smaller_batches(twin)
    yield from place_by_load(twin)
    yield from short_first(twin)


def _together(twin: Twin, kept: list[Proposal]) -> Tail | None:
    """Not the sum of the gains: changes overlap."""
    if len(kept) < 2:
        return None
    load, config = twin.load, twin.config
    for proposal in kept:
        if proposal.action.change is not None:
            load, config = proposal.action.change(load, config)
    return tail_of(simulate(load, config).latency_ns)
