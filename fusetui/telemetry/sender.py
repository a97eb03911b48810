"""A run of batches to one viewer over a socket: counted, stamped, and resumed when the connection breaks."""

from __future__ import annotations

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from fusetui.telemetry.header import Header
from fusetui.telemetry.link import Link
from fusetui.telemetry.schema import build_batch
from fusetui.telemetry.stamp import BYE, RUN_KEY, Answer, Stamp
from fusetui.telemetry.writer import Encoder

BEAT_S: Final = 1.0
KEPT_BYTES: Final = 64 << 20
"""Batches that the viewer has not confirmed yet are kept up to this, and sent again after a break."""

_ERRORS: Final = (OSError, ValueError)
_RETRY_S: Final = (0.1, 0.2, 0.5, 1.0, 2.0)
_HELLO_S: Final = 2.0
_LEAVE_S: Final = 3.0
_TURNED_AWAY: Final = "the viewer hung up at once; is the token right?"
_BEAT: Final = build_batch({}, 0)


class _Kept(NamedTuple):
    through: int
    batch: pa.RecordBatch


class Sender:
    """Calls block while the viewer reads nothing or is away: that is the back-pressure. One thread calls `send`.

    taken        rows given to `send`
    sent         rows written to a connection, each counted once
    confirmed    rows that the viewer says have come; stays 0 for one that says nothing
    unconfirmed  rows on their way when a connection broke that could not be sent again: they fell out of the kept
                 ones, or the viewer does not say what has come
    breaks       connections that broke
    error        the latest problem, one line
    """

    def __init__(
        self,
        target: str,
        header: Header,
        *,
        token: str | None = None,
        label: str = "",
        stop: Callable[[], bool] = lambda: False,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """target  `unix:/path` or `tcp:host:port`; raises ValueError when it cannot be meant
        label    what to call the viewer in errors (default: the target)
        stop     polled while the viewer is away: True gives up
        wall_ns  this machine's clock
        """
        self.taken = self.sent = self.confirmed = self.unconfirmed = self.breaks = 0
        self.error = ""
        self.connected = False
        self.run = uuid.uuid4().hex
        self.header = header
        self._link = Link(target, token)
        self._label = label or target
        self._stop = stop
        self._wall_ns = wall_ns
        self._kept: deque[_Kept] = deque()
        self._kept_bytes = 0
        self._encoder: Encoder | None = None
        self._beat_s = 0.0
        self._heard: tuple[int, int] | None = None
        self._answers = 0
        self._given_up = 0
        self._bye = False
        self._turn = threading.Lock()
        self._answered = threading.Condition()
        self._listener: threading.Thread | None = None

    @property
    def answered(self) -> bool:
        """Whether the viewer ever said what has come."""
        return self._answers > 0

    def send(self, batches: Sequence[pa.RecordBatch]) -> bool:
        """All of them, announced first; with none a heartbeat when one is due. False: given up."""
        rows = sum(batch.num_rows for batch in batches)
        with self._turn:
            if not rows and not self._due() and self._encoder is not None and self.connected and not self._bye:
                return True
            self.taken += rows
            return all(self._deliver(batch) for batch in (_BEAT, *(b for b in batches if b.num_rows)))

    def beat(self) -> None:
        """A heartbeat if one is due and nobody is sending; from another thread, while the source takes its time."""
        if not self._turn.acquire(blocking=False):
            return
        try:
            if self._encoder is not None and self.connected and self._due():
                self._write(_BEAT)
        except _ERRORS as error:
            self._broken(error)
        finally:
            self._turn.release()

    def close(self, timeout_s: float = 3.0) -> None:
        """End the stream, if there is one, and wait for the viewer to confirm it."""
        with self._turn:
            if self._encoder is not None:
                self._part(timeout_s)

    def _due(self) -> bool:
        return time.monotonic() >= self._beat_s + BEAT_S

    def abort(self) -> None:
        """Wake a call that waits; from another thread."""
        self._link.abort()

    def _deliver(self, batch: pa.RecordBatch) -> bool:
        """Write a batch, over as many connections as it takes."""
        while True:
            self._notice()
            fresh = self._encoder is None
            if fresh and not self._connect():
                return False
            if fresh and not batch.num_rows:
                return True
            try:
                self._write(batch)
            except _ERRORS as error:
                self._broken(error)
                # It is among the kept ones, whole: the next connection sends those.
                batch = _BEAT
                continue
            return True

    def _notice(self) -> None:
        """Take leave of a viewer that ends; see that one hung up."""
        if self._encoder is not None and self._bye:
            self._part(_LEAVE_S)
        elif self._encoder is not None and not self.connected:
            self._broken(ConnectionError("the viewer hung up"))

    def _part(self, timeout_s: float) -> None:
        assert self._encoder is not None
        try:
            self._write(_BEAT, final=True)
            self._link.send(self._encoder.end())
        except _ERRORS as error:
            self._broken(error)
        with self._answered:
            if self._answers:
                self._answered.wait_for(lambda: self.confirmed >= self.sent or not self.connected, timeout_s)
        self._drop()

    def _write(self, batch: pa.RecordBatch, *, final: bool = False) -> None:
        """Raises OSError, with the parts of the batch among the kept."""
        assert self._encoder is not None
        parts = self._encoder.parts(batch) if batch.num_rows else [batch]
        for part in parts:
            self.sent += part.num_rows
            if part.num_rows:
                self._keep(part)
        sent = self.sent - batch.num_rows
        for part in parts:
            sent += part.num_rows
            self._link.send(self._encoder.encode(part, self._stamp(sent, final)))
        self._beat_s = time.monotonic()

    def _stamp(self, rows: int, final: bool = False) -> bytes:
        echo_ns, heard_ns = self._heard or (None, None)
        return Stamp(rows, self.taken, self._wall_ns(), True, final, echo_ns, heard_ns).to_bytes()

    def _keep(self, part: pa.RecordBatch) -> None:
        with self._answered:
            self._kept.append(_Kept(self.sent, part))
            self._kept_bytes += part.nbytes
            while self._kept_bytes > KEPT_BYTES and len(self._kept) > 1:
                self._kept_bytes -= self._kept.popleft().batch.nbytes

    def _connect(self) -> bool:
        """A new connection on which all that is kept has been sent; False when told to stop."""
        attempt = 0
        while not self._stop():
            answers = self._answers
            try:
                self._link.open()
                self._encoder = Encoder(self.header, extra_metadata={RUN_KEY: self.run.encode()})
                self._link.send(self._encoder.start())
                self._resend(self._greet())
            except _ERRORS as error:
                greeted = self._answers > answers or self._encoder is None
                self._broken(error if greeted else ConnectionError(_TURNED_AWAY), count=False)
            else:
                return True
            self._pause(_RETRY_S[min(attempt, len(_RETRY_S) - 1)])
            attempt += 1
        return False

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._stop() and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 0.1))

    def _greet(self) -> bool:
        """Ask what has come of this run so far, before anything is sent twice. False: the viewer says nothing."""
        assert self._encoder is not None
        self.connected = True
        self._bye = False
        self._heard = None
        answers = self._answers
        receive = self._link.receiver()
        self._listener = threading.Thread(target=self._listen, args=(receive,), name="fusetui-answers", daemon=True)
        self._listener.start()
        self._link.send(self._encoder.encode(_BEAT, self._stamp(self._first())))
        with self._answered:
            self._answered.wait_for(lambda: self._answers > answers or not self.connected, _HELLO_S)
        if not self.connected:
            raise ConnectionError(_TURNED_AWAY)
        return self._answers > answers

    def _resend(self, answered: bool) -> None:
        """What is kept and has not come; the rest is unconfirmed."""
        assert self._encoder is not None
        with self._answered:
            if not answered:
                self._kept.clear()
                self._kept_bytes = 0
            kept = list(self._kept)
        first = self._first()
        self.unconfirmed += max(0, first - max(self.confirmed, self._given_up))
        self._given_up = first
        for through, part in kept:
            self._link.send(self._encoder.encode(part, self._stamp(through)))

    def _first(self) -> int:
        """Rows before those that are kept."""
        with self._answered:
            return self._kept[0].through - self._kept[0].batch.num_rows if self._kept else self.sent

    def _listen(self, receive: Callable[[int], bytes]) -> None:
        """Read answers until the connection is gone."""
        pending = b""
        while True:
            try:
                got = receive(4096)
            except TimeoutError:
                continue
            except _ERRORS:
                got = b""
            if not got:
                with self._answered:
                    self.connected = False
                    self._answered.notify_all()
                return
            *lines, pending = (pending + got)[-65536:].split(b"\n")
            for line in lines:
                self._bye |= line + b"\n" == BYE
                self._hear(line)

    def _hear(self, line: bytes) -> None:
        answer = Answer.read(line)
        if answer is None:
            return
        with self._answered:
            self._heard = (answer.said_ns, self._wall_ns())
            self._answers += 1
            self.confirmed = max(self.confirmed, min(answer.through, self.sent))
            while self._kept and self._kept[0].through <= answer.through:
                self._kept_bytes -= self._kept.popleft().batch.nbytes
            self._answered.notify_all()

    def _broken(self, error: Exception, *, count: bool = True) -> None:
        self.error = f"{self._label}: {error or type(error).__name__}"
        self.breaks += count
        self._drop()

    def _drop(self) -> None:
        # The thread that listens must be gone before the number of its socket can be given to another.
        self._link.abort()
        if self._listener is not None:
            self._listener.join()
            self._listener = None
        self._link.drop()
        self._encoder = None
