"""`fusetui slice`, `export` for viewers and `snapshot --coverage`, as a user or a script meets them."""

from __future__ import annotations

import gzip
import json
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pytest

from fusetui.cli import main
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import SCHEMA, build_batch

Captured = pytest.CaptureFixture[str]


def capture_at(path: Path, batch_rows: int = 1000) -> Path:
    """1,000 executions that end at 50, 150, 250 … ns on core i mod 4, the first half of them with an enqueue time."""
    i = range(1000)
    batch = build_batch(
        {
            "kind": "execution",
            "name": ["gemm" if k % 2 else "add" for k in i],
            "enqueue_ns": [100 * k - 5 if k < 500 else None for k in i],
            "start_ns": [100 * k for k in i],
            "end_ns": [100 * k + 50 for k in i],
            "core": [k % 4 for k in i],
        }
    )
    schema = SCHEMA.with_metadata(Header(source="box", clock="trace", build={"git": "abc"}).to_metadata())
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        for low in range(0, 1000, batch_rows):
            writer.write_batch(batch.slice(low, batch_rows).replace_schema_metadata(schema.metadata))
    return path


def cut(path: Path, output: Path, *more: str) -> int:
    return main(["slice", str(path), "-o", str(output), *more])


def test_a_slice_has_the_rows_and_says_what_it_is_of(tmp_path: Path, capsys: Captured) -> None:
    capture, output = capture_at(tmp_path / "c.arrows"), tmp_path / "out" / "s.arrows"
    output.parent.mkdir()
    assert cut(capture, output, "--from", "0.000010s", "--to", "0.00002s", "--filter", "core = 3") == 0
    digest = capsys.readouterr().out.strip()
    with pa.OSFile(str(output), "rb") as source:
        table = pa.ipc.open_stream(source).read_all()
    # Event times from 50 ns + 10 us on, ten of them a microsecond, every fourth on core 3.
    assert table["end_ns"].to_pylist() == [100 * k + 50 for k in range(100, 201) if k % 4 == 3]
    about = json.loads(table.schema.metadata[b"fusetui"])["build"]
    assert about == {
        "git": "abc",
        "slice of": "c.arrows",
        "slice of sha256": sha256(capture.read_bytes()).hexdigest(),
        "slice from ns": "10050",
        "slice to ns": "20050",
        "slice filter": "core = 3",
        "slice content": digest,
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.arrows", "out"]


def test_the_hash_depends_on_the_rows_alone(tmp_path: Path, capsys: Captured) -> None:
    digests = []
    for number, rows in enumerate((1000, 7)):
        capture = capture_at(tmp_path / f"{number}.arrows", rows)
        assert cut(capture, tmp_path / f"s{number}.arrows", "--from", "10%", "--memory", f"{300 >> number}MiB") == 0
        digests.append(capsys.readouterr().out)
    assert digests[0] == digests[1]
    # A slice of a slice that leaves nothing out has the same rows.
    assert cut(tmp_path / "s0.arrows", tmp_path / "again.arrows") == 0
    assert capsys.readouterr().out == digests[0]
    assert cut(tmp_path / "0.arrows", tmp_path / "more.arrows", "--from", "9%") == 0
    assert capsys.readouterr().out != digests[0]


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        (["--filter", "core = 9"], 4, "no row in the range passes the filter"),
        (["--filter", "core >> 9"], 2, "^"),
        (["--from", "soon"], 2, "is not a time"),
        (["--from", "90%", "--to", "10%"], 2, "is after"),
    ],
)
def test_what_cannot_be_cut_is_said_and_writes_nothing(
    tmp_path: Path, capsys: Captured, more: list[str], code: int, words: str
) -> None:
    capture = capture_at(tmp_path / "c.arrows")
    assert cut(capture, tmp_path / "s.arrows", *more) == code
    assert words in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["c.arrows"]


def test_nothing_is_overwritten_without_force_and_a_capture_never(tmp_path: Path, capsys: Captured) -> None:
    capture, output = capture_at(tmp_path / "c.arrows"), tmp_path / "s.arrows"
    output.write_text("mine")
    before = capture.read_bytes()
    assert cut(capture, output) == 2
    assert output.read_text() == "mine"
    assert cut(capture, output, "--force") == 0
    assert cut(capture, capture, "--force") == 2
    assert main(["export", str(capture), "-o", str(capture), "--force"]) == 2
    assert "never written to" in capsys.readouterr().err
    assert capture.read_bytes() == before


def test_slices_of_other_formats(tmp_path: Path, capsys: Captured) -> None:
    events = [{"ph": "X", "name": n, "pid": 1, "tid": 1, "ts": t, "dur": 1} for n, t in (("a", 10), ("b", 20))]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(events))
    assert cut(path, tmp_path / "s.arrows", "--filter", "name = b") == 0
    assert "wrote 1 events" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "form"), [("x.json", "chrome"), ("x.json.gz", "chrome"), ("x.pftrace", None)])
def test_exports_for_viewers_open_again(tmp_path: Path, capsys: Captured, name: str, form: str | None) -> None:
    capture, output = capture_at(tmp_path / "c.arrows"), tmp_path / name
    assert main(["export", str(capture), "-o", str(output), *(["--format", form] if form else [])]) == 0
    assert "wrote 1,000 events" in capsys.readouterr().err
    if name.endswith(".gz"):
        assert json.loads(gzip.decompress(output.read_bytes()))["traceEvents"]
    assert main(["snapshot", str(output), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["executions"], again["busy_ns"]) == (1000, 50_000)


def test_coverage_as_data_and_as_a_table(tmp_path: Path, capsys: Captured) -> None:
    capture = str(capture_at(tmp_path / "c.arrows"))
    assert main(["snapshot", capture, "--json"]) == 0
    coverage = json.loads(capsys.readouterr().out)["coverage"]
    facts = {fact["fact"]: fact for fact in coverage["facts"]}
    assert (facts["queue wait"]["rows"], facts["queue wait"]["total"], facts["queue wait"]["share"]) == (500, 1000, 0.5)
    assert facts["cores"]["unknown"] is None
    assert (facts["shapes"]["rows"], facts["shapes"]["record"]) == (0, "the producer of it, as column shape")
    assert coverage["launch"]["orphans"] == 500
    assert main(["snapshot", capture, "--coverage"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split() == ["queue", "wait", "500", "1,000", "50.0", "%"] for line in lines)
    assert any(line.split()[:4] == ["queue", "wait", "for", "some:"] for line in lines)
    assert main(["snapshot", "sim", "--coverage"]) == 2
