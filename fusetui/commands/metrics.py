"""Our own measures for Prometheus: counters and histograms since the start, and what the window of now says.

The histograms have classic buckets, two to an octave from 1 µs to 137 s, exact on the grid of `analysis.loghist`.
"""

from __future__ import annotations

import time
from typing import Final, get_args

import numpy as np
import psutil
import pyarrow as pa

from fusetui import __version__
from fusetui.analysis.durations import LATENCY, SERVICE, WAIT
from fusetui.analysis.frame import Context, snapshot_of
from fusetui.analysis.slots import Grid
from fusetui.analysis.snapshot import Snapshot
from fusetui.analysis.totals import Totals
from fusetui.analysis.window import Window
from fusetui.commands.metrics_server import MetricsServer
from fusetui.commands.openmetrics import Page
from fusetui.telemetry.reel import Reel, ReelState
from fusetui.telemetry.schema import CONTRACT_VERSION, KINDS, MAPPINGS
from fusetui.telemetry.source import Source, SourceHealth, State
from fusetui.telemetry.tape import Tape

WINDOW_NS: Final = 60_000_000_000
_MEMORY_BYTES: Final = 64 << 20
_EXACT_ROWS: Final = 20_000
_HALF_OCTAVES: Final = np.arange(20, 75)
_AT: Final = 16 * _HALF_OCTAVES + 1
"""The bucket of `loghist` whose upper end is 2^(k/2) ns."""
_BOUNDS: Final = [*(f"{2.0 ** (k / 2) * 1e-9:.12g}" for k in _HALF_OCTAVES.tolist()), "+Inf"]
_FAMILIES: Final = (
    (WAIT, "fusetui_queue_wait_seconds", "Start less enqueue, of executions that ended."),
    (SERVICE, "fusetui_service_seconds", "End less start, of executions that ended."),
    (LATENCY, "fusetui_request_latency_seconds", "End less enqueue, of requests that ended."),
)


class Measures:
    """Fed with every batch of a source; `page` is the exposition. One thread."""

    def __init__(self, source: Source, tape: Tape | Reel | None = None) -> None:
        self._source = source
        self._tape = tape
        self._totals = Totals()
        self._window = Window(Grid.of_window(WINDOW_NS), _MEMORY_BYTES, _EXACT_ROWS)
        self._process = psutil.Process()

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in a canonical batch."""
        self._totals.add(batch)
        self._window.add(batch, self._source.now_ns())

    def page(self) -> bytes:
        """Everything, as OpenMetrics text."""
        page = Page()
        health = self._source.health()
        header = self._source.header
        page.info("fusetui_build", "What measures.", {"version": __version__, "contract": str(CONTRACT_VERSION)})
        page.info("fusetui_trace", "What is measured.", {"source": header.source, "host": header.host or ""})
        self._process_families(page)
        _source_families(page, health)
        self._total_families(page)
        self._window_families(page, health)
        if self._tape is not None:
            _tape_families(page, self._tape)
        return page.text()

    def _process_families(self, page: Page) -> None:
        with self._process.oneshot():
            used = self._process.cpu_times()
            page.counter("process_cpu_seconds", "CPU time used.", [({}, used.user + used.system)], "seconds")
            began_s = self._process.create_time()
            page.gauge("process_start_time_seconds", "When it began, since 1970.", [({}, began_s)], "seconds")
            rss = self._process.memory_info().rss
            page.gauge("process_resident_memory_bytes", "Resident memory.", [({}, rss)], "bytes")
            page.gauge("process_open_fds", "Open file descriptors.", [({}, self._process.num_fds())])

    def _total_families(self, page: Page) -> None:
        totals = self._totals
        rows = [({"kind": kind}, int(n)) for kind, n in zip(KINDS, totals.rows, strict=True)]
        page.counter("fusetui_rows", "Rows by kind, those of open work left out.", rows)
        mapped = [({"mapping": word}, int(n)) for word, n in zip(MAPPINGS, totals.mappings, strict=True)]
        page.counter("fusetui_mapped_executions", "Executions by how their shape was mapped.", mapped)
        for measure, name, help_ in _FAMILIES:
            page.begin_histogram(name, help_, "seconds")
            counts, sums_ns = totals.counts[measure], totals.sums_ns[measure]
            for row, stream in enumerate(totals.streams):
                total = int(counts[row].sum())
                if total:
                    below = [*np.cumsum(counts[row])[_AT].tolist(), total]
                    page.histogram(name, {"stream": stream}, _BOUNDS, below, int(sums_ns[row]) / 1e9)

    def _window_families(self, page: Page, health: SourceHealth) -> None:
        now_ns = self._source.now_ns()
        if now_ns is None or self._window.newest_ns is None:
            return
        context = Context(0, time.monotonic(), self._source.header, health, None, 0, "", float("nan"))
        seen = snapshot_of(self._window, now_ns, context, hasty=True)
        spread = seen.cores.imbalance
        page.gauge(
            "fusetui_imbalance_ratio", "Busiest core over the mean, less 1, last minute.", [({}, spread.lambda_)]
        )
        page.gauge("fusetui_jain_index", "Jain's index of busy time over cores, last minute.", [({}, spread.jain)])
        shares = [({"mapping": word}, getattr(seen.mapping, word)) for word in MAPPINGS]
        page.gauge("fusetui_mapping_share_ratio", "Shares of mapped executions, last minute.", shares)
        open_work = [({"state": "waiting"}, seen.open_waiting), ({"state": "running"}, seen.open_running)]
        page.gauge("fusetui_open_executions", "Executions known to be open; absent when nobody tells.", open_work)
        oldest_s = None if seen.oldest_open_ns is None else seen.oldest_open_ns / 1e9
        page.gauge("fusetui_oldest_open_seconds", "Age of the oldest waiting work.", [({}, oldest_s)], "seconds")
        left_out = [({"why": "late"}, self._window.late_rows), ({"why": "early"}, self._window.early_rows)]
        page.counter("fusetui_rows_outside_window", "Rows that the last-minute figures could not take.", left_out)
        _quantile_families(page, seen)


def _quantile_families(page: Page, seen: Snapshot) -> None:
    tails = ((WAIT, seen.queue_wait), (SERVICE, seen.service), (f"{seen.latency_of} latency", seen.latency))
    values, bounds = [], []
    for measure, tail in tails:
        for name, quantile in (("p50", "0.5"), ("p95", "0.95"), ("p99", "0.99")):
            at_ns = getattr(tail, f"{name}_ns")
            labels = {"measure": measure, "quantile": quantile}
            values.append((labels, None if at_ns is None else at_ns / 1e9))
            bounds.append((labels, None if at_ns is None else int(name in tail.at_least)))
    page.gauge("fusetui_window_quantile_seconds", "Quantiles of the last minute.", values, "seconds")
    page.gauge("fusetui_window_quantile_at_least", "1: the quantile is a lower bound, work is open.", bounds)


def _source_families(page: Page, health: SourceHealth) -> None:
    page.states("fusetui_source_state", "What the source does.", get_args(State), health.state)
    page.counter("fusetui_source_rows", "Rows taken in.", [({}, health.rows)])
    page.counter("fusetui_source_dropped_rows", "Rows not taken in for want of time.", [({}, health.dropped_rows)])
    page.counter("fusetui_source_bad_rows", "Rows with impossible times.", [({}, health.bad_rows)])
    page.counter("fusetui_source_rejected_batches", "Batches that are not valid.", [({}, health.rejected_batches)])
    page.counter("fusetui_source_received_bytes", "Bytes read.", [({}, health.bytes_in)], "bytes")
    lag_s = None if health.lag_ns is None else health.lag_ns / 1e9
    page.gauge("fusetui_source_lag_seconds", "Age of the newest event.", [({}, lag_s)], "seconds")
    states = [one.state for one in health.producers]
    producers = [({"state": state}, states.count(state)) for state in sorted(set(states))]
    page.gauge("fusetui_source_producers", "Producers by state.", producers)


def _tape_families(page: Page, tape: Tape | Reel) -> None:
    page.counter("fusetui_recording_rows", "Rows handed to the operating system.", [({}, tape.rows)])
    if not isinstance(tape, Reel):
        page.gauge("fusetui_recording_failed", "1: recording has stopped.", [({}, int(bool(tape.failed)))])
        return
    page.states("fusetui_recording_state", "What the recording does.", get_args(ReelState), tape.state)
    page.counter("fusetui_recording_lost_rows", "Rows that could not be written.", [({}, tape.lost)])
    page.counter("fusetui_recording_gaps", "Times it went on after not being written.", [({}, tape.gaps)])
    page.counter("fusetui_recording_removed_segments", "Segments that retention took.", [({}, tape.removed)])


class Pages:
    """Puts a new page on the server when somebody wants one."""

    every_s = 0.0

    def __init__(self, measures: Measures, server: MetricsServer) -> None:
        self._measures = measures
        self._server = server
        server.put(measures.page())

    def add(self, batch: pa.RecordBatch) -> None:
        self._measures.add(batch)

    def look(self) -> list[str]:
        if self._server.wanted:
            self._server.put(self._measures.page())
        return []

    def close(self) -> None:
        self._server.close()
