"""rocprofv3 JSON (`--output-format json`): records of one or several processes.

What becomes what
- Kernel dispatches and memory copies are executions; the stream is the queue, for copies the HIP stream.
- HIP and HSA calls with the same internal correlation id in the same process give enqueue_ns and launch_ns.
- Without device work the outermost calls are shown; markers are marks.
Times count from the first row: they are those of a clock since boot. The file is decoded in windows.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from fusetui.importers.bytestream import ByteStream
from fusetui.importers.capture import Capture
from fusetui.importers.devicework import DeviceWork
from fusetui.importers.rocprof_records import Process
from fusetui.importers.rocprof_stream import ArrayStream
from fusetui.telemetry.header import Header
from fusetui.telemetry.text import safe_text

NAME: Final = "rocprofv3 JSON"

_MARK = re.compile(rb'\A[\xef\xbb\xbf \t\r\n]*\{\s*"rocprofiler-sdk-tool"\s*:')


def sniff(head: bytes) -> bool:
    """A JSON object that begins with the key of rocprofv3."""
    return bool(_MARK.match(head))


def read(path: Path, memory_bytes: int) -> Capture:
    """Open a file. Raises TelemetryError when nothing ran in it."""
    found = DeviceWork(memory_bytes)
    processes = [Process(0, found)]
    with ByteStream(path) as source:
        stream = ArrayStream(source)
        for key, values in stream.arrays():
            if key == "metadata" and processes[-1].begun:
                processes.append(Process(len(processes), found))
            processes[-1].take(key, values)
    notes = [f"{ending}; what came before was read" for ending in stream.endings]
    if stream.broken:
        notes.append(f"unreadable records skipped: {stream.broken:,}")
    if found.pieces and not found.calls:
        notes.append("no API calls in it, so no queue wait: record with --hip-trace too")
    hosts = {process.host for process in processes if process.host}
    header = Header(
        source="rocprofv3",
        clock="trace",
        host=safe_text(hosts.pop(), 200) if len(hosts) == 1 else None,
        hardware={key: fact for process in processes for key, fact in process.devices.items()},
        build={"processes": str(len(processes))} if len(processes) > 1 else {},
    )
    return found.capture(str(path), NAME, header, notes, base_ns=None, remedy="record with --kernel-trace")
