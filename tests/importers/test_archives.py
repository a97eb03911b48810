"""Archives and folders: opened as the run they hold, hostile ones refused."""

from __future__ import annotations

import bz2
import io
import json
import lzma
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from import_checks import kind_of, opened
from kineto_samples import BASE, kernel, launch, text_of
from nsys_samples import tables, write_db

from fusetui.importers import archive
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.export import write_arrows
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import SCHEMA, build_batch


def rank_text(rank: int | None, name: str = "k") -> bytes:
    events = [launch("cudaLaunchKernel", 100, 5, 1), kernel(name, 110, 20, 1)]
    top = {} if rank is None else {"distributedInfo": {"rank": rank}}
    return text_of(events, baseTimeNanoseconds=BASE, **top).encode()


def zipped(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in members.items():
            out.writestr(name.replace("__", "/"), content)
    return path


def tarred(path: Path, mode: str, **members: bytes) -> Path:
    with tarfile.open(path, mode) as out:  # type: ignore[call-overload]
        for name, content in members.items():
            info = tarfile.TarInfo(name.replace("__", "/"))
            info.size = len(content)
            out.addfile(info, io.BytesIO(content))
    return path


def test_one_capture_in_any_packing(tmp_path: Path) -> None:
    plain = rank_text(0)
    packed = [
        zipped(tmp_path / "a.zip", run__trace=plain, notes=b"hello"),
        tarred(tmp_path / "a.tar", "w", run__trace=plain),
        tarred(tmp_path / "a.tgz", "w:gz", run__trace=plain),
        tarred(tmp_path / "a.txz", "w:xz", run__trace=plain),
    ]
    streams = {
        "xz": lzma.compress(plain),
        "bz2": bz2.compress(plain),
        "zst": pa.Codec("zstd").compress(plain, asbytes=True),
    }
    for name, content in streams.items():
        packed.append(tmp_path / f"b.{name}")
        packed[-1].write_bytes(content)
    before = sorted(tmp_path.iterdir())
    for path in packed:
        rows, _ = opened(path)
        assert [(row["name"], row["launch_ns"]) for row in rows] == [("k", 5000)], path.name
    assert sorted(tmp_path.iterdir()) == before


def test_sqlite_in_a_zip(tmp_path: Path) -> None:
    export = write_db(tmp_path / "a.sqlite", tables()).read_bytes()
    rows, _ = opened(zipped(tmp_path / "a.zip", report=export))
    assert len(kind_of(rows, "execution")) == 7


def test_ranks_of_a_folder_open_together(tmp_path: Path) -> None:
    for rank in (0, 1):
        (tmp_path / f"r{rank}.json").write_bytes(rank_text(rank))
    (tmp_path / "._r0.json").write_bytes(rank_text(7))
    (tmp_path / "README").write_text("two ranks\n")
    rows, trace = opened(tmp_path)
    assert {row["host"] for row in rows} == {"rank 0", "rank 1"}
    assert "files beside them that are no captures: 1" in trace.notes


@pytest.mark.parametrize("ranks", [(None, None), (3, 3), (0, None)])
def test_captures_that_are_no_ranks_are_refused(tmp_path: Path, ranks: tuple[int | None, int | None]) -> None:
    for number, rank in enumerate(ranks):
        (tmp_path / f"r{number}.json").write_bytes(rank_text(rank))
    with pytest.raises(TelemetryError, match="does not say that it is one more rank"):
        opened(tmp_path)


def test_captures_of_several_formats_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(rank_text(0))
    write_db(tmp_path / "b.sqlite", tables())
    with pytest.raises(TelemetryError, match=r"several formats .*Kineto.*Nsight"):
        opened(tmp_path)


def test_a_recording_in_a_folder_opens(tmp_path: Path) -> None:
    batch = build_batch({"kind": "execution", "name": "k", "start_ns": np.array([1]), "end_ns": np.array([3])})
    with pa.ipc.new_stream(str(tmp_path / "a.arrows"), SCHEMA) as writer:
        writer.write_batch(batch)
    assert [row["name"] for row in opened(tmp_path)[0]] == ["k"]


def test_folders_and_archives_without_captures_are_named(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.py").write_text("print()\n")
    with pytest.raises(TelemetryError, match="a directory without any capture"):
        opened(tmp_path / "sub")
    with pytest.raises(TelemetryError, match="zip archive without any capture"):
        opened(zipped(tmp_path / "a.zip", x=b"print()\n"))


def test_errors_inside_an_archive_name_the_archive(tmp_path: Path) -> None:
    empty = json.dumps({"schemaVersion": 1, "traceEvents": []}).encode()
    with pytest.raises(TelemetryError) as caught:
        opened(zipped(tmp_path / "a.zip", run__trace=empty))
    assert caught.value.where == str(tmp_path / "a.zip" / "run" / "trace")


def test_members_stay_inside(tmp_path: Path) -> None:
    path = tarred(tmp_path / "a.tar", "w", **{"..__..__evil": b"1", "__etc__evil": b"2", "a__b": b"3"})
    with tarfile.open(path, "a") as out:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        out.addfile(link)
    with archive.unpacked(path, "tar") as folder:
        found = {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        assert not any(file.is_symlink() for file in folder.rglob("*"))
    assert sorted(found.values()) == [b"1", b"2", b"3"]
    assert "a/b" in found
    assert not folder.exists()


def test_bombs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_FREE_BYTES", 1 << 20)
    zeros = bytes(8 << 20)
    for path in (
        zipped(tmp_path / "a.zip", zeros=zeros),
        tarred(tmp_path / "a.txz", "w:xz", zeros=zeros),
    ):
        with pytest.raises(TelemetryError, match="expands more than 250-fold"):
            opened(path)
    monkeypatch.setattr(archive, "MAX_MEMBERS", 3)
    with pytest.raises(TelemetryError, match="more than 3 files"):
        opened(zipped(tmp_path / "b.zip", a=b"1", b=b"2", c=b"3", d=b"4"))


@pytest.mark.parametrize("cut", [40, 200, -60])
def test_cut_archives_are_read_or_named(tmp_path: Path, cut: int) -> None:
    content = zipped(tmp_path / "a.zip", trace=rank_text(0)).read_bytes()
    path = tmp_path / "cut.zip"
    path.write_bytes(content[:cut])
    with pytest.raises(TelemetryError, match="zip archive that cannot be read"):
        opened(path)
    packed = lzma.compress(rank_text(0))
    path.write_bytes(packed[:cut])
    with pytest.raises(TelemetryError, match=r"xz archive"):
        opened(path)


def contract_file(path: Path, *names: str) -> bytes:
    path.parent.mkdir(exist_ok=True)
    header = Header(source="mine")
    with path.open("wb") as sink:
        write_arrows(sink, header, iter([build_batch({"kind": "mark", "name": [*names], "start_ns": 5, "end_ns": 5})]))
    return path.read_bytes()


def test_a_contract_file_and_a_recording_open_from_an_archive(tmp_path: Path) -> None:
    one = contract_file(tmp_path / "slice.arrows", "a", "b")
    bundle = zipped(tmp_path / "incident.zip", slice=one, report=b"# a report", findings=b"[]")
    segments = [contract_file(tmp_path / "rec" / f"00000{n}.arrows", f"m{n}") for n in (0, 1)]
    with tarfile.open(tmp_path / "rec.tgz", "w:gz") as out:
        out.add(tmp_path / "rec", "rec")
    assert len(segments) == 2
    assert [row["name"] for row in opened(bundle)[0]] == ["a", "b"]
    assert [row["name"] for row in opened(tmp_path / "rec.tgz")[0]] == ["m0", "m1"]
    with pytest.raises(TelemetryError, match="zip archive without any capture to import but 2 contract files"):
        opened(zipped(tmp_path / "two.zip", a=one, b=one))
