"""Damaged and malicious captures, made from a seed, and a harness that survives what they do."""

from __future__ import annotations

import io
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl  # imported before the forks, its threads start in the children
import pyarrow as pa
import pyarrow.parquet as pq
from telemetry_samples import foreign_stream, numbered, stream_of

from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.open import open_trace
from fusetui.telemetry.reader import StreamReader

MEMORY_BYTES = 4 << 30
CPU_SECONDS = 10
WALL_SECONDS = 40  # longer: the machine may be busy
ESCAPED = 90


@dataclass(frozen=True)
class Verdict:
    """What one input did: "ok", "refused" or what went wrong, and how long it took."""

    outcome: str
    detail: str
    seconds: float


def rich_batch(first: int, rows: int) -> pa.RecordBatch:
    """A foreign batch with nulls and columns of many types that the contract does not know."""
    number = np.arange(first, first + rows)
    maybe = pa.array([None if i % 5 == 0 else int(i) for i in number])
    return pa.record_batch(
        {
            "kind": pa.array(["execution" if i % 2 else "counter" for i in number]).dictionary_encode(),
            "name": pa.array([f"op_{i % 11}é" for i in number]).dictionary_encode(),
            "start_ns": pa.array(number * 10),
            "end_ns": pa.array(number * 10 + 5),
            "enqueue_ns": maybe,
            "core": pa.array(number % 8, pa.int32()),
            "value": pa.array(number * 0.5),
            "stream": pa.array([None if i % 7 == 0 else f"s{i % 3}" for i in number]),
            "host": pa.array(["h"] * rows, pa.string_view()),
            "inner": pa.array([{"a": int(i), "b": "x"} for i in number]),
            "lists": pa.array([[int(i)] * (i % 3) for i in number]),
            "flag": pa.array([bool(i % 2) for i in number]),
        }
    )


def bases() -> dict[str, bytes]:
    """Well-formed captures to damage."""
    batches = [rich_batch(i * 200, 200) for i in range(3)]
    unified = pa.Table.from_batches(batches).unify_dictionaries().to_batches()
    made = {"contract": stream_of([numbered(0, 300), numbered(300, 300)]), "stream": foreign_stream(batches)}
    for name in ("lz4", "zstd"):
        options = pa.ipc.IpcWriteOptions(compression=name)
        for form, open_writer in (("stream", pa.ipc.new_stream), ("file", pa.ipc.new_file)):
            sink = io.BytesIO()
            with open_writer(sink, unified[0].schema, options=options) as writer:
                for batch in unified:
                    writer.write_batch(batch)
            made[f"{form} {name}"] = sink.getvalue()
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, unified[0].schema) as writer:
        for batch in unified:
            writer.write_batch(batch)
    made["file"] = sink.getvalue()
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_batches(unified), sink, row_group_size=200)
    made["parquet"] = sink.getvalue()
    return made


def mutated(data: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """One to eight changes, favouring the bytes that hold lengths and offsets."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        at = rng.randrange(len(out) - 8)
        match rng.randrange(8):
            case 0:
                out[at] ^= 1 << rng.randrange(8)
            case 1:
                out[at] = rng.randrange(256)
            case 2:
                edge = rng.choice((0, -1, 1, 0x7FFFFFFF, -0x80000000, 0x100, 0xFFFF))
                struct.pack_into("<i", out, at & ~3, edge)
            case 3:
                edge = rng.choice((0, -1, 1 << 62, -(1 << 62), 1 << 31, (1 << 63) - 1))
                struct.pack_into("<q", out, at & ~7, edge)
            case 4:
                length = rng.randrange(1, 64)
                out[at : at + length] = bytes(length)
            case 5:
                del out[at : at + rng.choice((1, 4, 8, 64))]
            case 6:
                donor = rng.choice(others)
                start = rng.randrange(len(donor) - 8)
                piece = donor[start : start + rng.randrange(8, 512)]
                out[at : at + len(piece)] = piece
            case _:
                del out[max(16, at) :]
        if len(out) < 32:
            break
    return bytes(out)


def fuzz_inputs(count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """`count` mutations, the bases in turn."""
    rng = random.Random(seed)
    made = bases()
    names = list(made)
    for number in range(count):
        name = names[number % len(names)]
        yield f"{name} #{number}", mutated(made[name], list(made.values()), rng)


def crafted_inputs() -> dict[str, bytes]:
    """Attacks that mutation would not find."""
    one = {"kind": ["mark"], "name": ["m"], "start_ns": [1], "end_ns": [1]}
    plain = {name: pa.array(values) for name, values in one.items()}
    codes = pa.DictionaryArray.from_arrays(pa.array([7], pa.int32()), pa.array(["a"]), safe=False)
    offsets = pa.py_buffer(np.array([0, 2], "<i4"))
    invalid = pa.StringArray.from_buffers(1, offsets, pa.py_buffer(b"\xff\xfe"))
    nested = pa.array([1])
    for _ in range(60):
        nested = pa.ListArray.from_arrays(pa.array([0, len(nested)], pa.int32()), nested)
    good = foreign_stream([pa.record_batch(plain)])
    named = foreign_stream([pa.record_batch({**plain, "badname": pa.array([1])})])
    return {
        "feather 1": b"FEA1" + bytes(28) + b"FEA1",
        "metadata of 2 GiB": b"\xff\xff\xff\xff\xff\xff\xff\x7f" + bytes(64),
        "negative metadata": b"\xff\xff\xff\xff\x01\x00\x00\x80" + bytes(64),
        "zstd claims 2^62": _claim(1 << 62),
        "zstd claims -2": _claim(-2),
        "zstd bomb": _bomb("zstd"),
        "lz4 bomb": _bomb("lz4"),
        "parquet bomb": _parquet_bomb(),
        "200 MiB metadata": foreign_stream([pa.record_batch(plain).replace_schema_metadata({b"k": bytes(200 << 20)})]),
        "many columns": _many_columns(500_000),
        "index out of range": foreign_stream([pa.record_batch({**plain, "name": codes})]),
        "invalid UTF-8 value": foreign_stream([pa.record_batch({**plain, "name": invalid})]),
        "invalid UTF-8 column name": named.replace(b"badname", b"\xff\xfename"),
        "nested lists": foreign_stream([pa.record_batch({**plain, "deep": nested})]),
        "nested name": foreign_stream([pa.record_batch({**plain, "name": nested})]),
        "twice": foreign_stream([pa.RecordBatch.from_arrays([*plain.values(), plain["name"]], names=[*plain, "name"])]),
        "schemas without end": good[:-8] * 50,
        "end markers": good + b"\xff\xff\xff\xff\x00\x00\x00\x00" * 100_000,
        "overlapping views": _overlapping_views(),
        "growing dictionary": _deltas(3000),
        "header is not JSON": foreign_stream(
            [pa.record_batch(plain).replace_schema_metadata({b"fusetui": b"{" * 5000})]
        ),
        "escape codes": foreign_stream([pa.record_batch({**plain, "name": pa.array(["\x1b]52;c;AAAA\x07"])})]),
        "empty parquet": b"PAR1" + bytes(8) + b"PAR1",
        "empty file": b"ARROW1\x00\x00" + b"\xff\xff\xff\xff\x00\x00\x00\x00" + b"\x00\x00\x00\x00ARROW1",
        "footer of 2 GiB": b"ARROW1\x00\x00" + bytes(64) + b"\xff\xff\xff\x7fARROW1",
    }


def _compressed(name: str, rows: int) -> bytes:
    zeros = pa.array(np.zeros(rows, np.int64))
    kind = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), pa.array(["mark"]))
    batch = pa.record_batch({"kind": kind, "name": kind, "start_ns": zeros, "end_ns": zeros, "request": zeros})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=name)) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _bomb(name: str) -> bytes:
    return _compressed(name, 14_000_000)


def _claim(size: int) -> bytes:
    rows = 10_000
    data = _compressed("zstd", rows)
    return data.replace(struct.pack("<q", rows * 8), struct.pack("<q", size))


def _parquet_bomb() -> bytes:
    rows = 14_000_000
    zeros = pa.array(np.zeros(rows, np.int64))
    mark = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), pa.array(["mark"]))
    table = pa.table({"kind": mark, "name": mark, "start_ns": zeros, "end_ns": zeros})
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", use_dictionary=["kind", "name"], row_group_size=rows)
    return sink.getvalue()


def _many_columns(count: int) -> bytes:
    schema = pa.schema([pa.field(f"c{i}", pa.int8()) for i in range(count)])
    return bytes(schema.serialize().to_pybytes())


def _overlapping_views() -> bytes:
    rows, size = 100_000, 1 << 20
    views = np.zeros((rows, 4), "<i4")
    views[:, 0], views[:, 1] = size, int.from_bytes(b"aaaa", "little")
    array = pa.Array.from_buffers(
        pa.string_view(), rows, [None, pa.py_buffer(views.tobytes()), pa.py_buffer(b"a" * size)]
    )
    ones = pa.array(np.ones(rows, np.int64))
    kind = pa.array(["mark"] * rows)
    return foreign_stream([pa.record_batch({"kind": kind, "name": array, "start_ns": ones, "end_ns": ones})])


def _deltas(count: int) -> bytes:
    sink = io.BytesIO()
    words = [f"word {i}" for i in range(count)]
    one = pa.array([1])
    schema = pa.schema(
        {"kind": pa.utf8(), "name": pa.dictionary(pa.int32(), pa.utf8()), "start_ns": "i8", "end_ns": "i8"}
    )
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)) as writer:
        for number in range(1, count, 7):
            name = pa.DictionaryArray.from_arrays(pa.array([number - 1], pa.int32()), pa.array(words[:number]))
            writer.write_batch(pa.RecordBatch.from_arrays([pa.array(["mark"]), name, one, one], schema=schema))
    return sink.getvalue()


def use(path: Path) -> str:
    """Read all of a capture, both ways, and touch every value. Only TelemetryError may come out."""
    outcomes = []
    with path.open("rb") as file:
        try:
            for batch in StreamReader(file, "fuzz"):
                _touch(batch)
            outcomes.append("ok")
        except TelemetryError as error:
            outcomes.append(_line(error))
    try:
        trace = open_trace(path)
        for number in range(len(trace.index().rows)):
            try:
                _touch(trace.read(number))
            except TelemetryError as error:
                outcomes.append(_line(error))
        for note in trace.notes:
            assert "\n" not in note
        trace.refresh()
        trace.close()
        outcomes.append("ok")
    except TelemetryError as error:
        outcomes.append(_line(error))
    return "ok" if all(o == "ok" for o in outcomes) else "refused"


def _line(error: TelemetryError) -> str:
    assert str(error).isprintable(), str(error)
    return str(error)


def _touch(batch: pa.RecordBatch) -> None:
    batch.slice(0, 2000).to_pylist()
    frame = pl.from_arrow(batch)
    assert isinstance(frame, pl.DataFrame)
    frame.group_by("name", "stream").agg(pl.len(), pl.col("end_ns").max()).sort("len").height  # noqa: B018
    for name in ("name", "stream", "host"):
        for word in batch.column(name).dictionary.to_pylist():
            assert word.isprintable() or word == "", repr(word)


def run_forked(data: bytes) -> Verdict:
    """`use` in a forked child with limited memory; a signal, a hang or another exception is what went wrong."""
    began = time.monotonic()
    with tempfile.NamedTemporaryFile(prefix="fuzz") as file, tempfile.TemporaryFile() as report:
        file.write(data)
        file.flush()
        child = os.fork()
        if child == 0:
            _child(Path(file.name), report.fileno())
        status = _wait(child)
        report.seek(0)
        detail = report.read().decode("utf-8", "replace")
    seconds = time.monotonic() - began
    if status is None:
        return Verdict("hang", f"over {WALL_SECONDS} s", seconds)
    if os.WIFSIGNALED(status):
        return Verdict("signal", signal.Signals(os.WTERMSIG(status)).name, seconds)
    if os.WEXITSTATUS(status) == ESCAPED:
        return Verdict("escaped", detail, seconds)
    return Verdict(detail or "nothing", "", seconds)


def _child(path: Path, report: int) -> None:
    code = ESCAPED
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        os.write(report, use(path).encode())
        code = 0
    except BaseException as error:  # noqa: BLE001  whatever escapes is the finding; a panic of polars is a BaseException
        os.write(report, f"{type(error).__name__}: {error}"[:500].encode("utf-8", "replace"))
    finally:
        os._exit(code)


def _wait(child: int) -> int | None:
    deadline = time.monotonic() + WALL_SECONDS
    pause = 0.0005
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def run_list(inputs: Iterator[tuple[str, bytes]] | list[tuple[str, bytes]]) -> tuple[list[str], int, int, float]:
    """Failures, inputs, inputs read in full, longest time in s."""
    failures, count, fine, longest = [], 0, 0, 0.0
    for name, data in inputs:
        verdict = run_forked(data)
        count += 1
        fine += verdict.outcome == "ok"
        longest = max(longest, verdict.seconds)
        if verdict.outcome not in ("ok", "refused"):
            failures.append(f"{name}: {verdict.outcome}: {verdict.detail}")
            if keep := os.environ.get("FUSETUI_FUZZ_KEEP"):
                Path(keep, name.replace(" ", "_")).write_bytes(data)
    return failures, count, fine, longest


if __name__ == "__main__":
    # One process without threads: a fork beside a running thread pool may deadlock in the child.
    pa.set_cpu_count(1)
    mode, amount, chosen_seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    todo = fuzz_inputs(amount, chosen_seed) if mode == "fuzz" else iter(crafted_inputs().items())
    bad, total, whole, slowest = run_list(todo)
    print(f"{total} inputs, {whole} read in full, slowest {slowest:.2f} s")
    for line in bad:
        print("FAILED", line)
    sys.exit(1 if bad else 0)
