"""`fusetui plan`: the fusion and tile plan of a block, an ONNX file or a capture on a described accelerator."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fusetui.accelerator.constants import Constants
    from fusetui.accelerator.graph import Graph
    from fusetui.accelerator.hardware import Hardware
    from fusetui.analysis.planned import Captured

EXIT_USAGE = 2
EXIT_UNREADABLE = 3
_BLOCK_DTYPE = "bf16"


class Subject(NamedTuple):
    """What is planned: a graph, its element type, what to say about it, and what ran where it is known."""

    graph: Graph
    dtype: str
    notes: tuple[str, ...] = ()
    captured: Captured | None = None


def run(args: argparse.Namespace) -> int:
    """Print the worksheet of one subject, or what blocks and hardware there are."""
    from fusetui.accelerator.errors import AcceleratorError
    from fusetui.accelerator.graph import GraphError

    try:
        if args.block is None:
            return _list()
        return _plan(args)
    except AcceleratorError as error:
        print(f"fusetui: {error}", file=sys.stderr)
        return EXIT_USAGE if isinstance(error, GraphError) else EXIT_UNREADABLE


def subject_of(args: argparse.Namespace) -> Subject:
    """A built-in block by its name; else a file by its content: ONNX, an execution trace, anything else a capture.

    Raises AcceleratorError or TelemetryError naming what is wrong with it.
    """
    from fusetui.accelerator.blocks import blocks, build_block, parse_shapes
    from fusetui.accelerator.exec_trace import looks_like_execution_trace, read_execution_trace
    from fusetui.accelerator.onnx_file import looks_like_onnx
    from fusetui.commands.inputs import capture_path

    shapes, name = parse_shapes(args.shapes), args.block
    is_file = name.startswith("sample:") or Path(name).is_file()
    if any(block.name == name for block in blocks()) or not (is_file or looks_like_onnx(Path(name))):
        dtype = args.dtype or _BLOCK_DTYPE
        return Subject(build_block(name, shapes, dtype), dtype)
    path = capture_path(name)
    if looks_like_onnx(path):
        from fusetui.accelerator.onnx_graph import read_onnx

        sizes = {key: size for key, size in shapes.items() if isinstance(size, int)}
        _no_shapes(args, [key for key in shapes if key not in sizes])
        model = read_onnx(path, sizes, args.dtype)
        return Subject(model.graph, model.dtype, model.notes)
    _no_shapes(args, list(shapes))
    if looks_like_execution_trace(path):
        traced = read_execution_trace(path, args.dtype)
        return Subject(traced.graph, traced.dtype, traced.notes)
    from fusetui.commands.plan_trace import captured_of

    captured = captured_of(path)
    return Subject(captured.graph, args.dtype or captured.dtype, captured.notes, captured)


def _no_shapes(args: argparse.Namespace, keys: list[str]) -> None:
    from fusetui.accelerator.graph import GraphError

    if keys:
        raise GraphError(f"--shapes {keys[0]}", f"{args.block} has no such parameter")


def constants_of(args: argparse.Namespace, hw: Hardware, dtype: str) -> tuple[Constants, tuple[str, ...]]:
    """From `--constants`, else what is saved for this device and type, else the datasheet; and a note of which."""
    from fusetui.accelerator.constants import default_constants, load_constants
    from fusetui.accelerator.graph import GraphError
    from fusetui.accelerator.saved_constants import saved_constants

    if args.constants:
        constants = load_constants(Path(args.constants), dtype)
        if constants.hardware.lower() != hw.name.lower():
            raise GraphError(args.constants, f"fitted for {constants.hardware}, not for {hw.name}")
        return constants, ()
    saved = saved_constants(hw, dtype, lambda line: print(f"fusetui: {line}", file=sys.stderr))
    if saved is not None:
        return saved[0], (f"constants: the saved calibration {saved[1]}",)
    return default_constants(hw, dtype), ()


def _plan(args: argparse.Namespace) -> int:
    from fusetui.accelerator.plan import tile_options
    from fusetui.accelerator.policy import POLICIES
    from fusetui.accelerator.presets import load_hardware
    from fusetui.accelerator.sections import plan_graph
    from fusetui.commands import plan_output

    hw = load_hardware(args.hardware)
    subject = subject_of(args)
    constants, said = constants_of(args, hw, subject.dtype)
    plans, cuts = plan_graph(subject.graph, hw, constants, subject.dtype, mode=args.launch, policies=tuple(POLICIES))
    options = None
    if args.pareto:
        options = tile_options(subject.graph, hw, constants, subject.dtype, plans.plans[args.policy])
    notes = (*subject.notes, *said, *cuts)
    print(plan_output.render(args, plans, hw, subject.captured, notes, options))
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
