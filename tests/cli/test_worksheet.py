"""The worksheet as text: it fits a terminal, shows what a group holds, tiles to choose between, and warnings."""

from __future__ import annotations

import dataclasses
import json

import pytest

from fusetui.accelerator.blocks import blocks, build_block
from fusetui.accelerator.constants import default_constants
from fusetui.accelerator.plan import Plans, make_plans, tile_options
from fusetui.accelerator.presets import load_hardware
from fusetui.commands import worksheet


def made(name: str, device: str = "H100") -> tuple[Plans, worksheet.Options]:
    hw, graph = load_hardware(device), build_block(name)
    constants = default_constants(hw, "bf16")
    plans = make_plans(graph, hw, constants, "bf16")
    return plans, tile_options(graph, hw, constants, "bf16", plans.plans["balanced"])


@pytest.mark.parametrize("name", [b.name for b in blocks()])
@pytest.mark.parametrize("device", ["H100", "L4", "TPU-v5e"])
def test_it_fits_a_terminal_of_100_columns(name: str, device: str) -> None:
    plans, options = made(name, device)
    for policy in plans.plans:
        assert max(len(line) for line in worksheet.as_text(plans, policy, options).splitlines()) <= 100


def test_it_shows_what_a_group_holds() -> None:
    plans, _ = made("mlp")
    lines = worksheet.as_text(plans, "balanced").splitlines()
    group = next(g for g in plans.plans["balanced"].groups if g.ops == ("up_proj", "silu", "gate"))
    row = lines[lines.index("up_proj + silu + gate") + 1].split()
    assert group.tile is not None
    assert group.reuse_factor is not None
    assert row[0] == f"{group.tile.m}x{group.tile.n}x{group.tile.k}"
    for cell in (f"{group.reuse_factor:.1f}", f"{group.reuse_ratio:.2f}", f"{group.occupancy:.0%}", str(group.waves)):
        assert cell in row
    assert f"{group.registers:.0f}" in row


def test_tiles_are_shown_when_asked_for() -> None:
    plans, options = made("mlp")
    text, markdown = (form(plans, "balanced", options) for form in (worksheet.as_text, worksheet.as_markdown))
    products = [g for g in plans.plans["balanced"].groups if g.pattern == "matmul"]
    assert text.count("chosen") == markdown.count("chosen") == len(products)
    sheet = json.loads(worksheet.as_json(plans, "balanced", options))
    for group, shown in zip(plans.plans["balanced"].groups, sheet["groups"], strict=True):
        assert shown["tiles"] == [dataclasses.asdict(t) for t in options.get(group.ops, ())]
        assert all(set(t) == {"tile", "time_ns", "sram_bytes", "dram_bytes"} for t in shown["tiles"])
    assert "tiles" not in json.loads(worksheet.as_json(plans, "balanced"))["groups"][0]


def test_memory_limits_that_do_not_hold_are_said() -> None:
    plans, _ = made("mlp")
    plan = plans.plans["balanced"]
    assert "warning" not in worksheet.as_text(plans, "balanced")
    totals = dataclasses.replace(plan.totals, within_unfused=False, within_device=False)
    said = dataclasses.replace(plans, plans={"balanced": dataclasses.replace(plan, totals=totals)})
    for form in (worksheet.as_text, worksheet.as_markdown):
        assert "no order of groups was" in form(said, "balanced")
        assert "more than the device's memory holds" in form(said, "balanced").replace("\n", " ")
    found = json.loads(worksheet.as_json(said, "balanced"))["totals"]
    assert (found["within_unfused"], found["within_device"]) == (False, False)
