"""Representative blocks, one file each: a module here with TITLE, DEFAULTS and `build` is a block."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from fusetui.accelerator.blocks.models import MODELS
from fusetui.accelerator.graph import Graph, GraphError


@dataclass(frozen=True, slots=True)
class Block:
    """A block's name, what it is, and the shape parameters it takes with their defaults."""

    name: str
    title: str
    defaults: Mapping[str, int]


@cache
def _modules() -> dict[str, ModuleType]:
    found = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        if hasattr(module, "TITLE"):
            found[info.name.replace("_", "-")] = module
    return dict(sorted(found.items()))


def blocks() -> tuple[Block, ...]:
    """Every built-in block, by name."""
    return tuple(Block(name, module.TITLE, module.DEFAULTS) for name, module in _modules().items())


def build_block(name: str, shapes: Mapping[str, int | str] | None = None, dtype: str = "bf16") -> Graph:
    """The graph of block `name` at these shapes; ``model=llama-7b`` sets the parameters that model has.

    Explicit parameters win over the model's, the model's over the block's defaults.
    Raises GraphError for an unknown block, model or parameter and for a size that is not a whole number from 1 up.
    """
    modules = _modules()
    if name not in modules:
        raise GraphError(f"block {name}", "does not exist", f"one of {', '.join(modules)}")
    module = modules[name]
    given = dict(shapes or {})
    parameters = dict(module.DEFAULTS)
    model = given.pop("model", None)
    if model is not None:
        if model not in MODELS:
            raise GraphError(f"model {model}", "is not known", f"one of {', '.join(MODELS)}")
        parameters |= {key: value for key, value in MODELS[str(model)].items() if key in parameters}
    for key, value in given.items():
        if key not in parameters:
            raise GraphError(f"block {name}", f"has no parameter {key}", f"it has {', '.join(parameters)}")
        if not isinstance(value, int) or value < (0 if parameters[key] in (0, 1) else 1):
            raise GraphError(f"block {name}, parameter {key}", f"{value!r} is not a whole number from 1 up")
        parameters[key] = value
    graph = module.build(parameters, dtype)
    assert isinstance(graph, Graph)
    return graph


def parse_shapes(text: str) -> dict[str, int | str]:
    """``batch=4,sequence=1024,model=llama-7b`` as a mapping. Raises GraphError naming the part at fault."""
    shapes: dict[str, int | str] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        key, equals, value = part.partition("=")
        key, value = key.strip(), value.strip()
        if not equals or not key or not value:
            raise GraphError(f"--shapes {part}", "is not NAME=VALUE", "e.g. batch=4,sequence=1024")
        if key == "model":
            shapes[key] = value
        elif value.isascii() and value.isdigit():
            shapes[key] = int(value)
        else:
            raise GraphError(f"--shapes {part}", f"{value!r} is not a whole number from 1 up")
    return shapes
