"""A serving engine or device exporter by its page of metrics: vLLM, SGLang, TensorRT-LLM, Triton, DCGM …

Scraped once a second in a thread of its own; what comes of it are counters and marks (`fusetui.sources.prometheus_rows`
says how they are named). Histograms are of requests that ended and a bucket is all they know: no request, no execution
and no exact percentile comes from here. Rows stand at the time of the scrape, whatever time the page gives.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urldefrag

import numpy as np
import pyarrow as pa

from fusetui.sources.arrow_queue import Arrived, BatchQueue
from fusetui.sources.prometheus_checks import contradictions
from fusetui.sources.prometheus_fetch import FetchError, Page, Target, fetch, parse_target
from fusetui.sources.prometheus_layout import Layout, lay_out
from fusetui.sources.prometheus_rows import Reckoner, Row
from fusetui.sources.prometheus_text import SeriesTable
from fusetui.sources.spec import OpenOptions, parameters
from fusetui.sources.words import coded, coded_texts
from fusetui.telemetry.errors import TelemetryError
from fusetui.telemetry.header import Header
from fusetui.telemetry.schema import KINDS, build_batch
from fusetui.telemetry.source import SourceHealth, State, Transport
from fusetui.telemetry.text import safe_text

NAMES: Final = ("http", "https")
SYNTAX: Final = "http://127.0.0.1:8000/metrics: a serving engine's or exporter's metrics, as #every=1,window=30 says"

EVERY_S: Final = 1.0
WINDOW_S: Final = 30.0
TIMEOUT_S: Final = 5.0
_MAX_WAIT_S: Final = 10.0
_COUNTER, _MARK = KINDS.index("counter"), KINDS.index("mark")


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
    ) -> None:
        self._options = options or OpenOptions()
        self.header = Header(source="prometheus")
        self.generation = 0
        self.transport: Transport | None = None
        self._target = target
        self._every_s, self._window_s, self._timeout_s = every_s, window_s, timeout_s
        self._wall_ns = wall_ns
        self._scraper = Scraper(window_s)
        self._queue = BatchQueue(self._options.memory_bytes, self._options.overflow)
        self._status = _Status()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="prometheus", daemon=True)
        self._thread.start()

    def poll(self, timeout_s: float) -> Sequence[pa.RecordBatch]:
        batches = [item.batch for item in self._queue.take(timeout_s, 0.0, 100_000)]
        engine = self._scraper.layout.engine
        if engine and not self.header.build:
            self.header = replace(self.header, build={"engine": engine})
        return batches

    def now_ns(self) -> int | None:
        return None if self._status.newest_ns is None else self._wall_ns()

    def health(self) -> SourceHealth:
        status = self._status
        return SourceHealth(
            name=str(self._target),
            state="ended" if self._closed.is_set() else status.state,
            rows=self._queue.rows,
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
        while not self._closed.is_set():
            began_s = time.monotonic()
            try:
                page = fetch(
                    self._target,
                    timeout_s=self._timeout_s,
                    token=self._options.token,
                    allow_remote=self._options.allow_remote,
                )
                batch = self._scraper.take(page, time.monotonic_ns(), self._wall_ns())
            except FetchError as error:
                self._failed(error.state, str(error))
                wait_s = min(_MAX_WAIT_S, 2 * wait_s)
            except (ArithmeticError, LookupError, ValueError, MemoryError) as error:
                self._failed("failed", f"the page could not be read ({safe_text(repr(error), 120)})")
                wait_s = _MAX_WAIT_S
            else:
                self._took(page)
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

    def _took(self, page: Page) -> None:
        old, scraper = self._status, self._scraper
        self._status = replace(
            old,
            state="live",
            detail=f"{scraper.layout.engine or 'unknown engine'}, {len(scraper.table.series)} series",
            bytes_in=old.bytes_in + page.bytes_in,
            bad_rows=scraper.table.malformed + scraper.table.duplicates,
            missing=scraper.missing(),
            newest_ns=self._wall_ns(),
        )


class Scraper:
    """Pages in, batches out; not thread-safe.

    table, layout  the series known and what is made of them
    told           contradictions of the last page
    """

    def __init__(self, window_s: float = WINDOW_S, *, table: SeriesTable | None = None) -> None:
        self.table = table or SeriesTable()
        self.layout = Layout()
        self.told: Mapping[str, str] = {}
        self._reckoner = Reckoner(window_s)
        self._window_s = window_s
        self._known = (-1, 0)

    def take(self, page: Page, at_ns: int, wall_ns: int) -> pa.RecordBatch:
        """Rows of one page; at_ns: monotonic, wall_ns: epoch. Raises FetchError for what is no page of metrics."""
        values = self.table.read(page.text)
        if not np.isfinite(values).any():
            raise FetchError("failed", "not one sample on the page: is this an engine's /metrics?")
        if page.openmetrics and not self.table.ended:
            raise FetchError("reconnecting", "the page was cut off: it has no # EOF")
        if self.table.generation != self._known[0]:
            self._reckoner.forget()
        if self._known != (known := (self.table.generation, len(self.table.series))):
            self.layout = lay_out(self.table.series, self.table.types)
            self._known = known
        with np.errstate(all="ignore"):  # a page may hold the largest numbers there are
            rows, intervals, again = self._reckoner.read(self.layout, values, at_ns)
            told = contradictions(self.layout, values, intervals, self._window_s)
        rows = [row for row in rows if np.isfinite(row.value)]
        marks = [line for what, line in told.items() if what not in self.told]
        self.told = told
        if again:
            more = f" and {len(again) - 3} more" if len(again) > 3 else ""
            marks.append(f"counters began again: {', '.join(again[:3])}{more}")
        return _batch(rows, marks, wall_ns)

    def missing(self) -> tuple[str, ...]:
        """What cannot be told, what was not taken in, and what contradicts itself, one line each."""
        table = self.table
        lines = [
            (table.malformed, "malformed lines, left out"),
            (table.duplicates, "samples of a series that was there before on the page, left out"),
            (table.over_limit, "samples over the limit on series, left out"),
            (table.native, "native histogram samples: only classic buckets are read"),
        ]
        counted = [f"metrics: {n:,} {what}" for n, what in lines if n]
        honest = "requests: the page has totals and buckets, no single request; quantiles are brackets of ended ones"
        return (honest, *self.layout.missing, *counted, *self.told.values())


def _batch(rows: Sequence[Row], marks: Sequence[str], wall_ns: int) -> pa.RecordBatch:
    n = len(rows) + len(marks)
    at = pa.array(np.full(n, wall_ns, np.int64))
    none = [None] * len(marks)
    return build_batch(
        {
            "kind": coded(np.repeat(np.array([_COUNTER, _MARK], np.int8), [len(rows), len(marks)]), KINDS),
            "name": coded_texts([*(row.name for row in rows), *marks]),
            "start_ns": at,
            "end_ns": at,
            "device": pa.array([*(row.device for row in rows), *none], pa.int32()),
            "value": pa.array([*(row.value for row in rows), *none], pa.float64()),
            "unit": coded_texts([*(row.unit for row in rows), *none]),
        },
        n,
    )


def open_spec(spec: str, options: OpenOptions) -> PrometheusSource:
    """`http://host:port/path`, with `#every=…,window=…` in seconds."""
    url, words = urldefrag(spec)
    target = parse_target(url, allow_remote=options.allow_remote)
    given = {"every": EVERY_S, "window": WINDOW_S, **parameters(f"{url}#:{words}"[len(url) :], ("every", "window"))}
    every_s, window_s = given["every"], given["window"]
    if not (0.1 <= every_s <= 3600 and every_s <= window_s <= 3600):
        raise TelemetryError(spec, "every or window is out of range", "0.1 <= every <= window <= 3600 seconds")
    if window_s / every_s > 1000:
        raise TelemetryError(spec, "a window of over 1,000 scrapes", "scrape less often")
    return PrometheusSource(target, options, every_s=every_s, window_s=window_s)
