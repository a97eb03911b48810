"""Send telemetry to fusetui from any Python program.

    from fusetui.emit import Producer

    with Producer("unix:/tmp/fusetui.sock", source="my-server") as p:
        p.execution("gemm", enqueue_ns=t0, start_ns=t1, end_ns=t2, stream="decode", core=3)
        p.request("chat", request=17, enqueue_ns=t0, end_ns=t3, stream="tenant-a")
        p.counter("power", 312.5, unit="W")
        p.mark("deploy 42")

Targets: `unix:/path` and `tcp:host:port` (a viewer listens there; the producer connects, and again when the viewer
goes away and comes back), a file path (written anew), or `-` for standard output. What goes over the wire is a plain
Arrow IPC stream in the schema of `fusetui.telemetry.schema`, so any language with an Arrow library can send it as
well. With a token, the ASCII line `FUSETUI-TOKEN <token>` comes before the stream.

What a profiler wrote goes the same way: `fusetui.emit.ProfileStream`.

The calls only append to a bounded buffer: they never wait for the viewer and never raise for a lost connection.
Rows that find the buffer full are dropped and counted. `close` waits at most `close_s`.
Times are integer ns since the Unix epoch; `time.time_ns()` where a time is left out.
"""

from __future__ import annotations

from fusetui.emit.producer import Producer
from fusetui.emit.profiles import ProfileStream

__all__ = ["Producer", "ProfileStream"]
