"""The tail itself: over its objective, and not explained."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fusetui.analysis.attribution import parts
from fusetui.triage.blame import growth
from fusetui.triage.finding import Fact
from fusetui.triage.measures import MOST, NAMED, Measures
from fusetui.triage.rule import Rule, Seen
from fusetui.triage.text import many, ns, pct, since, tail_text


def _over(m: Measures) -> Iterator[Seen]:
    slo, latency = m.header.slo_ns, m.snapshot.latency
    if slo is None or m.trouble != "breach":
        return
    p99 = m.snapshot.latency_series.p99_ns
    known = np.flatnonzero(~np.isnan(p99))
    over = known[p99[known] > slo]
    calm = known[p99[known] <= slo]
    lasting = over.size and over[-1] == known[-1] and calm.size
    start = int(m.snapshot.slot_start_ns[known[known > calm[-1]][0]]) if lasting else None
    yield Seen(
        f"{tail_text(m)} over SLO {ns(slo)}{since(m, start)}, n {many(latency.n)}", "breach", "sure",
        "nearest rank over all items, those still open as lower bounds",
        (Fact("p99", latency.p99_ns, "ns", ("enqueue_ns", "end_ns")), Fact("objective", slo, "ns")),
        since_ns=start,
    )  # fmt: skip


def _service(m: Measures) -> Iterator[Seen]:
    if not m.trouble or any(blame.cause >= NAMED for blame in m.blame.values()):
        return
    planned = growth(m.snapshot.tail_time, parts.PLANNED)
    if planned < MOST:
        return
    yield Seen(
        f"the slowest are {pct(planned)} planned work above the median's: larger shapes, not a fault that shows",
        "info", "possible", "no part but planned time grew",
        (Fact("growth of planned time", planned, "share", ("start_ns", "end_ns", "shape")),), planned, planned,
    )  # fmt: skip


RULES: Final = (
    Rule(
        id="tail/objective", look=_over, inputs=("latency", "header.slo_ns", "latency_series"), threshold="p99 > SLO",
        why="that is what the objective says", does_not_prove=("why",), next_action="see which stage left its budget",
        stage="completion", screen="tail", pane="tail",
    ),
    Rule(
        id="tail/service", look=_service, inputs=("tail_time", "blame"),
        threshold=f"{MOST:.0%} of the tail is planned time and no bottleneck has {NAMED:.0%}",
        why="a mix of small and large shapes has a tail without any fault",
        does_not_prove=("that the plan is good",), next_action="compare latency within one shape",
        stage="completion", screen="mapping", pane="mapping_buckets",
    ),
)  # fmt: skip
