"""CPU-seconds and peak memory of opening a Kineto file, beside other ways to decode it, in one sitting.

    python tests/bench/bench_kineto.py FILE [--rounds N]

Each way runs in a child process of its own, in turn, N rounds; the best round of each is printed with its ratio to
importing. `import` makes joined contract batches of everything; the others only decode, and keep or drop the result.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

WAYS = ("import", "msgspec whole", "json.loads", "raw_decode windows")


def import_capture(path: Path) -> int:
    from fusetui.importers import kineto

    return sum(batch.num_rows for batch in kineto.read(path, 512 << 20).batches)


def _text(path: Path) -> bytes:
    import gzip

    data = path.read_bytes()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


class Args(msgspec.Struct, gc=False):
    correlation: Any = None
    stream: Any = None
    device: Any = None


class Event(msgspec.Struct, gc=False):
    ph: Any = None
    cat: Any = None
    name: Any = None
    ts: Any = None
    dur: Any = None
    pid: Any = None
    tid: Any = None
    args: Args | None = None


class Document(msgspec.Struct, gc=False):
    traceEvents: list[Event]  # noqa: N815


def msgspec_whole(path: Path) -> int:
    return len(msgspec.json.decode(_text(path), type=Document).traceEvents)


def json_loads(path: Path) -> int:
    import gc

    gc.disable()
    return len(json.loads(_text(path))["traceEvents"])


def raw_decode_windows(path: Path) -> int:
    return sum(1 for _ in _raw_events(path))


def _raw_events(path: Path) -> Iterator[Any]:
    import gzip

    with path.open("rb") as start:
        opener: Callable[..., Any] = gzip.open if start.read(2) == b"\x1f\x8b" else open
    decoder = json.JSONDecoder()
    with opener(path, "rt", encoding="utf-8", errors="replace") as file:
        text = ""
        while '"traceEvents"' not in text or "[" not in text.split('"traceEvents"', 1)[1]:
            text += file.read(4 << 20)
        at = text.index("[", text.index('"traceEvents"')) + 1
        while True:
            while at < len(text) and text[at] in " \t\r\n,":
                at += 1
            if at < len(text) and text[at] == "]":
                return
            try:
                event, at = decoder.raw_decode(text, at)
            except ValueError:
                more = file.read(4 << 20)
                if not more:
                    return
                text, at = text[at:] + more, 0
                continue
            yield event


def run_one(way: str, path: Path) -> None:
    function = {
        "import": import_capture,
        "msgspec whole": msgspec_whole,
        "json.loads": json_loads,
        "raw_decode windows": raw_decode_windows,
    }[way]
    begun = time.perf_counter()
    count = function(path)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({
        "count": count, "cpu_s": usage.ru_utime + usage.ru_stime, "rss_mb": usage.ru_maxrss / 1024,
        "wall_s": time.perf_counter() - begun,
    }))  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--only", choices=WAYS, action="append")
    args = parser.parse_args()
    if args.way:
        run_one(args.way, args.file)
        return
    best: dict[str, dict[str, float]] = {}
    for _ in range(args.rounds):
        for way in args.only or WAYS:
            command = [sys.executable, __file__, str(args.file), "--way", way]
            found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            if way not in best or found["cpu_s"] < best[way]["cpu_s"]:
                best[way] = found
    base = best.get("import", next(iter(best.values())))["cpu_s"]
    print(f"{args.file.name}, {args.file.stat().st_size / 1e6:.1f} MB, best of {args.rounds} rounds, whole process")
    for way, found in best.items():
        line = f"{way:20} {found['cpu_s']:7.2f} CPU-s  {found['rss_mb']:7.0f} MB  {found['wall_s']:7.2f} s wall"
        print(f"{line}  {found['cpu_s'] / base:5.2f} x import  ({int(found['count']):,} rows or events)")


if __name__ == "__main__":
    main()
