"""Profiles of PyTorch and ONNX Runtime, sent to a viewer while the program that makes them goes on.

    from fusetui.emit import ProfileStream

    with ProfileStream("unix:/tmp/fusetui.sock", source="train.py") as stream:
        with torch.profiler.profile(
            schedule=torch.profiler.schedule(wait=8, warmup=1, active=2),
            on_trace_ready=stream.torch_trace, record_shapes=True,
        ) as profiler:
            for batch in loader:
                ...
                profiler.step()

    stream.onnx_profile(session)    # ends the profiling of an onnxruntime.InferenceSession and sends what it has

Neither torch nor onnxruntime is imported here. The training thread only writes the profile to a temporary file, which
`export_s` adds up; a thread of its own reads it as `fusetui replay` would and sends the rows. Whole profiles are
dropped and counted when that thread is behind or nobody is watching. Between two profiled windows nothing is known.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fusetui.emit.producer import Producer
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import SCHEMA

_TIMES: Final = ("enqueue_ns", "start_ns", "end_ns")
_EPOCH_NS: Final = 10**18
"""A clock below this (2001) does not count from 1970."""
_ROOM_WAIT_S: Final = 5.0
_FAR: Final = 10**9
"""Steps of the one profiler and runs of the other are both numbered from 0: the second to come begins here."""


class TorchProfiler(Protocol):
    """`torch.profiler.profile`, as far as it matters here."""

    def export_chrome_trace(self, path: str) -> Any: ...


class OnnxSession(Protocol):
    """`onnxruntime.InferenceSession`, as far as it matters here."""

    def end_profiling(self) -> str: ...
    def get_profiling_start_time_ns(self) -> int: ...


class _Profile(NamedTuple):
    path: Path
    format: str
    origin_ns: int | None
    ready_ns: int


class ProfileStream:
    """Sends each profile that is handed to it; no call raises for what goes wrong on the way. Thread-safe.

    profiles, dropped_profiles  sent, and left out: too many waited, nobody watched, or it could not be read
    export_s  time the calling threads spent writing profiles
    notes     what the last profile does not tell
    error     the latest problem, one line
    """

    def __init__(
        self,
        target: str,
        *,
        source: str,
        token: str | None = None,
        memory_bytes: int = 64 << 20,
        most_waiting: int = 4,
        close_s: float = 5.0,
    ) -> None:
        """target, token  as of Producer
        source        the program's name in the header
        memory_bytes  about what reading a profile may hold
        most_waiting  profiles kept while the one before is read and sent
        """
        self.profiles = self.dropped_profiles = 0
        self.export_s = 0.0
        self.notes: tuple[str, ...] = ()
        self._source, self._target, self._token = source, target, token
        self._memory_bytes, self._most_waiting, self._close_s = memory_bytes, most_waiting, close_s
        self._producer: Producer | None = None
        self._problem = ""
        self._runs = self._windows = 0
        self._bases: dict[str, int] = {}
        self._waiting: deque[_Profile] = deque()
        self._reading = self._closing = False
        self._wake = threading.Condition()
        self._folder = tempfile.TemporaryDirectory(prefix="fusetui-")
        self._thread = threading.Thread(target=self._run, name="fusetui-profiles", daemon=True)
        self._thread.start()

    @property
    def sent(self) -> int:
        """Rows handed to the connection."""
        return self._producer.sent if self._producer else 0

    @property
    def dropped(self) -> int:
        """Rows lost on their way."""
        return self._producer.dropped if self._producer else 0

    @property
    def error(self) -> str:
        return self._problem or (self._producer.error if self._producer else "")

    def torch_trace(self, profiler: TorchProfiler) -> None:
        """What `on_trace_ready` of torch.profiler.profile takes: sends the window that just ended."""
        began_s = time.perf_counter()
        if self._has_room():
            self._windows += 1
            path = Path(self._folder.name) / f"window-{self._windows}.json"
            try:
                profiler.export_chrome_trace(str(path))
            except (OSError, RuntimeError) as error:
                self._left_out(f"the profile could not be written: {error}")
            else:
                self._hand_over(_Profile(path, "kineto", None, time.time_ns()))
        self.export_s += time.perf_counter() - began_s

    def onnx_profile(self, session: OnnxSession) -> None:
        """Ends the profiling of a session that was made with `enable_profiling`, and sends it; its file stays."""
        began_s = time.perf_counter()
        try:
            origin_ns, path = int(session.get_profiling_start_time_ns()), Path(session.end_profiling())
        except (OSError, RuntimeError) as error:
            self._left_out(f"the profile could not be ended: {error}")
        else:
            known = origin_ns if origin_ns > _EPOCH_NS else None
            if self._has_room():
                self._hand_over(_Profile(path, "onnxruntime", known, time.time_ns()))
        self.export_s += time.perf_counter() - began_s

    def close(self) -> None:
        """Send what waits and end the stream; takes at most about `close_s`, then drops the rest."""
        until_s = time.monotonic() + self._close_s
        with self._wake:
            self._wake.wait_for(lambda: not self._waiting and not self._reading, self._close_s)
            self._closing = True
            self.dropped_profiles += len(self._waiting)
            self._waiting.clear()
            self._wake.notify_all()
        self._thread.join(max(0.0, until_s - time.monotonic()))
        if self._producer is not None:
            self._producer.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _has_room(self) -> bool:
        """Whether a profile is worth being written; counts it where it is not."""
        producer = self._producer
        # One that has only just been made has not found out yet.
        away = producer is not None and not producer.connected and bool(producer.error)
        if not away and not self._closing and len(self._waiting) < self._most_waiting:
            return True
        self._left_out(self._problem)
        return False

    def _left_out(self, why: str) -> None:
        self.dropped_profiles += 1
        self._problem = why

    def _hand_over(self, profile: _Profile) -> None:
        with self._wake:
            self._waiting.append(profile)
            self._wake.notify_all()

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: bool(self._waiting) or self._closing)
                if not self._waiting:
                    return
                profile, self._reading = self._waiting.popleft(), True
            try:
                self._send(profile)
                self.profiles += 1
            except (TelemetryError, OSError, ValueError, MemoryError, pa.ArrowException) as error:
                self._left_out(str(error))
            if profile.format == "kineto":
                profile.path.unlink(missing_ok=True)
            with self._wake:
                self._reading = False
                self._wake.notify_all()

    def _send(self, profile: _Profile) -> None:
        capture = _read(profile, self._memory_bytes)
        self.notes = tuple(capture.notes)
        batches, origin_ns = capture.batches, 0
        if capture.header.clock != "epoch":
            batches, origin_ns = _since_epoch(batches, profile)
        for batch in self._numbered(batches, profile.format, origin_ns):
            self._open(capture.header).write_batch(batch, wait_s=_ROOM_WAIT_S)

    def _open(self, header: Header) -> Producer:
        """The producer: made with the first profile, whose header tells the devices and versions."""
        if self._producer is None:
            header = replace(header, source=self._source, clock="epoch")
            self._producer = Producer(self._target, source=self._source, header=header, token=self._token)
        return self._producer

    def _numbered(self, batches: Iterable[pa.RecordBatch], format: str, origin_ns: int) -> Iterator[pa.RecordBatch]:
        """Times moved by `origin_ns`; requests numbered on where a profile numbers its own from 0."""
        base = self._bases.setdefault(format, _FAR * len(self._bases))
        counted_from_0 = format == "onnxruntime"
        first = base + (self._runs if counted_from_0 else 0)
        for batch in batches:
            moved = {name: _plus(batch[name], origin_ns) for name in _TIMES}
            moved["request"] = _plus(batch["request"], first)
            last = pc.max(moved["request"]).as_py() if counted_from_0 else None
            self._runs = self._runs if last is None else max(self._runs, last - base + 1)
            yield pa.RecordBatch.from_arrays([moved.get(n, batch[n]) for n in SCHEMA.names], schema=SCHEMA)


def _since_epoch(batches: Iterable[pa.RecordBatch], profile: _Profile) -> tuple[Iterable[pa.RecordBatch], int]:
    """The batches, and when their time 0 was: as told, or so that they end when the profile was handed over."""
    if profile.origin_ns is not None:
        return batches, profile.origin_ns
    held = list(batches)
    last = [int(pc.max(batch["end_ns"]).as_py() or 0) for batch in held]
    return held, profile.ready_ns - max(last, default=0)


def _read(profile: _Profile, memory_bytes: int) -> Any:
    # Only here, and only once there is a profile: a producer of rows needs no importer.
    from fusetui.importers import kineto, onnxruntime

    read = kineto.read if profile.format == "kineto" else onnxruntime.read
    return read(profile.path, memory_bytes)


def _plus(column: pa.Array, by: int) -> pa.Array:
    values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return pa.array(values + by, column.type, mask=column.is_null().to_numpy(zero_copy_only=False))
