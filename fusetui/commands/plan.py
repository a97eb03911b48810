"""`fusetui plan`: the fusion and tile plan of a block on a described accelerator."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

EXIT_USAGE = 2
EXIT_UNREADABLE = 3


def run(args: argparse.Namespace) -> int:
    """Print the worksheet of one block, or what blocks and hardware there are."""
    from fusetui.accelerator.errors import AcceleratorError
    from fusetui.accelerator.graph import GraphError

    try:
        if args.block is None:
            return _list()
        return _plan(args)
    except AcceleratorError as error:
        print(f"fusetui: {error}", file=sys.stderr)
        return EXIT_USAGE if isinstance(error, GraphError) else EXIT_UNREADABLE


def _plan(args: argparse.Namespace) -> int:
    from fusetui.accelerator.blocks import build_block, parse_shapes
    from fusetui.accelerator.constants import default_constants, load_constants
    from fusetui.accelerator.plan import make_plans
    from fusetui.accelerator.policy import POLICIES
    from fusetui.accelerator.presets import load_hardware
    from fusetui.commands import worksheet

    hw = load_hardware(args.hardware)
    graph = build_block(args.block, parse_shapes(args.shapes), args.dtype)
    if args.constants:
        constants = load_constants(Path(args.constants), args.dtype)
        if constants.hardware.lower() != hw.name.lower():
            print(f"fusetui: {args.constants}: fitted for {constants.hardware}, not for {hw.name}", file=sys.stderr)
            return EXIT_USAGE
    else:
        constants = default_constants(hw, args.dtype)
    plans = make_plans(graph, hw, constants, args.dtype, mode=args.launch, policies=tuple(POLICIES))
    if args.json:
        print(worksheet.as_json(plans, args.policy))
    elif args.markdown:
        print(worksheet.as_markdown(plans, args.policy))
    else:
        print(worksheet.as_text(plans, args.policy))
    return 0


def _list() -> int:
    from fusetui.accelerator.blocks import blocks
    from fusetui.accelerator.blocks.models import MODELS
    from fusetui.accelerator.presets import hardware_names

    print("blocks")
    for block in blocks():
        print(f"  {block.name:<20} {block.title}")
        print(f"  {'':<20} {', '.join(f'{key}={value}' for key, value in block.defaults.items())}")
    print("models (--shapes model=NAME)\n  " + " ".join(MODELS))
    print("hardware\n  " + " ".join(hardware_names()))
    return 0
