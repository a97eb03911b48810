"""What it would cost to force operators into one kernel that no rule allows.

Its matrix products run one after the other in a single launch: they share the on-chip memory and the registers, only
dimensions common to all of them can be spread over cores, and values between them that the chip cannot hold go to
device memory and back. This is where over-fusion is lost: parallelism, occupancy and spills, never launches.
"""

from __future__ import annotations

import math

import numpy as np

from fusetui.accelerator import bottleneck
from fusetui.accelerator.constants import Constants
from fusetui.accelerator.graph import Graph, matmul_shape
from fusetui.accelerator.group import Group
from fusetui.accelerator.hardware import Hardware
from fusetui.accelerator.matmul import price_matmuls
from fusetui.accelerator.price import REGISTERS_PER_VALUE, Price
from fusetui.accelerator.vector import price_vectors
from fusetui.accelerator.work import TILE_SIDE, Work


def price_forced(
    graph: Graph, hw: Hardware, constants: Constants, dtype: str, group: Group, work: Work, registers: float
) -> Price:
    """Price of one kernel for all of `group`."""
    return (
        _phases(graph, hw, constants, dtype, group, work)
        if group.anchors
        else _whole_rows(graph, hw, constants, dtype, group, work, registers)
    )


def _whole_rows(
    graph: Graph, hw: Hardware, constants: Constants, dtype: str, group: Group, work: Work, registers: float
) -> Price:
    """Vector operators that reduce different rows: a thread would hold its part of all of them at once."""
    p = price_vectors(
        hw,
        constants,
        work.read_bytes,
        work.write_bytes,
        work.cost_class,
        registers=min(registers, 2.0 * hw.registers_per_thread) if hw.registers_per_core else registers,
        flops=work.vector_flops,
        dtype=dtype,
    )
    return Price(
        float(p.time_ns[0]),
        float(p.dram_bytes[0]),
        work.served_bytes,
        max(0.0, float(p.dram_bytes[0]) - work.write_bytes),
        float(p.spill_bytes[0]),
        0.0,
        float(hw.sram_bytes_per_core),
        float(p.occupancy[0]),
        int(p.waves[0]),
        bottleneck.NAMES[int(p.bottleneck[0])],
        None,
        work.vector_flops,
        work.repeated_flops,
        registers if hw.registers_per_core else None,
    )


def _phases(graph: Graph, hw: Hardware, constants: Constants, dtype: str, group: Group, work: Work) -> Price:
    """Several matrix products in one launch, one phase each."""
    products = [i for i in group.anchors if graph.operators[i].kind != "scan"]
    shapes = np.array([matmul_shape(graph, graph.operators[i]) for i in products], dtype=np.float64).reshape(-1, 4)
    kept = hw.sram_bytes_per_core * (1 - 1 / max(1, len(group.anchors)))
    p = price_matmuls(
        hw, constants, *shapes.T, dtype=dtype,
        reserved_sram=kept, extra_registers=REGISTERS_PER_VALUE * work.live,
        epilogue_flops=work.vector_flops / max(1, len(products)),
    )  # fmt: skip
    spread = min(1.0, _common_tiles(graph, group) / hw.cores)
    room = hw.cores * hw.sram_bytes_per_core * spread / max(1, len(group.anchors))
    inner = sum(max(0.0, graph.tensor_bytes(name) - room) for name in group.inner)
    rate = hw.dram_bytes_per_s * constants.eta_dram * min(1.0, spread * constants.few_cores_rho)
    starts = constants.start_ns * (len(products) - 1)
    busy = np.minimum(
        1.0, shapes[:, 0] * np.ceil(shapes[:, 1] / p.tile_m) * np.ceil(shapes[:, 2] / p.tile_n) / hw.cores
    )
    slower = float(np.sum((p.time_ns - constants.start_ns) * np.maximum(1.0, busy / spread)))
    moved = work.read_bytes + work.write_bytes + 2 * inner
    time = constants.start_ns + slower + 2 * inner / rate * 1e9
    spills = float(p.spill_bytes.sum()) + 2 * inner
    stretch = slower - float(p.time_ns.sum()) + starts
    kind = "spill" if 2 * inner / rate * 1e9 > stretch else "occupancy"
    return Price(
        time if math.isfinite(time) else math.inf,
        moved,
        work.served_bytes + float(p.l2_bytes.sum()),
        max(0.0, moved - work.write_bytes),
        spills,
        0.0,
        float(hw.sram_bytes_per_core),
        float(p.occupancy.min()) * spread,
        int(p.waves.sum()),
        kind,
        None,
        float(p.flops.sum()),
        work.repeated_flops,
    )


def _common_tiles(graph: Graph, group: Group) -> float:
    """Work items along the dimensions that every matrix product's output has, in tiles along the longest."""
    dims = set.intersection(*(set(graph.tensors[graph.operators[i].output].dims) for i in group.anchors))
    sizes = sorted(graph.sizes[d] for d in dims)
    return math.prod(sizes[:-1]) * math.ceil(sizes[-1] / TILE_SIDE) if sizes else 1.0
