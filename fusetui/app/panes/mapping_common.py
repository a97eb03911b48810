"""What the panes of the mapping screen say in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from fusetui.analysis.columns import OTHERS
from fusetui.analysis.mapping import MappingDetail
from fusetui.analysis.rows import RowQuery
from fusetui.analysis.snapshot import Snapshot
from fusetui.app import fmt
from fusetui.app.pane import Pane

MAPPING_TEACHES: Final = (
    "No row in this window tells of plans, shapes, mappings or recompiles.\n"
    "PyTorch profiler: record_shapes=True gives the shapes, and recompiles are read from its compile events. "
    "Own producer: send columns plan, shape and mapping (planned, adapted or fallback) with each execution."
)


def executions(detail: MappingDetail) -> int:
    """Executions in all buckets."""
    return int(detail.counts.sum())


def bucket_names(detail: MappingDetail) -> list[str]:
    """A name for every bucket, none twice: the shape, then the plan where several ran."""
    several = len({plan for plan in detail.plans if plan != OTHERS}) > 1
    names = []
    for plan, shape in zip(detail.plans, detail.shapes, strict=True):
        parts = [shape, plan] if several and plan != shape else [shape or plan]
        names.append(" · ".join(part for part in parts if part) or "no shape, no plan")
    if len(set(names)) == len(names):
        return names
    return [
        f"{shape or fmt.DASH} · {plan or fmt.DASH}" for plan, shape in zip(detail.plans, detail.shapes, strict=True)
    ]


class BucketPane(Pane):
    """A pane over `mapping_detail`."""

    def trust(self, snapshot: Snapshot) -> str:
        return f"n {fmt.count(executions(snapshot.mapping_detail)).strip()}"

    def empty(self, snapshot: Snapshot) -> str | None:
        return None if snapshot.mapping_detail.plans else MAPPING_TEACHES


def bucket_query(detail: MappingDetail, buckets: Sequence[int]) -> RowQuery | None:
    """Executions of some buckets, slowest first: of what all of them have in common; of any when none is chosen."""
    if not detail.plans:
        return None
    plans, shapes = ({words[i] for i in buckets} for words in (detail.plans, detail.shapes))
    if OTHERS in plans:
        return None
    return RowQuery(
        order="service",
        kind="execution",
        plan=plans.pop() if len(plans) == 1 else None,
        shape=shapes.pop() if len(shapes) == 1 else None,
    )


def known(value: float) -> float | None:
    """None for NaN."""
    return None if np.isnan(value) else float(value)


def times(factor: float | None) -> str:
    """A factor as `×1.21`, at most 5 cells."""
    return fmt.DASH if factor is None else f"×{fmt.ratio(factor).strip()}"


def cost(ns: float | None) -> str:
    """A duration that may be below zero, at most 8 cells."""
    return fmt.duration(ns) if ns is None or ns >= 0 else f"−{fmt.duration(-ns).lstrip()}"
