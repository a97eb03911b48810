"""One server's page of metrics, asked for in a thread of its own; what comes of it are counters and marks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from fusetui.sources.arrow_queue import Arrived, BatchQueue
from fusetui.sources.prometheus_fetch import FetchError, Page, Target, fetch
from fusetui.sources.prometheus_scraper import WINDOW_S, Scraper
from fusetui.sources.prometheus_socket import tls_context
from fusetui.sources.spec import OpenOptions
from fusetui.telemetry.header import Header
from fusetui.telemetry.source import SourceHealth, State, Transport
from fusetui.telemetry.text import safe_text

EVERY_S: Final = 1.0
TIMEOUT_S: Final = 5.0
_MAX_WAIT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class _Status:
    """What the scraping thread last knew; replaced whole, so that any thread may read it."""

    state: State = "waiting"
    detail: str = ""
    last_error: str = ""
    failures: int = 0
    bytes_in: int = 0
    bad_rows: int = 0
    missing: tuple[str, ...] = ()
    newest_ns: int | None = None
    rows: int = 0


class PrometheusSource:
    """Scrapes until closed; a server that goes, hangs or answers nonsense is asked again, ever less often.

    every_s    time between scrapes; window_s: trailing time that quantiles are of
    timeout_s  for a whole scrape
    """

    def __init__(
        self,
        target: Target,
        options: OpenOptions | None = None,
        *,
        every_s: float = EVERY_S,
        window_s: float = WINDOW_S,
        timeout_s: float = TIMEOUT_S,
        wall_ns: Callable[[], int] = time.time_ns,
        queue: BatchQueue | None = None,
        turn: threading.Lock | None = None,
        first_s: float = 0.0,
    ) -> None:
        """queue  one that others fill too: then rows name the server as their host, and nothing is to be polled here
        turn     who holds it reads a page; first_s: when the first one is asked for
        """
        self._options = options or OpenOptions()
        self.header = Header(source="prometheus")
        self.generation = 0
        self.transport: Transport | None = None
        self._target = target
        token = self._options.token
        self._authorization = self._options.authorization or (f"Bearer {token}" if token else None)
        self._tls = tls_context(self._options.cacert) if target.tls else None
        self._every_s, self._window_s, self._timeout_s = every_s, window_s, timeout_s
        self._wall_ns = wall_ns
        self._scraper = Scraper(window_s, host=None if queue is None else target.place)
        self._queue = BatchQueue(self._options.memory_bytes, self._options.overflow) if queue is None else queue
        self._status = _Status()
        self._turn, self._first_s = turn or threading.Lock(), first_s
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="prometheus", daemon=True)
        self._thread.start()

    def poll(self, timeout_s: float) -> Sequence[pa.RecordBatch]:
        batches = [item.batch for item in self._queue.take(timeout_s, 0.0, 100_000)]
        if self.engine and not self.header.build:
            self.header = replace(self.header, build={"engine": self.engine})
        return batches

    @property
    def engine(self) -> str | None:
        """Who answers, None when it is not known (yet)."""
        return self._scraper.layout.engine

    def now_ns(self) -> int | None:
        return None if self._status.newest_ns is None else self._wall_ns()

    def health(self) -> SourceHealth:
        status = self._status
        return SourceHealth(
            name=str(self._target),
            state="ended" if self._closed.is_set() else status.state,
            rows=status.rows,
            batches=self._queue.batches,
            dropped_batches=self._queue.dropped_batches,
            dropped_rows=self._queue.dropped_rows,
            bad_rows=status.bad_rows,
            bytes_in=status.bytes_in,
            lag_ns=None if status.newest_ns is None else max(0, self._wall_ns() - status.newest_ns),
            detail=status.detail,
            last_error=status.last_error,
            missing=status.missing,
        )

    def close(self) -> None:
        self._closed.set()
        self._queue.close()

    def _run(self) -> None:
        wait_s = self._every_s
        self._closed.wait(self._first_s)
        while not self._closed.is_set():
            began_s = time.monotonic()
            try:
                page = fetch(
                    self._target,
                    timeout_s=self._timeout_s,
                    authorization=self._authorization,
                    allow_remote=self._options.allow_remote,
                    tls=self._tls,
                )
                at_ns, wall_ns = time.monotonic_ns(), self._wall_ns()
                with self._turn:
                    batch = self._scraper.take(page, at_ns, wall_ns)
            except FetchError as error:
                self._failed(error.state, str(error))
                wait_s = min(_MAX_WAIT_S, 2 * wait_s)
            except (ArithmeticError, LookupError, ValueError, MemoryError) as error:
                self._failed("failed", f"the page could not be read ({safe_text(repr(error), 120)})")
                wait_s = _MAX_WAIT_S
            else:
                self._took(page, batch.num_rows)
                wait_s = self._every_s
                if batch.num_rows and not self._queue.put(Arrived(batch, batch.nbytes, "")):
                    return
            # A page that is slow to make is asked for at most half of the time.
            spent_s = time.monotonic() - began_s
            self._closed.wait(max(wait_s - spent_s, min(spent_s, _MAX_WAIT_S)))

    def _failed(self, state: State, why: str) -> None:
        old = self._status
        line, failures = f"{self._target}: {why}", old.failures + 1
        self._status = replace(
            old, state=state, detail=f"{why}; {failures} failed so far", last_error=line, failures=failures
        )

    def _took(self, page: Page, rows: int) -> None:
        old, scraper = self._status, self._scraper
        self._status = replace(
            old,
            state="live",
            detail=f"{scraper.layout.engine or 'unknown engine'}, {len(scraper.table.series)} series",
            bytes_in=old.bytes_in + page.bytes_in,
            bad_rows=scraper.table.malformed + scraper.table.duplicates,
            missing=scraper.missing(),
            newest_ns=self._wall_ns(),
            rows=old.rows + rows,
        )
