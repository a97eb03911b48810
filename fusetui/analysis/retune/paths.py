"""Plans with other kernels at some sizes."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from fusetui.accelerator.runtime.paths import Path
from fusetui.accelerator.scenario.plans import Planned, plan_model
from fusetui.accelerator.scenario.spec import Model, Scenario
from fusetui.analysis.arrays import Floats, Ints

_COLUMNS: Final = ("kernel_ns", "launch_ns", "dram_bytes", "flops", "demand")
_JOINED: Final = " + "


def planned_at(scenario: Scenario, model: Model, sizes: tuple[int, ...]) -> Planned:
    """The model planned at more sizes."""
    wider = replace(model, planned=tuple(sorted({*model.planned, *sizes})))
    return plan_model(wider, scenario.hardware, scenario.slices)


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
    columns = [np.concatenate([getattr(path, name), getattr(finer, name)]) for name in _COLUMNS]
    return _bound(path, pages, path.names + finer.names, columns)


def _page(path: Path, index: int) -> Ints:
    return np.arange(path.first[index], path.first[index + 1])


def _bound(path: Path, pages: list[Ints], names: tuple[str, ...], columns: list[Floats]) -> Path:
    """`path` with the kernels in `pages`, one page for each size: indices in names and columns."""
    flat = np.concatenate(pages)
    kernel, launch, dram, flops, demand = (column[flat] for column in columns)
    return Path(
        path.rows, np.cumsum([0, *map(len, pages)]), tuple(names[k] for k in flat.tolist()), kernel, launch, dram,
        flops, demand, path.output_ns,
    )  # fmt: skip
