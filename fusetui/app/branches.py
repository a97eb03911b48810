"""The debug branches in their order: the tail, fairness across streams, fusion against the limits of memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fusetui.analysis.attribution.parts import PARTS
from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt


@dataclass(frozen=True, slots=True)
class Branch:
    """screen, pane: where it is answered (NAME, module); look: what to look for, with today's numbers."""

    screen: str
    pane: str
    look: Callable[[Snapshot], str]


def _tail(snapshot: Snapshot) -> str:
    time = snapshot.tail_time
    if time is None:
        return "tail: does one stage add most to the median? not known here: too few items tell how long they waited"
    grew = [tail - median for tail, median in zip(time.tail.mean_ns, time.median.mean_ns, strict=True)]
    most = max(range(len(grew)), key=grew.__getitem__)
    added = fmt.duration(grew[most]).strip()
    return f"tail: which step adds most to the median? here {PARTS[most]}, +{added} of the slowest's latency"


def _fairness(snapshot: Snapshot) -> str:
    fair = snapshot.fairness
    if fair.jain is None:
        return f"fairness: does a stream wait while others run? not known here: {fair.why or 'no streams wait'}"
    worst = f", {fair.worst_stream} got {fmt.percent(fair.worst_ratio).strip()} of its demand"
    told = worst if fair.worst_stream is not None and fair.worst_ratio is not None else ""
    return f"fairness: does a stream wait while others run? Jain {fmt.ratio(fair.jain).strip()}{told}"


def _memory(snapshot: Snapshot) -> str:
    seen = snapshot.columns_seen.get("dram_bytes", 0)
    measured = "traffic was measured" if seen else "no traffic was measured, only modelled"
    return f"memory: which group lies left of the ridge, or bursts? those gain by fusion, others do not; {measured}"


BRANCHES: Final = (
    Branch("tail", "tail_waterfall", _tail),
    Branch("cores", "streams", _fairness),
    Branch("fusion", "plan_roofline", _memory),
)


def told(step: int, snapshot: Snapshot) -> str:
    """What to look for at a step."""
    return f"{step + 1}/{len(BRANCHES)} {BRANCHES[step].look(snapshot)}"
