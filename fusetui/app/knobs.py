"""The knobs of the what-if screen: what each is called, which values it takes, and one step up or down."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, get_args

from fusetui.accelerator.blocks import blocks
from fusetui.accelerator.blocks.models import MODELS
from fusetui.accelerator.launch import Mode
from fusetui.accelerator.policy import POLICIES
from fusetui.accelerator.presets import hardware_names
from fusetui.analysis.planned import Knobs

Value = float | int | str
Changes = Mapping[str, Value]

SHAPE: Final = "shape."
MODEL: Final = "shape.model"
CAPTURE: Final = "the capture"
NO_MODEL: Final = "the block's own sizes"
FACTORS: Final = (0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)
DTYPES: Final = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "nvfp4")
MAX_SHAPE: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class Knob:
    """One knob.

    name   a field of `Knobs`, or "shape." and a parameter of the block
    label  what it is called on the screen
    sort   "factor" (on a ladder around 1), "choice" (of words) or "count" (doubles and halves; 0 and 1 switch)
    """

    name: str
    label: str
    sort: str


_FIXED: Final = (
    Knob("hardware", "hardware", "choice"),
    Knob("sram", "SRAM", "factor"),
    Knob("bandwidth", "bandwidth", "factor"),
    Knob("launch", "launch cost", "factor"),
    Knob("mode", "launch mode", "choice"),
    Knob("policy", "policy", "choice"),
    Knob("block", "block", "choice"),
)
_FIRST_SHAPES: Final = ("batch", "sequence", "context", "tokens")


def knobs_of(block: str) -> tuple[Knob, ...]:
    """The knobs there are for a block; the operators of a capture ("") have the sizes and the type they ran with."""
    if not block:
        return _FIXED
    names = sorted(shape_defaults(block), key=lambda name: name not in _FIRST_SHAPES)
    model = (Knob(MODEL, "model", "choice"),) if models_of(block) else ()
    return (
        *_FIXED,
        Knob("dtype", "dtype", "choice"),
        *model,
        *(Knob(SHAPE + n, n.replace("_", " "), "count") for n in names),
    )


@cache
def _defaults() -> dict[str, Mapping[str, int]]:
    return {block.name: block.defaults for block in blocks()}


def shape_defaults(block: str) -> Mapping[str, int]:
    """The shape parameters of a built-in block with their defaults; none of anything else."""
    return _defaults().get(block, {})


@cache
def models_of(block: str) -> tuple[str, ...]:
    """The models whose published sizes say something about a block."""
    sizes = shape_defaults(block)
    return tuple(name for name, model in MODELS.items() if any(key in sizes for key in model))


@cache
def _hardware() -> tuple[str, ...]:
    return hardware_names()


def choices(name: str, *, captured: bool) -> tuple[str, ...]:
    """The values of a "choice" knob; captured: the operators of the capture are known."""
    if name == "hardware":
        return _hardware()
    if name == "block":
        return (*(("",) if captured else ()), *_defaults())
    return {"mode": get_args(Mode), MODEL: ("", *MODELS), "policy": tuple(POLICIES), "dtype": DTYPES}[name]


def value_of(knobs: Knobs, name: str) -> Value:
    """What a knob stands at."""
    if name.startswith(SHAPE):
        shape = name.removeprefix(SHAPE)
        model = str(knobs.shapes.get("model", ""))
        if name == MODEL:
            return model
        return knobs.shapes.get(shape, MODELS.get(model, {}).get(shape, shape_defaults(knobs.block).get(shape, 1)))
    value: Value = getattr(knobs, name)
    return value


def changed(knobs: Knobs, changes: Changes) -> Knobs:
    """`knobs` with some of them at other values."""
    shapes = {name.removeprefix(SHAPE): value for name, value in changes.items() if name.startswith(SHAPE)}
    fields = {name: value for name, value in changes.items() if not name.startswith(SHAPE)}
    sizes = {name: value for name, value in {**knobs.shapes, **shapes}.items() if isinstance(value, int) or value}
    return dataclasses.replace(knobs, shapes=sizes, **fields)  # type: ignore[arg-type]


def stepped(knob: Knob, value: Value, steps: int, *, captured: bool) -> Value:
    """The value one step up or down; at an end of a scale it stays, words go round."""
    if knob.sort == "choice":
        words = choices(knob.name, captured=captured)
        at = _position(words, str(value))
        return words[(at + steps) % len(words)]
    if knob.sort == "factor":
        now = float(value)
        if steps > 0:
            return min((step for step in FACTORS if step > now * 1.001), default=now)
        return max((step for step in FACTORS if step < now * 0.999), default=now)
    return _count(knob, int(value), steps)


def _count(knob: Knob, value: int, steps: int) -> int:
    if value in (0, 1) and knob.name.removeprefix(SHAPE) in _switches():
        return int(steps > 0)
    return min(MAX_SHAPE, value * 2) if steps > 0 else max(1, value // 2)


@cache
def _switches() -> frozenset[str]:
    """Parameters that are yes or no: 0 in a block, or named for something that is there or not."""
    zero = {name for shapes in _defaults().values() for name, value in shapes.items() if value == 0}
    return frozenset(zero | {"gated", "rope", "causal"})


def _position(words: Sequence[str], value: str) -> int:
    folded = [word.lower() for word in words]
    return folded.index(value.lower()) if value.lower() in folded else 0


def shown_value(knob: Knob, value: Value) -> str:
    """A value as people write it."""
    if knob.sort == "factor":
        return f"×{float(value):g}"
    if knob.name == "block":
        return str(value) or CAPTURE
    if knob.name == MODEL:
        return str(value) or NO_MODEL
    if knob.sort == "count" and knob.name.removeprefix(SHAPE) in _switches():
        return "yes" if value else "no"
    return str(value)
