"""PyTorch execution traces (`ExecutionTraceObserver`, JSON; schemas 1.0.1 to 1.1.1-chakra.0.0.4).

Such a file has the operators in the order they were called, their shapes and what depends on what, but no times. An
operator is a mark at time 0 with its shape and thread, in the order of the node numbers; nothing is measured of it.
The end of the recording is known to the millisecond and is the last mark.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.kineto_shapes import shape_keys
from fusetui.importers.readings import Readings
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.text import safe_text

NAME: Final = "PyTorch execution trace"

_OPENING: Final = re.compile(rb'"nodes"\s*:\s*\[')
_SCHEMA: Final = re.compile(rb'"schema"\s*:\s*"([^"]{1,60})"')
_CHUNK: Final = 1 << 20
_MAX_BROKEN: Final = 1000
_LONGEST_MS: Final = 10**10


class _Operands(msgspec.Struct, gc=False):
    shapes: Any = None
    types: Any = None


class _Node(msgspec.Struct, gc=False):
    id: int
    name: str
    inputs: _Operands | list[Any] | None = None
    input_shapes: Any = None
    input_types: Any = None
    tid: Any = None
    attrs: Any = None


class _Trace(msgspec.Struct, gc=False):
    nodes: list[_Node]
    schema: str = ""
    time: Any = None
    start_ts: Any = None
    finish_ts: Any = None


def sniff(head: bytes) -> bool:
    """A JSON object with a schema and a list of nodes."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and bool(
        _SCHEMA.search(head[: 64 << 10]) and _OPENING.search(head)
    )


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a trace. Raises TelemetryError when there is no operator in it."""
    text, notes = _text(path, memory_bytes // 8)
    try:
        trace = msgspec.json.decode(text, type=_Trace)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        trace, broken = _pieces(text)
        notes.append(f"the file is cut or broken: unreadable nodes: {broken:,}")
    if not trace.nodes:
        raise TelemetryError(str(path), f"{NAME} without one readable operator")
    trace.nodes.sort(key=lambda node: node.id)
    rows = Readings(str(path), memory_bytes // 4)
    facts = [_facts(node) for node in trace.nodes]
    keys = _keys(trace.nodes)
    shapes = [_message(fact) or key for fact, key in zip(facts, keys, strict=True)]
    names = [_named(node.name, fact) for node, fact in zip(trace.nodes, facts, strict=True)]
    threads = [f"thread {fact['tid']}" if type(fact.get("tid")) is int else None for fact in facts]
    rows.add(np.zeros(len(names), np.int64), None, name=names, stream=threads, shape=shapes)
    notes.append("no times: an execution trace has operators and shapes only; `fusetui plan` plans them")
    notes.append(f"operators with shapes: {sum(shape is not None for shape in shapes):,} of {len(shapes):,}")
    lasted_ms = _lasted_ms(trace)
    if lasted_ms is not None:
        rows.add(np.array([lasted_ms * 1_000_000]), None, name="end of the execution trace")
    build = {"schema": safe_text(trace.schema, 60), "recorded": safe_text(str(trace.time or ""), 40)}
    return rows.capture(Header(source="pytorch-execution-trace", clock="trace", build=build), notes)


def _text(path: Path, room: int) -> tuple[bytes, list[str]]:
    with ByteStream(path) as stream:
        parts: list[bytes] = []
        while room > 0 and (part := stream.read(_CHUNK)):
            parts.append(part)
            room -= len(part)
        notes = [stream.damage] if stream.damage else []
    if room <= 0:
        notes.append("only the beginning was read: more does not fit in --memory")
    return b"".join(parts), notes


def _pieces(data: bytes) -> tuple[_Trace, int]:
    """The nodes of a file that is no JSON as a whole, and how many could not be read."""
    schema, opening = _SCHEMA.search(data), _OPENING.search(data)
    trace, broken = _Trace([], schema[1].decode("utf-8", "replace") if schema else ""), 0
    text = data[opening.end() :].decode("utf-8", "replace") if opening else ""
    decoder, at, wasted = json.JSONDecoder(strict=False), 0, 0
    while (at := text.find("{", at)) >= 0 and broken < _MAX_BROKEN and wasted <= 2 * len(text):
        try:
            found, at = decoder.raw_decode(text, at)
            trace.nodes.append(msgspec.convert(found, _Node))
        except (ValueError, RecursionError) as error:  # also a node without id or name
            wasted += getattr(error, "pos", at) - at
            broken, at = broken + 1, at + 1
            following = re.compile(r'\{\s*"(?:id|name)"').search(text, at)
            at = following.start() if following else len(text)
    return trace, broken


def _facts(node: _Node) -> dict[str, Any]:
    found = {"tid": node.tid}
    for entry in node.attrs if isinstance(node.attrs, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            found[entry["name"]] = entry.get("value")
    return found


def _keys(nodes: list[_Node]) -> list[str | None]:
    encode = msgspec.json.encode
    return shape_keys([(encode(sizes), encode(kinds)) for sizes, kinds in map(_tensors, nodes)])


def _tensors(node: _Node) -> tuple[list[Any], list[str]]:
    """Sizes and types of the inputs that are tensors, those in lists too."""
    shapes, types = node.input_shapes, node.input_types
    if isinstance(node.inputs, _Operands):
        shapes, types = node.inputs.shapes, node.inputs.types
    sizes: list[Any] = []
    kinds: list[str] = []
    if not isinstance(shapes, list) or not isinstance(types, list):
        return sizes, kinds
    for shape, kind in zip(shapes, types, strict=False):
        if isinstance(kind, str) and isinstance(shape, list) and "Tensor(" in kind:
            several = kind.startswith("GenericList[")
            sizes += shape if several else [shape]
            kinds += [_plain(part) for part in (_split(kind) if several else [kind])]
    return sizes, kinds


def _plain(kind: str) -> str:
    return kind.removeprefix("Tensor(").removesuffix(")")


def _split(kind: str) -> list[str]:
    return kind.removeprefix("GenericList[").removesuffix("]").split(",")


def _named(name: str, facts: dict[str, Any]) -> str:
    collective = facts.get("collective_name")
    return f"{name} ({collective})" if isinstance(collective, str) and collective else name


def _message(facts: dict[str, Any]) -> str | None:
    """`elements=1000 float ranks=8` of a collective."""
    elements, kind, ranks = (facts.get(key) for key in ("in_msg_nelems", "dtype", "pg_size"))
    if type(elements) is not int or not facts.get("collective_name"):
        return None
    told = [f"elements={elements}", *([kind] if isinstance(kind, str) and kind else [])]
    return " ".join([*told, *([f"ranks={ranks}"] if type(ranks) is int else [])])


def _lasted_ms(trace: _Trace) -> int | None:
    start, finish = trace.start_ts, trace.finish_ts
    if type(start) is not int or type(finish) is not int or not 0 <= finish - start < _LONGEST_MS:
        return None
    return finish - start
