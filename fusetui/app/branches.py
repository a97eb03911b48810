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
        return "tail: not known here, too few items tell how long they waited: which step would add most to the median?"
    grew = [tail - median for tail, median in zip(time.tail.mean_ns, time.median.mean_ns, strict=True)]
    most = max(range(len(grew)), key=grew.__getitem__)
    added = fmt.duration(grew[most]).strip()
    return f"tail: {PARTS[most]} adds most to the median, +{added}: is it of the stage that left its budget first?"


def _fairness(snapshot: Snapshot) -> str:
    fair = snapshot.fairness
    if fair.jain is None:
        return f"fairness: not known here, {fair.why or 'no streams wait'}: does a stream wait while others run?"
    worst = f", {fair.worst_stream} got {fmt.percent(fair.worst_ratio).strip()} of its demand"
    told = worst if fair.worst_stream is not None and fair.worst_ratio is not None else ""
    return f"fairness: Jain {fmt.ratio(fair.jain).strip()}{told}: does it wait while others run?"


def _memory(snapshot: Snapshot) -> str:
    measured = "measured" if snapshot.columns_seen.get("dram_bytes", 0) else "modelled, not measured"
    return f"memory: traffic is {measured}: which group lies left of the ridge, or bursts? those gain by fusion"


BRANCHES: Final = (
    Branch("tail", "tail_waterfall", _tail),
    Branch("cores", "streams", _fairness),
    Branch("fusion", "plan_roofline", _memory),
)


def told(step: int, snapshot: Snapshot) -> str:
    """What to look for at a step."""
    return f"{step + 1}/{len(BRANCHES)} {BRANCHES[step].look(snapshot)}"
