"""A Perfetto export against Perfetto's own schema: parsed by its Python package, values compared with the capture.

    pip install perfetto     # in an environment of its own
    python tests/bench/bench_perfetto_schema.py /tmp/venv/bin/python [CAPTURE]

Prints packets, slices, flows and readings checked, and the CPU time per event of writing both viewer formats.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from fusetui.importers.open import open_capture
from fusetui.telemetry.export import WRITERS
from fusetui.telemetry.source import Trace

READER = """
import json, sys
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema
trace = schema.Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
assert trace.packet and not len(UnknownFieldSet(trace))
names, labels, texts, tracks, open_slices, slices, readings = {}, {}, {}, {}, {}, [], []
starts, ends = set(), set()
for packet in trace.packet:
    assert packet.trusted_packet_sequence_id == 1 and not len(UnknownFieldSet(packet))
    assert not len(UnknownFieldSet(packet.track_event)) and not len(UnknownFieldSet(packet.track_descriptor))
    for entry in packet.interned_data.event_names: names[entry.iid] = entry.name
    for entry in packet.interned_data.debug_annotation_names: labels[entry.iid] = entry.name
    for entry in packet.interned_data.debug_annotation_string_values: texts[entry.iid] = entry.str.decode()
    if packet.HasField("track_descriptor"):
        line = packet.track_descriptor
        tracks[line.uuid] = (line.process.process_name if line.HasField("process") else line.name, line.parent_uuid)
    if not packet.HasField("track_event"): continue
    event, kind = packet.track_event, schema.TrackEvent
    if event.type == kind.TYPE_SLICE_BEGIN:
        assert event.track_uuid not in open_slices, "slices of a track overlap"
        open_slices[event.track_uuid] = (packet.timestamp, names[event.name_iid], {labels[a.name_iid]:
            a.int_value if a.HasField("int_value") else a.double_value if a.HasField("double_value")
            else texts[a.string_value_iid] for a in event.debug_annotations})
        starts |= set(event.flow_ids); ends |= set(event.terminating_flow_ids)
    elif event.type == kind.TYPE_SLICE_END:
        begun, name, more = open_slices.pop(event.track_uuid)
        name_of, parent = tracks[event.track_uuid]
        slices.append([tracks[parent][0], name_of, name, begun, packet.timestamp, more])
    elif event.type == kind.TYPE_COUNTER:
        readings.append([tracks[event.track_uuid][0], packet.timestamp, event.double_counter_value])
assert starts == ends and not open_slices
print(json.dumps({"packets": len(trace.packet), "slices": slices, "readings": readings, "flows": len(starts)}))
"""


def main() -> int:
    python, capture = sys.argv[1], Path(sys.argv[2] if len(sys.argv) > 2 else "sample_traces/torch-serving.arrows")
    trace = open_capture([capture], memory_bytes=512 << 20)
    while not trace.complete:
        trace.wait(1.0)  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory() as folder:
        for form in ("chrome", "perfetto"):
            target = Path(folder, form)
            began = time.process_time()
            with target.open("wb") as sink:
                rows = WRITERS[form](sink, trace.header, batches(trace))
            took = time.process_time() - began
            each_us = took / max(rows, 1) * 1e6
            print(f"{form}: {rows:,} rows, {each_us:.1f} us of CPU each, {target.stat().st_size:,} bytes")
        found = json.loads(
            subprocess.run([python, "-c", READER, str(target)], stdout=subprocess.PIPE, check=True).stdout
        )
    places = ("device", "no device")
    work = [[s[2], s[3], s[4], s[5].get("core")] for s in found["slices"] if s[0].startswith(places)]
    rows_of = [row for batch in batches(trace) for row in batch.to_pylist()]
    ran = [r for r in rows_of if r["kind"] == "execution" and r["start_ns"] is not None and r["end_ns"] is not None]
    same = alike(work, [[r["name"], r["start_ns"], r["end_ns"], r["core"]] for r in ran])
    read = [[r["name"], r["end_ns"], r["value"]] for r in rows_of if r["kind"] == "counter" and r["value"] is not None]
    readings = alike(found["readings"], read)
    print(f"{found['packets']:,} packets parse, no field unknown; {found['flows']:,} arrows with both ends")
    print(f"{len(work):,} executions {'agree' if same else 'DIFFER'}")
    print(f"{len(read):,} readings {'agree' if readings else 'DIFFER'}")
    return 0 if same and readings else 1


def alike(found: list[list[Any]], wanted: list[list[Any]]) -> bool:
    """The same rows in any order."""
    return sorted(map(json.dumps, found)) == sorted(map(json.dumps, wanted))


def batches(trace: Trace) -> Iterator[pa.RecordBatch]:
    for number in range(len(trace.index().rows)):
        yield trace.read(number)


if __name__ == "__main__":
    sys.exit(main())
