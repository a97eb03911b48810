"""Buckets as lines of a map: by size and plan, neighbours together where there are more of them than lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from fusetui.analysis.columns import OTHERS
from fusetui.analysis.mapping import MappingDetail
from fusetui.app.panes.mapping_common import bucket_names

_DIGITS = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class MapLine:
    """One line: its label, and the buckets it stands for."""

    label: str
    buckets: tuple[int, ...]


def map_lines(detail: MappingDetail, lines: int) -> list[MapLine]:
    """At most `lines` lines over all buckets, by size and plan; "(others)" is the last, by itself."""
    if lines <= 0 or not detail.plans:
        return []
    names = bucket_names(detail)
    order = sorted((i for i, plan in enumerate(detail.plans) if plan != OTHERS), key=lambda i: _natural(detail, i))
    rest = [i for i, plan in enumerate(detail.plans) if plan == OTHERS]
    groups = _grouped([list(same) for _, same in groupby(order, lambda i: _DIGITS.sub("", detail.shapes[i]))], lines)
    made = [MapLine(_label(names, group), group) for group in groups[: max(1, lines - len(rest))]]
    return (made + [MapLine(names[i], (i,)) for i in rest])[:lines]


def _grouped(families: list[list[int]], lines: int) -> list[tuple[int, ...]]:
    """Neighbours of a family (shapes alike but for their numbers) together, as few as the lines allow."""
    largest = max((len(family) for family in families), default=1)
    room = max(lines - 1, len(families))
    per = next(n for n in range(1, largest + 1) if sum(-(-len(family) // n) for family in families) <= room)
    return [tuple(family[at : at + per]) for family in families for at in range(0, len(family), per)]


def _natural(detail: MappingDetail, bucket: int) -> tuple[str, list[int], str]:
    """Numbers in a shape count as numbers: batch=8 comes before batch=16."""
    shape = detail.shapes[bucket]
    numbers = [int(number[:18]) for number in _DIGITS.findall(shape)]
    return _DIGITS.sub("", shape), numbers, detail.plans[bucket]


def _label(names: list[str], group: tuple[int, ...]) -> str:
    """`batch=8‥96 · steps`: where the names of the first and the last begin to differ, both are told."""
    first, last = names[group[0]], names[group[-1]]
    if len(group) == 1:
        return first
    head, _, plan = first.partition(" · ")
    end, _, other = last.partition(" · ")
    same = next((i for i, (a, b) in enumerate(zip(head, end, strict=False)) if a != b), min(len(head), len(end)))
    while same and head[same - 1].isdigit():
        same -= 1
    shapes = head if head == end else f"{head}‥{end[same:]}"
    return shapes + (f" · {plan}" if plan and plan == other else "")


def share_known(detail: MappingDetail, buckets: tuple[int, ...]) -> float | None:
    """Hit share of some buckets together; None where no execution of theirs carries a mapping."""
    told = int(np.sum(detail.counts[list(buckets), :3]))
    return int(np.sum(detail.counts[list(buckets), 0])) / told if told else None
