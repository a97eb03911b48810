"""What the model says limits the plan's groups: a reading of where service time goes, never of why a tail is long."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from fusetui.triage.finding import Bottleneck, Fact
from fusetui.triage.measures import Measures
from fusetui.triage.rule import Rule, Seen
from fusetui.triage.text import name, pct

MOST: Final = 0.3
_CLASSES: Final[dict[str, Bottleneck]] = {
    "launch": "launch", "compute": "compute", "dram": "DRAM bandwidth", "l2": "on-chip bandwidth",
    "spill": "register/spill",
}  # fmt: skip
_FIX: Final[dict[str, str]] = {
    "launch": "fuse its neighbours, or capture the chain as a graph",
    "compute": "a type with a higher rate, with evidence of quality",
    "dram": "fuse it with what reads its result, within the memory limit",
    "l2": "a larger tile",
    "spill": "a smaller tile, or fewer stages",
}  # fmt: skip


def _limited(limit: str) -> Callable[[Measures], Iterable[Seen]]:
    def look(m: Measures) -> Iterator[Seen]:
        known = [(row.measured.p50_ns, row) for row in m.groups if row.measured is not None and row.verdict != ""]
        total = sum(took for took, _ in known)
        mine = [(took, row) for took, row in known if row.plan.bottleneck == limit]
        share = sum(took for took, _ in mine) / total if total > 0 else 0.0
        if share < MOST:
            return
        took, worst = max(mine, key=lambda pair: pair[0])
        what = name(" ".join(worst.plan.ops))
        yield Seen(
            f"{pct(share)} of the plan's measured time is in groups that the model calls {_CLASSES[limit]} bound, most"
            f" in {what}",
            "info", "possible", "times are measured, the limit is modelled",
            (
                Fact("share of measured time", share, "share", ("name", "start_ns", "end_ns")),
                Fact(f"p50 of {what}", took, "ns", ("name", "start_ns", "end_ns")),
            ),
            subject=what,
        )  # fmt: skip

    return look


RULES: Final = tuple(
    Rule(
        id=f"plan/{limit}",
        look=_limited(limit),
        inputs=("groups of the plan, measured",),
        threshold=f"{MOST:.0%} of the measured time",
        why="a smaller part is not where a plan is won",
        does_not_prove=("that the device is limited so: the model's reading, from shapes and tiles",),
        next_action="look at the group on the roofline, and at its counters",
        bottleneck=of,
        stage="compile plan",
        fix=_FIX[limit],
        rollback="restore the plan before",
        screen="fusion",
        pane="plan_roofline",
        about="group",
    )
    for limit, of in _CLASSES.items()
)
