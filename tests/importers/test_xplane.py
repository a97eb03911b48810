"""XPlane profiles: rows with the right times and joins, from files that are whole and files that are not."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections import Counter
from pathlib import Path

import pytest
from kineto_samples import executions, rows_of, write
from protobuf_samples import content, number
from test_kineto_fuzz import mutate
from xplane_samples import BEGAN_NS, PlaneText, profile

from fusetui.importers import xplane, xprof
from fusetui.importers.open import open_capture
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.text import safe_text

MEMORY = 64 << 20
_CORPUS = os.environ.get("FUSETUI_CORPUS")
_TRACES = Path(_CORPUS or ".") / "traces"
needs_corpus = pytest.mark.skipif(not _CORPUS, reason="set FUSETUI_CORPUS to a folder with traces/ and reference/")


@pytest.mark.parametrize("packed", [False, True])
def test_kernels_join_their_launches(tmp_path: Path, packed: bool) -> None:
    data = gzip.compress(profile()) if packed else profile()
    capture = xplane.read(write(tmp_path / "p.pb", data), MEMORY)
    rows = rows_of(capture)
    first, second, orphan = [row for row in rows if row["kind"] == "execution"]
    assert (first["name"], first["start_ns"] - BEGAN_NS, first["end_ns"] - BEGAN_NS) == ("first", 31_000, 36_000)
    assert (first["enqueue_ns"] - BEGAN_NS, first["launch_ns"], first["device"]) == (14_500, 4_000, 2)
    assert (first["stream"], first["plan"], first["mapping"]) == ("Stream #5(Kernel)", "jit_f #7", "planned")
    assert first["request"] == 4
    assert (second["start_ns"] - BEGAN_NS, second["enqueue_ns"] - BEGAN_NS) == (41_001, 23_500)
    assert "plan" not in second
    assert (orphan["end_ns"] - orphan["start_ns"], "enqueue_ns" in orphan) == (1, False)
    assert [(r["request"], r["start_ns"] - BEGAN_NS) for r in rows if r["kind"] == "request"] == [(4, 5_500)]
    assert capture.notes == ["device work without its launch call in the capture: 1 of 3"]
    header = capture.header
    assert (header.source, header.clock, header.host) == ("xplane", "epoch", "node7")
    assert header.hardware == {"device 2": "AMD, 304 cores, 192 GiB"}
    assert header.build == {"jax_version": "0.9"}


def test_a_tpu_core_ran_its_xla_ops_and_loops_are_no_work(tmp_path: Path) -> None:
    tpu = PlaneText("/device:TPU:0")
    tpu.line("Steps", [("3", 0, 100_000_000, {})])
    tpu.line("XLA Modules", [("jit_f", 0, 100_000_000, {})])
    tpu.line("XLA Ops", [("while", 10_000, 50_000, {}), ("fusion.1", 10_000, 20_000, {}), ("copy", 40_000, 20_000, {})])
    capture = xplane.read(write(tmp_path / "p.pb", tpu.encoded()), MEMORY)
    rows = rows_of(capture)
    ran = [(r["name"], r["start_ns"], r["end_ns"], r["request"]) for r in rows if r["kind"] == "execution"]
    assert ran == [("fusion.1", 10, 30, 3), ("copy", 40, 60, 3)]
    assert "operations that contain others (while, call) left out: 1" in capture.notes
    assert capture.header.clock == "trace"


def test_without_devices_the_operations_of_compiled_modules_count(tmp_path: Path) -> None:
    host = PlaneText("/host:CPU")
    op: dict[str, int | str] = {"hlo_op": "dot", "hlo_module": "jit_g", "device_ordinal": 1}
    host.line("pool/1", [("dot", 7_000, 2_000, op), ("end: dot", 9_000, 1, {}), ("step", 0, 8_000, {"step_num": 0})])
    host.line("pool/2", [("step", 20_000, 8_000, {"step_num": 0})])
    capture = xplane.read(write(tmp_path / "p.pb", host.encoded()), MEMORY)
    (row,) = executions(capture)
    assert (row["name"], row["device"], row["stream"], row["plan"], row["request"]) == ("dot", 1, "pool/1", "jit_g", 0)
    assert "step numbers repeat: the 2 steps are counted from 0 in order of time" in capture.notes
    assert "no device planes: operations of compiled modules on the host are shown" in capture.notes


def test_statistics_may_hold_their_texts(tmp_path: Path) -> None:
    event = number(1, 1) + number(2, 5_000) + number(3, 1_000)
    event += content(4, number(1, 2) + content(5, "dot")) + content(4, number(1, 3) + content(5, "jit_h"))
    plane = content(2, "/host:CPU") + content(3, content(2, "pool") + content(4, event))
    for key, name in ((2, "hlo_op"), (3, "hlo_module")):
        plane += content(5, number(1, key) + content(2, content(2, name)))
    (row,) = executions(xplane.read(write(tmp_path / "p.pb", content(1, plane)), MEMORY))
    assert (row["name"], row["plan"], row["start_ns"], row["end_ns"]) == ("?", "jit_h", 0, 1)


def test_it_is_found_by_content(tmp_path: Path) -> None:
    trace = open_capture([write(tmp_path / "anything.txt", profile())], memory_bytes=MEMORY)
    assert trace.header.source == "xplane"
    trace.close()
    assert not xplane.sniff(b"{" + profile())


def test_a_cut_file_gives_what_came_before(tmp_path: Path) -> None:
    whole = profile()
    capture = xplane.read(write(tmp_path / "p.pb", whole[: whole.index(b"/host:CPU") + 60]), MEMORY)
    assert len(executions(capture)) == 3
    assert any("came before was read" in note for note in capture.notes)
    packed = gzip.compress(whole)
    with pytest.raises(TelemetryError, match="gzip data is cut off"):
        xplane.read(write(tmp_path / "q.pb", packed[:40]), MEMORY)


def test_nothing_ran(tmp_path: Path) -> None:
    host = PlaneText("/host:CPU")
    host.line("python", [("$call", 0, 5, {})])
    with pytest.raises(TelemetryError, match="no kernel and no compiled module ran; profile some work"):
        xplane.read(write(tmp_path / "p.pb", host.encoded()), MEMORY)


@pytest.mark.parametrize("window", [64, 200])
def test_window_size_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, window: int) -> None:
    path = write(tmp_path / "p.pb", profile())
    wanted = rows_of(xplane.read(path, MEMORY))
    monkeypatch.setattr("fusetui.importers.xplane_lines._WINDOW", window)
    assert rows_of(xplane.read(path, MEMORY)) == wanted


@pytest.mark.parametrize("block", range(4))
def test_mutations_are_read_or_refused(tmp_path: Path, block: int) -> None:
    data, read = profile(), 0
    lines: list[str] = []
    for case in range(block, 200, 4):
        noise = random.Random(case)
        changed = mutate(data, noise)
        path = write(tmp_path / "fuzz.pb", mutate(gzip.compress(changed), noise) if case % 8 == 0 else changed)
        try:
            rows = rows_of(xplane.read(path, 1 << 20))
        except TelemetryError as error:
            lines.append(str(error))
        else:
            assert all(row["end_ns"] >= row["start_ns"] for row in rows)
            read += 1
    assert read + len(lines) == 50
    assert read >= 10
    assert not any("\n" in line for line in lines)


@needs_corpus
@pytest.mark.parametrize(
    ("name", "reference", "kernels"),
    [
        ("mi300_jax_conv_minimal_08_tw003.xplane", "mi300_jax_conv_minimal_08_tw003.xplane.p", 235),
        (
            "test_data_jax_te_fused_attn_categorization_934987a2fc2f.xplane",
            "test_data_jax_te_fused_attn_categorizati",
            150,
        ),
    ],
)
def test_kernels_agree_with_xprof(name: str, reference: str, kernels: int) -> None:
    folder = Path(_CORPUS or ".") / "reference/traces/xprof"
    table = json.loads((folder / f"AMD-AGI__TraceLens__{reference}.kernel_stats.json").read_text())
    at = {column["id"]: i for i, column in enumerate(table["cols"])}
    wanted: Counter[str] = Counter()
    took_us: Counter[str] = Counter()
    for row in table["rows"]:
        kernel = safe_text(row["c"][at["kernel_name"]]["v"])
        wanted[kernel] += int(row["c"][at["occurrences"]]["v"])
        took_us[kernel] += row["c"][at["total_duration_us"]]["v"]
    rows = executions(xplane.read(_TRACES / f"xplane/AMD-AGI__TraceLens__{name}.pb", MEMORY))
    assert len(rows) == kernels
    assert all("enqueue_ns" in row for row in rows)
    compiled = [row for row in rows if row["name"] in wanted]
    assert Counter(row["name"] for row in compiled) == wanted
    for kernel, total in took_us.items():
        ours = sum(row["end_ns"] - row["start_ns"] for row in compiled if row["name"] == kernel)
        assert ours / 1e3 == pytest.approx(total, abs=1e-6)


@needs_corpus
@pytest.mark.parametrize(
    ("name", "packed", "work", "steps"),
    [("jit_mixed", "", 505, 20), ("opbyop_1x128", "", 300, 5), ("jit_recompile_shapes", ".gz", 351, 10)],
)
def test_the_profile_and_its_json_tell_the_same(name: str, packed: str, work: int, steps: int) -> None:
    stem = _TRACES / "local/jax"
    rows = rows_of(xplane.read(stem / f"jax_{name}__xplane.pb{packed}", MEMORY))
    assert Counter(row["kind"] for row in rows) == {"execution": work, "request": steps}
    zero = min(row["start_ns"] for row in rows)
    for kind in ("trace", "perfetto_trace"):
        same = rows_of(xprof.read(stem / f"jax_{name}__{kind}.json.gz", MEMORY))
        keys = ("kind", "name", "request", "device", "stream")
        assert sorted([(r["start_ns"] - zero, r["end_ns"] - zero, *map(r.get, keys)) for r in rows], key=str) == sorted(
            [(r["start_ns"], r["end_ns"], *map(r.get, keys)) for r in same], key=str
        )
    plans = {row["plan"] for row in rows if row.get("plan", "").startswith("jit_blk")}
    assert len(plans) == {"jit_mixed": 4, "opbyop_1x128": 0, "jit_recompile_shapes": 5}[name]
