"""The one time that orders a row: when it ended, else began, else was enqueued."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def event_time_ns(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Event times of a canonical batch, shape (rows,), int64 ns; 0 for a row without any time."""
    end = batch.column("end_ns")
    if end.null_count:
        end = pc.coalesce(end, batch.column("start_ns"), batch.column("enqueue_ns"), pa.scalar(0, pa.int64()))
    times: npt.NDArray[np.int64] = end.to_numpy(zero_copy_only=False)
    return times
