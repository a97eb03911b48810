"""A PyTorch execution trace (`ExecutionTraceObserver`, JSON) as a graph: the operators of one step, flow by tensor ids.

Such a trace has no times. It names every tensor an operator read and wrote, so that who reads what is known and not
guessed from sizes. Operators are taken where the model first knows one on the way from the framework's call down to the
backend's: `aten::linear`, not the product inside it. The nodes are handed to the reader of ONNX models.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, Final

from fusetui.accelerator.errors import AcceleratorError
from fusetui.accelerator.exec_trace_call import Call, ids_and_shapes, schema_names
from fusetui.accelerator.exec_trace_ops import ALLOCATIONS, is_collective, is_known, translated
from fusetui.accelerator.onnx_file import ELEMENT_CAP, NODE_CAP, Node, OnnxModel
from fusetui.accelerator.onnx_graph import OnnxGraph, graph_of

TEXT_CAP: Final = 1 << 29
_HEAD: Final = 1 << 16
_GZIP: Final = b"\x1f\x8b"
_MARKS: Final = (re.compile(rb'"schema"\s*:\s*"[\w.-]+"'), re.compile(rb'"nodes"\s*:\s*\['))
_STEP: Final = re.compile(r"ProfilerStep#\d+\Z")
_OPSET: Final = 21


def looks_like_execution_trace(path: Path) -> bool:
    """Whether a file, plain or gzipped, begins as a JSON object with a schema and a list of nodes."""
    try:
        with _opened(path) as file:
            head = file.read(_HEAD)
    except (OSError, EOFError):
        return False
    return head.lstrip().startswith(b"{") and all(mark.search(head) for mark in _MARKS)


def read_execution_trace(path: Path, dtype: str | None = None) -> OnnxGraph:
    """The graph of one step; `dtype` takes the place of every floating-point type in it.

    Raises AcceleratorError naming the file when it is none or shows no operator, GraphError for impossible sizes.
    """
    where = str(path)
    trace = _Trace(where, _nodes(path))
    trace.take()
    if not trace.known:
        raise AcceleratorError(where, "no operator in it that the model knows", "record the forward pass of a model")
    found = graph_of(trace.model(), path.name.split(".")[0], dtype)
    return OnnxGraph(found.graph, found.dtype, (*trace.notes(), *found.notes))


def _opened(path: Path) -> Any:
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
    return gzip.open(path) if packed else path.open("rb")


def _nodes(path: Path) -> list[dict[str, Any]]:
    """Nodes with whole numbers as ids, in the order they were called."""
    where = str(path)
    try:
        with _opened(path) as file:
            text = file.read(TEXT_CAP + 1)
    except (OSError, EOFError) as error:
        raise AcceleratorError(where, f"cannot be read: {error}") from None
    if len(text) > TEXT_CAP:
        raise AcceleratorError(where, f"more than {TEXT_CAP >> 20} MiB of nodes", "record fewer steps")
    try:
        nodes = json.loads(text)["nodes"]
        good = [node for node in nodes if type(node["id"]) is int and isinstance(node["name"], str)]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise AcceleratorError(where, "is not a whole execution trace", "stop the observer before it is read") from None
    return sorted(good, key=lambda node: int(node["id"]))


class _Trace:
    """Nodes of a model while the calls of one step are walked through."""

    def __init__(self, where: str, nodes: list[dict[str, Any]]) -> None:
        self._where = where
        self._all = nodes
        self._nodes: list[Node] = []
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._types: dict[str, int] = {}
        self._current: dict[tuple[int, int], str] = {}
        self._given: list[str] = []
        self._weights: set[str] = set()
        self._left_out: Counter[str] = Counter()
        self._step = ""
        self.known = self.unknown = 0

    def take(self) -> None:
        """Every call that no call above it stands for."""
        nodes = self._of_one_step()
        lead_down = _leading_down(nodes)
        covered: set[int] = set()
        for node in nodes:
            number, name = node["id"], node["name"]
            if _parent(node) in covered:
                covered.add(number)
            elif _stands_for_its_calls(name) or (_is_operator(name) and number not in lead_down):
                covered.add(number)
                self._call(node)

    def _of_one_step(self) -> list[dict[str, Any]]:
        """The second of several steps, which is neither warming up nor cut; all nodes without steps."""
        steps = [(node["id"], node["name"]) for node in self._all if _STEP.match(node["name"])]
        if not steps:
            return self._all
        at = 1 if len(steps) > 2 else 0
        begin, name = steps[at]
        end = steps[at + 1][0] if at + 1 < len(steps) else self._all[-1]["id"] + 1
        self._step = f"one of {len(steps)} steps is shown: {name}" if len(steps) > 1 else ""
        return [node for node in self._all if begin <= node["id"] < end]

    def _call(self, node: dict[str, Any]) -> None:
        name = node["name"]
        written = ids_and_shapes(node, "output")
        if name in ALLOCATIONS or is_collective(name):
            self._left_out["collectives" if is_collective(name) else "allocations and fills"] += 1
            for tensors in written if name in ALLOCATIONS else ():
                for tensor in tensors:
                    self._current.pop(tensor.key, None)
            return
        out = [tensor for tensors in written for tensor in tensors]
        if not out:
            self._left_out["operators on lists of tensors (optimizers), or without a result"] += 1
            return
        if len(self._nodes) >= NODE_CAP:
            raise AcceleratorError(self._where, f"more than {NODE_CAP:,} operators in a step", "record fewer of them")
        call = self._read(node)
        if call.returns(out[0].key):
            return
        outputs = [self._made(tensor, f"{call.name}.{node['id']}") for tensor in out]
        nodes = translated(call, outputs, self._shapes)
        self.known += nodes is not None
        self.unknown += nodes is None
        if nodes is None:
            nodes = [Node(f"{call.name} {node['id']}", name, "", call.all_tensors(), (outputs[0],), {})]
        self._nodes += nodes
        self._weights.update(made for node in nodes for made in (node.inputs[1:] if call.has_weights else ()))
        computed = {made for node in nodes for made in node.outputs}
        for tensor, output in zip(out, outputs, strict=True):
            # What no node computes (saved statistics, indices) is given to those that read it.
            if output in computed:
                self._current[tensor.key] = output
            else:
                self._current.pop(tensor.key, None)

    def _read(self, node: dict[str, Any]) -> Call:
        names = schema_names(node)
        tensors: dict[str, list[str]] = {}
        values: dict[str, Any] = {}
        keys: dict[str, list[tuple[int, int]]] = {}
        for at, (value, found) in enumerate(ids_and_shapes(node, "input", values=True)):
            name = names[at] if at < len(names) else str(at)
            values[name] = value
            if found and name != "out":
                tensors[name] = [self._operand(tensor) for tensor in found]
                keys[name] = [tensor.key for tensor in found]
        return Call(node["name"], node["id"], tensors, values, keys)

    def _operand(self, tensor: Any) -> str:
        known = self._current.get(tensor.key)
        if known is not None and self._shapes[known] == tensor.shape:
            return known
        name = self._made(tensor, "tensor")
        self._given.append(name)
        self._current[tensor.key] = name
        return name

    def _made(self, tensor: Any, label: str) -> str:
        if tensor.points > ELEMENT_CAP:
            raise AcceleratorError(self._where, f"{label}: shape {list(tensor.shape)[:8]} is not possible")
        name = f"{label}:{len(self._shapes)}"
        self._shapes[name], self._types[name] = tensor.shape, tensor.type
        return name

    def model(self) -> OnnxModel:
        """What was walked through; results that nobody reads are its outputs."""
        read = {name for node in self._nodes for name in node.inputs}
        results = [node.outputs[0] for node in self._nodes if node.outputs[0] not in read]
        weights = frozenset(name for name in self._given if name in self._weights)
        return OnnxModel(
            where=self._where,
            opset=_OPSET,
            nodes=tuple(self._nodes),
            inputs=tuple(name for name in self._given if name not in weights),
            outputs=tuple(results),
            constants=weights,
            shapes=self._shapes,
            types=self._types,
            values={},
            refused={},
        )

    def notes(self) -> tuple[str, ...]:
        """How much of the step is in the graph, and what is not."""
        total = self.known + self.unknown
        notes = [
            f"an execution trace has no times; {self.known:,} of {total:,} operators ({self.known / total:.0%}) are "
            "known to the model; which of them reads what is told by tensor ids"
        ]
        notes += [self._step] if self._step else []
        notes += [f"{count:,} {what}: left out" for what, count in sorted(self._left_out.items())]
        if any(".unfolded" in node.name for node in self._nodes):
            notes.append("gradients of convolution weights: priced as products over the unfolded image")
        return tuple(notes)


def _parent(node: dict[str, Any]) -> Any:
    return node.get("ctrl_deps", node.get("parent"))


def _stands_for_its_calls(name: str) -> bool:
    return name in ALLOCATIONS or is_collective(name) or is_known(name)


def _is_operator(name: str) -> bool:
    """Not an annotation, nor a node of the autograd engine or of a wrapper."""
    return "::" in name and " " not in name and not name.startswith(("autograd::", "torch::"))


def _leading_down(nodes: list[dict[str, Any]]) -> set[int]:
    """Ids of the calls within which another operator works."""
    found: set[int] = set()
    for node in reversed(nodes):
        name = node["name"]
        works = _is_operator(name) and name not in ALLOCATIONS
        if (works or node["id"] in found) and type(_parent(node)) is int:
            found.add(_parent(node))
    return found
