"""Plans with other kernels at some sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from fusetui.accelerator.runtime.paths import Path, PlanTable
from fusetui.accelerator.scenario.plans import plan_model
from fusetui.accelerator.scenario.spec import Model, Scenario
from fusetui.analysis.arrays import Floats, Ints

_COLUMNS: Final = ("kernel_ns", "launch_ns", "dram_bytes", "flops", "demand")
_JOINED: Final = " + "


def planned_at(scenario: Scenario, model: Model, sizes: tuple[int, ...]) -> tuple[PlanTable, float]:
    """(the model's table with plans at more sizes, bytes that the new ones keep live at most)."""
    own = plan_model(model, scenario.hardware, scenario.slices)
    new = plan_model(replace(model, planned=sizes, known=()), scenario.hardware, scenario.slices)
    peak = max(new.plan(size).totals.peak_bytes for size in sizes)
    best = own.table.best
    if best is not None and new.table.best is not None:
        best = with_sizes(best, new.table.best)
    plan, fallback = with_sizes(own.table.plan, new.table.plan), with_sizes(own.table.fallback, new.table.fallback)
    return PlanTable(own.table.name, plan, fallback, best), peak


def with_sizes(path: Path, more: Path) -> Path:
    """`path` known at the sizes of `more` as well; where both are, `more` counts."""
    pages = {int(rows): _page(path, i) for i, rows in enumerate(path.rows)}
    pages |= {int(rows): _page(more, i) + len(path.names) for i, rows in enumerate(more.rows)}
    sizes = sorted(pages)
    return _bound(path, [pages[size] for size in sizes], path.names + more.names, _both(path, more), sizes)


def like(path: Path, size: int, other: int) -> Path:
    """`path` running at the known `size` what it runs at the known size `other`."""
    at = {int(rows): i for i, rows in enumerate(path.rows)}
    pages = [_page(path, i) for i in range(len(path.rows))]
    pages[at[size]] = _page(path, at[other])
    return _bound(path, pages, path.names, [getattr(path, name) for name in _COLUMNS])


def split(path: Path, finer: Path, group: str) -> Path:
    """`path` with the kernel `group` replaced by those of `finer` that run its operators, where they are exactly these.

    Both are known at the same sizes. Exposed launches are the finer path's.
    """
    wanted = set(group.split(_JOINED))
    pages = []
    for i in range(len(path.rows)):
        page, fine = _page(path, i), _page(finer, i)
        parts = [k for k in fine.tolist() if set(finer.names[k].split(_JOINED)) <= wanted]
        unique = list({finer.names[k]: k for k in reversed(parts)}.values())[::-1]
        covered = [op for k in unique for op in finer.names[k].split(_JOINED)]
        if sorted(covered) != sorted(wanted):
            pages.append(page)
            continue
        own = [[k] if path.names[k] != group else [len(path.names) + k2 for k2 in unique] for k in page.tolist()]
        pages.append(np.array([k for kernels in own for k in kernels], np.int64))
    return _bound(path, pages, path.names + finer.names, _both(path, finer))


def _page(path: Path, index: int) -> Ints:
    return np.arange(path.first[index], path.first[index + 1])


def _both(path: Path, more: Path) -> list[Floats]:
    return [np.concatenate([getattr(path, name), getattr(more, name)]) for name in _COLUMNS]


def _bound(
    path: Path, pages: list[Ints], names: tuple[str, ...], columns: list[Floats], sizes: Sequence[int] | None = None
) -> Path:
    """`path` with the kernels in `pages`, one page for each size: indices in names and columns."""
    flat = np.concatenate(pages)
    kernel, launch, dram, flops, demand = (column[flat] for column in columns)
    rows = path.rows if sizes is None else np.array(sizes, np.int64)
    return Path(
        rows, np.cumsum([0, *map(len, pages)]), tuple(names[k] for k in flat.tolist()), kernel, launch, dram, flops,
        demand, path.output_ns,
    )  # fmt: skip
