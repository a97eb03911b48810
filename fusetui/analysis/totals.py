"""What came since a start, never forgotten: rows by kind and mapping, and log histograms per stream.

Waits and service times are of executions that ended, latencies of requests that ended, as `analysis.work` defines
them; work still open is counted once it ends.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from fusetui.analysis.arrays import Bools, Codes, Ints
from fusetui.analysis.columns import EXECUTION, NULL, REQUEST, Words, plain
from fusetui.analysis.durations import LATENCY, SERVICE, WAIT, durations
from fusetui.analysis.loghist import BUCKETS, bucket_of
from fusetui.telemetry.schema import KINDS, MAPPINGS

MAX_STREAMS: Final = 16
MEASURES: Final = (WAIT, SERVICE, LATENCY)
_ROWS: Final = MAX_STREAMS + 2
"""Those beyond MAX_STREAMS share row 0; rows without a stream have the last one."""


class Totals:
    """Counts since it was made. The first MAX_STREAMS streams have a histogram each, the rest share "(others)".

    rows      [len(KINDS)] rows by kind, open ones left out
    mappings  [len(MAPPINGS)] executions by mapping, of those that carry one
    counts    measure -> [len(streams), BUCKETS]; sums_ns: measure -> [len(streams)]
    """

    def __init__(self) -> None:
        self.rows: Ints = np.zeros(len(KINDS), np.int64)
        self.mappings: Ints = np.zeros(len(MAPPINGS), np.int64)
        self.counts = {measure: np.zeros((_ROWS, BUCKETS), np.int64) for measure in MEASURES}
        self.sums_ns = {measure: np.zeros(_ROWS, np.int64) for measure in MEASURES}
        self._kinds, self._mapping_words = Words(known=KINDS), Words(known=MAPPINGS)
        self._streams = Words(limit=MAX_STREAMS + 1)

    @property
    def streams(self) -> list[str]:
        """Name of each row of `counts`: OTHERS, the streams as they came, "" for rows without a stream."""
        names = self._streams.words
        return [*names, *[""] * (_ROWS - len(names))]

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in a canonical batch."""
        if len(batch) == 0:
            return
        kind = self._kinds.ids(batch.column("kind"))
        ended = plain(batch.column("end_ns"), NULL) != NULL
        self.rows += _tally(kind[ended], len(KINDS))
        work = ended & (kind == EXECUTION)
        self.mappings += _tally(self._mapping_words.ids(batch.column("mapping"))[work], len(MAPPINGS))
        stream = self._streams.ids(batch.column("stream")).astype(np.int64) % _ROWS
        found = durations(batch)
        for measure in MEASURES:
            rows = ended & (kind == REQUEST) if measure == LATENCY else work
            self._count(measure, found[measure], rows, stream)

    def _count(self, measure: str, values: Ints, rows: Bools, stream: Ints) -> None:
        chosen = rows & (values != NULL)
        if not chosen.any():
            return
        values, stream = values[chosen], stream[chosen]
        cells = stream * BUCKETS + bucket_of(values)
        self.counts[measure] += np.bincount(cells, minlength=_ROWS * BUCKETS).reshape(-1, BUCKETS)
        # Not bincount with weights: that adds in float64, which does not hold the ns of a year.
        np.add.at(self.sums_ns[measure], stream, values)


def _tally(ids: Codes, known: int) -> Ints:
    return np.bincount(ids[(ids >= 0) & (ids < known)], minlength=known)
